"""The model against the carried measurements, and the numbers that say how far it is off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr

from tileproof.hardware.measured import measurements
from tileproof.solver.measure.scores import best_head, spearman
from tileproof.solver.measure.validation import Validation, markdown, validate

DOCUMENT = Path(__file__).parents[2] / "docs" / "validation.md"


@pytest.fixture(scope="module")
def carried() -> Validation:
    return validate(measurements())


def test_targets_with_one_head_a_set(carried: Validation) -> None:
    known, best = carried.headline(tiling_known=True), carried.headline(tiling_known=False)
    assert known is not None
    assert best is not None
    assert known <= 3.5
    assert best <= 9.0
    assert {s.name for s in carried.sets if s.role == "stress"} == {"nodb", "samples_small", "devkit_naive"}


def test_shapes_are_ranked_within_sets(carried: Validation) -> None:
    ranks = {score.name: score.rank for score in carried.sets}
    for name in ("catlass_aswt", "catlass_46", "dsl_own", "dsl_torch"):
        assert ranks[name] == 1.0
    assert all(ranks[name] is not None and ranks[name] > 0.9 for name in ("bench_int8", "bench_grouped"))
    right = sum(shape.pairs_in_order for shape in carried.shapes)
    assert right >= 0.75 * sum(shape.pairs for shape in carried.shapes)


def test_a_single_row_is_not_fitted_to_itself(carried: Validation) -> None:
    single = next(score for score in carried.sets if score.name == "devkit_naive")
    assert not single.fitted
    assert single.head_us == 2.5
    assert single.held_out_mape is None


def test_json_has_the_agreed_shape(carried: Validation) -> None:
    document = json.loads(json.dumps(carried.to_json()))
    assert document["mape_known_pct"] <= 3.5
    assert document["mape_best_pct"] <= 9
    for one in document["sets"].values():
        assert {"n", "tiling_known", "mape_pct", "bias_pct", "worst_pct", "head_us"} <= set(one)
    assert len(document["rows"]) + len(document["left_out"]) == len(measurements())
    assert all("MX types" in one["reason"] for one in document["left_out"])


def test_the_document_holds_the_table(carried: Validation) -> None:
    assert markdown(carried) in DOCUMENT.read_text(encoding="utf-8"), (
        "docs/validation.md: put the output of `tileproof validate --markdown` between its markers"
    )


def test_the_head_of_a_set_is_the_best_one(carried: Validation) -> None:
    for score in carried.sets:
        if not score.fitted:
            continue

        def cost(head: float, score: Any = score) -> float:
            return sum(abs(p.error(head)) for p in score.predictions)

        head = best_head(score.predictions)
        assert head == score.head_us
        tried = [0.0, *(max(0.0, p.row.latency_us - p.base_us) for p in score.predictions)]
        assert cost(head) == pytest.approx(min(map(cost, tried)))


def test_rank_correlation_is_that_of_scipy() -> None:
    for left, right in (([1, 2, 3, 4], [2, 1, 4, 3]), ([1, 1, 2, 5, 5], [3, 2, 2, 9, 7]), ([3, 1, 2], [1, 2, 3])):
        assert spearman(left, right) == pytest.approx(spearmanr(left, right).statistic)
    assert spearman([1, 2], [1, 2]) is None
    assert spearman([1, 1, 1], [1, 2, 3]) is None


FILE = """set,chip,b,m,n,k,dtype,out_dtype,trans_b,base_m,base_n,base_k,latency_us
mine,ascend950pr,1,1024,1024,1024,fp16,fp32,1,256,256,64,14.9
mine,ascend950pr,1,2208,2048,1024,fp16,fp32,1,256,256,64,38.1
mine,ascend950pr,1,512,512,512,fp16,fp32,1,,,,6
other,ascend950pr,1,64,64,64,mxfp8,,1,,,,3
"""


def test_command_on_a_file(run: Any, tmp_path: Path) -> None:
    file, picture = tmp_path / "runs.csv", tmp_path / "runs.svg"
    file.write_text(FILE)
    answer = run("validate", file, "--plot", picture)
    assert answer.exit_code == 0, answer.stderr
    assert "left out: row 5" in answer.stdout
    assert picture.read_text().lstrip().startswith("<?xml")
    document = json.loads(run("validate", file, "--json").stdout)
    assert document["notes"] == []
    assert document["sets"]["mine"]["n"] == 3
    assert not document["sets"]["mine"]["tiling_known"]  # one of its rows has no tile
    assert document["mape_known_pct"] is None


def test_own_runs_are_scored_with_the_heads_of_the_shipped_ones(carried: Validation, run: Any, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    found = {}
    for factor in (1.0, 1.3):
        lines = FILE.splitlines()[:3]
        own = [line.rpartition(",") for line in lines[1:]]
        file.write_text("\n".join([lines[0], *(f"{rest},{factor * float(us)}" for rest, _, us in own)]))
        document = json.loads(run("validate", file, "--json").stdout)
        score, rows = document["sets"]["mine"], document["rows"]
        assert score["shipped_head_us"] == round(carried.heads["profiler"], 4)
        times = [(r["predicted_us"] - score["head_us"] + score["shipped_head_us"], r["measured_us"]) for r in rows]
        by_hand = 100 * sum(abs(model / measured - 1) for model, measured in times) / len(times)
        assert score["mape_shipped_head_pct"] == pytest.approx(by_hand, abs=2e-3)
        assert document["mape_known_shipped_head_pct"] == score["mape_shipped_head_pct"]
        found[factor] = score
    assert found[1.0]["head_us"] != found[1.3]["head_us"]
    assert "shipped runs %" in run("validate", file).stdout
    assert f"| mine | {carried.heads['profiler']:.2f} |" in run("validate", file, "--markdown").stdout


def test_a_shipped_set_is_not_judged_by_its_own_head(carried: Validation) -> None:
    rows = [row for row in measurements() if row.set in ("catlass_aswt", "samples_db")]
    found = validate(rows, with_shipped_heads=True)
    others = [
        p
        for score in carried.sets
        if score.role == "check" and score.environment == "profiler" and score.name != "catlass_aswt"
        for p in score.predictions
    ]
    assert found.shipped["catlass_aswt"].head_us == best_head(others)
    assert "samples_db" not in found.shipped  # the only shipped set of cold runs that counts
    assert found.to_json()["mape_known_shipped_head_pct"] is None
    assert not carried.shipped


def test_command_draws_png(run: Any, tmp_path: Path) -> None:
    file, picture = tmp_path / "runs.csv", tmp_path / "runs.png"
    file.write_text("\n".join(FILE.splitlines()[:3]))
    assert run("validate", file, "--plot", picture).exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plot", "a.gif"), "--plot: 'a.gif' must end in .png or .svg"),
        (("--plot", "no/such/a.png"), "--plot: there is no folder"),
        (("missing.csv",), "missing.csv: cannot be read: No such file or directory"),
    ],
)
def test_command_refuses(run: Any, arguments: tuple[str, ...], message: str) -> None:
    answer = run("validate", *arguments)
    assert answer.exit_code == 2
    assert message in answer.stderr
