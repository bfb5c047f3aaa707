"""Calibration: planted constants come back, what the data cannot tell is refused, the chip file reads back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measured_runs import SHAPES, export_rows, synthetic_rows, write_plans, write_rows

from tileproof.hardware import InputError, NpuSpec, get_spec
from tileproof.solver.measure.calibration import Calibration, FitOptions, calibrate
from tileproof.solver.measure.chip_text import chip_toml
from tileproof.solver.measure.constants import all_constants, constant, spec_at
from tileproof.solver.measure.rows import read_runs

SPEC = get_spec("ascend950pr")
PLANTED = {
    "head_profiler": 3.4, "hbm": 1.45, "l2": 125.0, "drain_rate": 42.0, "row_256": 0.90, "row_128": 0.78,
    "mmad_head": 3.0, "mte1_load": 45.0, "drain_fixed": 343.0,
}  # fmt: skip


def planted() -> NpuSpec:
    return spec_at(SPEC, {constant(SPEC, name): value for name, value in PLANTED.items()})


def calibrated(tmp_path: Path, seed: int, *, counters: bool, **settings: Any) -> Calibration:
    rows = synthetic_rows(planted(), seed, counters=counters)
    runs = read_runs(write_rows(tmp_path / f"measured{seed}.csv", rows))
    return calibrate(runs, SPEC, FitOptions(seed=seed, **{"folds": 0, **settings}))


def hits(result: Calibration) -> dict[str, bool]:
    """Whether the interval of each fitted constant holds the planted value."""
    return {
        one.constant.name: one.low * (1 - 1e-4) <= PLANTED[one.constant.name] <= one.high * (1 + 1e-4)
        for one in result.fitted
    }


@pytest.mark.parametrize("counters", [False, True])
def test_planted_constants_come_back(tmp_path: Path, counters: bool) -> None:
    found: list[bool] = []
    for seed in range(2):
        result = calibrated(tmp_path, seed, counters=counters)
        found += hits(result).values()
        names = {one.constant.name for one in result.fitted}
        assert {"head_profiler", "hbm", "l2", "row_128"} <= names
        assert result.in_sample < result.before
        assert result.helps
    assert sum(found) >= 0.9 * len(found) - 1


@pytest.mark.parametrize("scale", [1000.0, 0.001])
def test_a_time_in_another_unit_is_refused_by_row(tmp_path: Path, scale: float) -> None:
    rows = synthetic_rows(planted(), 0, counters=False)
    rows[2]["latency_us"] = str(scale * float(rows[2]["latency_us"]))
    runs = read_runs(write_rows(tmp_path / "measured.csv", rows))
    with pytest.raises(InputError, match=r"measured\.csv, row 4: .* is the time in another unit\?"):
        calibrate(runs, SPEC, FitOptions(folds=0))


@pytest.mark.sweep
@pytest.mark.parametrize("counters", [False, True])
def test_intervals_hold_the_planted_constants_in_nine_of_ten_seeds(tmp_path: Path, counters: bool) -> None:
    asked, inside = Counter[str](), Counter[str]()
    for seed in range(50):
        for name, hit in hits(calibrated(tmp_path, seed, counters=counters)).items():
            asked[name] += 1
            inside[name] += hit
    assert sum(inside.values()) >= 0.9 * sum(asked.values())
    shares = {name: inside[name] / asked[name] for name in asked if asked[name] >= 20}
    assert min(shares.values()) >= 0.9, shares


def test_counters_are_fitted_for_each_pipe(tmp_path: Path) -> None:
    result = calibrated(tmp_path, 3, counters=True)
    assert set(result.pipes) == {"mmad", "mte1", "mte2", "fixpipe"}
    assert result.pipes["mte1"][0] == len(SHAPES)
    assert result.pipes["mte2"][2] < result.pipes["mte2"][1]
    assert hits(result)["mte1_load"]


def test_held_out_error_stands_beside_the_one_in_sample(tmp_path: Path) -> None:
    result = calibrated(tmp_path, 4, counters=False, folds=3, names=("head", "hbm"))
    assert result.held_out is not None
    assert 0.01 < result.in_sample < result.held_out < 0.15


def test_what_the_runs_do_not_tell_is_refused(tmp_path: Path) -> None:
    large = [(1, size, size, 4096, 256, 256, 64, 4) for size in (2048, 4096, 8192)]
    small = [(b, 16, 16, 512, 16, 16, 64, 8) for b in (1, 2, 4, 8)]
    rows = synthetic_rows(SPEC, 0, noise=0.01, shapes=large + small)
    runs = read_runs(write_rows(tmp_path / "few.csv", rows))
    result = calibrate(runs, SPEC, FitOptions(("head", "hbm", "port", "row_128", "mmad_head"), folds=0))
    reasons = {one.constant.name: one.reason for one in result.refused}
    assert "no measured time depends on it" in reasons["port"]
    assert {"port", "row_128", "mmad_head"} <= set(reasons)
    assert all(one.constant.name not in reasons for one in result.fitted)
    with pytest.raises(InputError, match=r"identify none of the constants .*port: no measured time depends on it"):
        calibrate(runs, SPEC, FitOptions(("port",)))


def test_two_constants_that_do_the_same_are_told_by_name(tmp_path: Path) -> None:
    one_shape = [(b, 256, 256, 64, 256, 256, 64, 1) for b in (32, 64, 96, 128, 320, 640)]
    rows = synthetic_rows(SPEC, 0, noise=0.01, counters=True, shapes=one_shape)
    runs = read_runs(write_rows(tmp_path / "same.csv", rows))
    result = calibrate(runs, SPEC, FitOptions(("drain_fixed", "drain_rate"), folds=0))
    (refused,) = result.refused
    (kept,) = result.fitted
    assert {refused.constant.name, kept.constant.name} == {"drain_fixed", "drain_rate"}
    assert f"cannot tell it from {kept.constant.name}" in refused.reason


def test_the_chip_file_reads_back(tmp_path: Path, run: Any) -> None:
    file = write_rows(tmp_path / "measured.csv", synthetic_rows(planted(), 5))
    out = tmp_path / "my_chip.toml"
    answer = run("calibrate", file, "--out", out, "--fit", "head,hbm,rows", "--folds", "2", "--json")
    assert answer.exit_code == 0, answer.stderr
    document = json.loads(answer.stdout)
    spec = get_spec(out)
    assert spec.name == "my_chip"
    assert float(spec.hbm_tb_s) == document["constants"]["hbm"]["value"]
    assert float(spec.head_us["profiler"]) == document["constants"]["head_profiler"]["value"]
    assert spec.head_us["cold"] == SPEC.head_us["cold"]
    assert "95 % interval" in spec.provenance["hbm_tb_s"].source
    assert spec.provenance["hbm_tb_s"].confidence in ("M", "L")
    again = run("calibrate", file, "--hardware", out, "--out", tmp_path / "next.toml", "--fit", "head", "--folds", "0")
    assert again.exit_code == 0, again.stderr
    assert "mean error of the times" in again.stdout
    assert get_spec(tmp_path / "next.toml").hbm_tb_s == spec.hbm_tb_s


def test_an_export_with_plans(tmp_path: Path, run: Any) -> None:
    rows = synthetic_rows(planted(), 6, counters=True, shapes=SHAPES[:16])
    export = write_rows(tmp_path / "op_summary_1.csv", export_rows(rows))
    plans = write_plans(tmp_path / "plans.csv", rows)
    out = tmp_path / "c.toml"
    answer = run(
        "calibrate", export, "--plans", plans, "--out", out, "--fit", "head,hbm,mte1_load,drain_rate", "--folds", "0",
        "--json",
    )  # fmt: skip
    assert answer.exit_code == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert document["rows_with_assumed_tiling"] == 0
    assert [note.partition(": ")[2] for note in document["notes"]] == [
        "2 rows are left out, because the operator is no matmul: Add 1, Cast 1", "16 of 18 rows are used",
    ]  # fmt: skip
    assert all(f"note: {note}" in answer.stderr for note in document["notes"])
    low, high = (document["constants"]["mte1_load"][end] for end in ("low", "high"))
    assert low <= PLANTED["mte1_load"] <= high


def test_a_fit_that_does_not_help_says_so(tmp_path: Path) -> None:
    result = calibrated(tmp_path, 7, counters=False, names=("head",))
    document = result.to_json()
    assert document["helps"] is (result.in_sample < result.before)
    assert chip_toml(result).startswith("# Written by `tileproof calibrate`")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "chip.txt"), "--out: 'chip.txt' must end in .toml"),
        (("--out", "no/such/chip.toml"), "--out: there is no folder"),
        (("--out", "chip.toml", "--fit", "hbn"), "constant 'hbn' is not known; did you mean 'hbm'?"),
        (("--out", "chip.toml", "--environment", "hot"), "environment: 'hot' is not known"),
        (("--out", "chip.toml", "--hardware", "ascend910"), 'there is no chip "ascend910"'),
    ],
)
def test_command_refuses(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_rows(tmp_path / "measured.csv", synthetic_rows(SPEC, 0, shapes=SHAPES[:3]))
    answer = run("calibrate", file, *arguments)
    assert answer.exit_code == 2
    assert message in answer.stderr
    assert not (tmp_path / "chip.toml").exists()


def test_runs_of_another_chip_are_left_out(tmp_path: Path) -> None:
    rows = synthetic_rows(SPEC, 0, shapes=SHAPES[:8])
    for row in rows[:2]:
        row["chip"] = "ascend950pr_c28"
    runs = read_runs(write_rows(tmp_path / "mixed.csv", rows))
    result = calibrate(runs, SPEC, FitOptions(("head",), folds=0))
    assert result.rows == 6
    assert len(result.left_out) == 2
    assert "measured on ascend950pr_c28, not on ascend950pr" in result.left_out[0]


def test_every_constant_can_be_set_and_read() -> None:
    for one in all_constants(SPEC):
        assert one.value(one.scale(one.own)) == pytest.approx(one.own)
        moved = spec_at(SPEC, {one: one.value(1.05)})
        assert moved.fingerprint() != SPEC.fingerprint()
        assert constant(moved, one.name).own == pytest.approx(one.value(1.05), rel=1e-4)
    faster_hbm = spec_at(SPEC, {constant(SPEC, "hbm"): 6.0})
    assert faster_hbm.l2_read_bytes_per_cycle >= faster_hbm.hbm_bytes_per_cycle
    assert np.isclose(float(faster_hbm.hbm_tb_s), 6.0)


def measured(tmp_path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    return write_rows(tmp_path / "measured.csv", rows)


def scattered(spread: float) -> list[dict[str, Any]]:
    """Runs whose times are off by a factor that nothing about them explains, up and down in turn."""
    rows = synthetic_rows(SPEC, 0, noise=0.0)
    return [{**row, "latency_us": row["latency_us"] * spread ** (-1) ** i} for i, row in enumerate(rows)]


def test_an_error_of_a_fifth_is_warned_of(tmp_path: Path, run: Any) -> None:
    out = tmp_path / "chip.toml"
    answer = run("calibrate", measured(tmp_path, scattered(1.3)), "--out", out, "--fit", "head,hbm", "--json")
    assert answer.exit_code == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert 20 <= document["mape_held_out_pct"] < 40
    assert document["refused"] is None
    assert "20 % or more; do not trust the chip" in document["warnings"][0]
    assert "# Warning: runs held out are predicted with" in out.read_text()
    assert "warning: runs held out are predicted with" in run(
        "calibrate", tmp_path / "measured.csv", "--out", out, "--fit", "head,hbm"
    ).stdout  # fmt: skip


@pytest.mark.parametrize("folds", ["5", "0"])
def test_an_error_of_two_fifths_is_refused(tmp_path: Path, run: Any, folds: str) -> None:
    out, found = tmp_path / "chip.toml", tmp_path / "calibration.json"
    out.write_text("another one")
    arguments = ("--out", out, "--fit", "head,hbm", "--folds", folds)
    answer = run("calibrate", measured(tmp_path, scattered(2.0)), *arguments, "--json")
    assert answer.exit_code == 3
    assert out.read_text() == "another one"
    document = json.loads(answer.stdout)
    judged = document["mape_in_sample_pct"] if folds == "0" else document["mape_held_out_pct"]
    assert judged >= 40
    assert f"chip.toml is not written: {document['refused']}" in answer.stderr
    assert f"are predicted with {judged:.1f} % error, 40 % or more" in document["refused"]
    assert "written:" not in run("calibrate", tmp_path / "measured.csv", *arguments).stdout
    found.write_text(answer.stdout)
    robust = run("solve", "-m", "64", "-n", "64", "-k", "64", "--robust", "--intervals", found)
    assert robust.exit_code == 2
    assert "is a calibration that was refused" in robust.stderr


@pytest.mark.parametrize(("names", "value"), [("head,hbm", 0.2), ("hbm", 0.2), ("drain_rate,head", 5.0)])
def test_a_rate_at_its_edge_is_refused(tmp_path: Path, run: Any, names: str, value: float) -> None:
    rate = "drain_rate" if "drain" in names else "hbm"
    rows = synthetic_rows(spec_at(SPEC, {constant(SPEC, rate): value}), 0, noise=0.01)
    out = tmp_path / "chip.toml"
    answer = run("calibrate", measured(tmp_path, rows), "--out", out, "--fit", names, "--json")
    assert answer.exit_code == 3
    assert not out.exists()
    document = json.loads(answer.stdout)
    assert document["refused"].startswith(f"{rate}: the fit runs it to the edge of its range (")
    assert document["constants"][rate]["value"] == pytest.approx(float(constant(SPEC, rate).own) / 4, rel=2e-3)


def test_an_interval_holds_the_doubt_about_a_partner(tmp_path: Path) -> None:
    """The drain rate for any drain_fixed within its doubt, by fitting again with that one, lies in the interval."""
    runs = read_runs(measured(tmp_path, synthetic_rows(SPEC, 0, noise=0.01)))
    result = calibrate(runs, SPEC, FitOptions(("head", "drain_fixed", "drain_rate"), folds=0))
    (rate,) = (one for one in result.fitted if one.constant.name == "drain_rate")
    (partner,) = (p for p in rate.partners if p.constant.name == "drain_fixed")
    assert "drain_fixed" in {one.constant.name for one in result.refused}
    fixed = constant(SPEC, "drain_fixed")
    ends = []
    for side in (-1, 1):
        spec = spec_at(SPEC, {fixed: fixed.own * (1 + side * partner.half_width)})
        again = calibrate(runs, spec, FitOptions(("head", "drain_rate"), folds=0))
        ends += [float(one.value) for one in again.fitted if one.constant.name == "drain_rate"]
    assert rate.low < min(ends) < float(rate.value) < max(ends) < rate.high


def test_intervals_hold_the_truth_when_a_partner_is_off(tmp_path: Path) -> None:
    spec = spec_at(SPEC, {constant(SPEC, "drain_fixed"): 1.2 * 343})
    found = []
    for seed in range(6):
        runs = read_runs(measured(tmp_path, synthetic_rows(spec, seed, noise=0.01)))
        result = calibrate(runs, SPEC, FitOptions(folds=0))
        assert "drain_fixed" in {one.constant.name for one in result.refused}
        found += [one.low <= 50 <= one.high for one in result.fitted if one.constant.name == "drain_rate"]
    assert len(found) == 6
    assert sum(found) >= 5
