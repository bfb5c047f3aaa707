"""Proposed runs: they settle close choices first, then the weakest constant."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import tileproof
from tileproof.hardware import InputError, get_spec
from tileproof.models.context import Context
from tileproof.models.evaluation import evaluate_plan
from tileproof.solver.measure.experiments import Candidate, _Belief, _expected_saving, propose
from tileproof.solver.measure.rows import read_runs
from tileproof.solver.measure.spans import spans_by_value, spans_of
from tileproof.solver.tables.frames import PLAN_COLUMNS

SPEC = get_spec("ascend950pr")
CASES = "case_id,b,m,n,k,trans_b\ntiny,40,32,48,64,1\nsquare,1,512,512,512,0\n"


def candidates(times: list[float], slopes: list[list[float]], names: list[str]) -> list[Candidate]:
    cases = {name: tileproof.BmmCase(case_id=name, m=16, n=16, k=16) for name in names}
    return [
        Candidate(cases[name], tileproof.Plan(branch="asw_basic", base_m=16 * (i + 1)), time, tuple(slope))
        for i, (time, slope, name) in enumerate(zip(times, slopes, names, strict=True))
    ]


def test_a_close_pair_is_measured_before_a_clear_one() -> None:
    spans = spans_by_value(SPEC, [("hbm", 1.5, 1.7)])
    runs = candidates([10.0, 10.01, 50.0, 90.0], [[0.0], [0.0], [0.0], [0.0]], ["close", "close", "clear", "clear"])
    belief = _Belief(runs, spans)
    run, reason = belief.next([])
    assert run in (0, 1)
    assert "settles case close" in reason
    assert "the order is wrong with" in reason


def test_a_clear_choice_leaves_the_weakest_constant() -> None:
    spans = spans_by_value(SPEC, [("hbm", 1.5, 1.7), ("l2", 100, 180)])
    runs = candidates([10.0, 90.0], [[0.05, 0.2], [0.0, 3.0]], ["clear", "clear"])
    belief = _Belief(runs, spans)
    run, reason = belief.next([])
    assert run == 1  # it moves most with the weak constant, over its noise
    assert reason.startswith("pins down l2")
    before = belief.covariance[-1, -1]
    belief.observe(run)
    assert belief.covariance[-1, -1] < 0.6 * before


def test_expected_saving_is_that_of_the_definition() -> None:
    import numpy as np

    draws = np.random.default_rng(0).normal(2.0, 1.5, 400_000)
    assert _expected_saving(2.0, 1.5) == pytest.approx(np.maximum(-draws, 0).mean(), rel=0.02)
    assert _expected_saving(2.0, 0.0) == 0


def test_proposed_plans_are_legal_and_different() -> None:
    cases = [tileproof.BmmCase(case_id="a", m=512, n=512, k=512), tileproof.BmmCase(case_id="b", m=64, n=64, k=4096)]
    found = propose(cases, spans_of(SPEC), spec=SPEC, count=6)
    assert len(found) == 6
    assert len({(one.candidate.case, one.candidate.plan) for one in found}) == 6
    for one in found:
        ctx = Context.of(one.candidate.case, SPEC, "none")
        evaluation = evaluate_plan(ctx, one.candidate.plan)
        assert evaluation.feasible
        assert ctx.us(evaluation.ticks) == one.candidate.time_us
        assert one.reason


def test_command_writes_plans_and_a_table_to_fill_in(run: Any, tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(CASES)
    plans, table = tmp_path / "plans.csv", tmp_path / "measure.csv"
    answer = run("next-experiments", tmp_path / "cases.csv", "--count", "3", "--out", plans, "--template", table)
    assert answer.exit_code == 0, answer.stderr
    assert answer.stdout.count("\n") == 3
    with plans.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == (*PLAN_COLUMNS, "reason")
    assert {row["case_id"] for row in rows} <= {"tiny", "square"}
    assert {row["row"] for row in rows} <= {"2", "3"}
    with pytest.raises(InputError, match=r"row 2, column latency_us: is empty"):
        read_runs(table)
    with table.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    for line, row in zip(lines, rows, strict=True):
        line["latency_us"] = row["latency_us"]
    with table.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    document = run("validate", table, "--json")
    assert document.exit_code == 0, document.stderr
    assert '"tiling_known": true' in document.stdout


def test_bad_cases_are_told_and_left_out(run: Any, tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text("m,n,k\n64,64,64\n64,x,64\n")
    answer = run("next-experiments", tmp_path / "cases.csv", "--count", "1")
    assert answer.exit_code == 2
    assert "row 3, column n" in answer.stderr
    assert answer.stdout.startswith("1. case row2")
