"""The robust choice: minimax regret, confirmed by listing all plans."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tileproof
from tileproof.hardware import InputError, get_spec
from tileproof.models.branches import BRANCH_OF
from tileproof.models.context import Context
from tileproof.models.pins import parse_pins
from tileproof.models.points import evaluate_points
from tileproof.solver.measure.constants import spec_at
from tileproof.solver.measure.robust import robust
from tileproof.solver.measure.spans import Span, spans_by_value, spans_from, spans_of
from tileproof.solver.proof.enumerator import Enumerator
from tileproof.solver.search.solve_branch import SolveOptions

SPEC = get_spec("ascend950pr")
WIDE = [("row_128", 0.5, 1.0), ("mmad_head", 0, 30), ("saturation", 0.4, 1.0)]


def least_regret_us(case: tileproof.BmmCase, spans: list[Span]) -> tuple[int, float]:
    """Number of plans of ASW_Basic, and the least worst-case regret over all of them, straight from the definition."""
    branch = BRANCH_OF["asw_basic"]
    corners = [
        Context.of(case, spec_at(SPEC, {s.constant: v for s, v in zip(spans, ends, strict=True)}), "none")
        for ends in product(*((s.low, s.high) for s in spans))
    ]
    times = []
    lister = Enumerator(corners[0], branch, exhaustive=True)
    for structure in branch.structures(corners[0], complete=True):
        for points in lister._leaves(structure):
            rows = []
            for ctx in corners:
                total, legal = evaluate_points(ctx, branch, structure, points)
                rows.append(np.where(legal, total / float(ctx.ticks_per_us), np.inf))
            times.append(np.stack(rows))
    table = np.concatenate(times, axis=1)
    regret = (table - table.min(axis=1, keepdims=True)).max(axis=0)
    return table.shape[1], float(regret.min())


@pytest.mark.parametrize(
    ("sizes", "differs"),
    [((4, 48, 64, 96, False), True), ((40, 32, 48, 64, True), True), ((33, 64, 64, 64, True), False)],
)
def test_minimax_over_all_plans(sizes: tuple[int, int, int, int, bool], differs: bool) -> None:
    b, m, n, k, trans_b = sizes
    case = tileproof.BmmCase(batch_a=b, batch_b=b, m=m, n=n, k=k, trans_b=trans_b)
    choice = robust(case, spans_by_value(SPEC, WIDE), rules="none", branches=("asw_basic",))
    assert choice is not None
    assert choice.proven
    plans, regret = least_regret_us(case, list(choice.spans))
    assert plans > 10_000
    assert choice.regret_us == pytest.approx(regret, abs=2e-5)
    assert choice.nominal_can_lose
    assert (choice.plan != choice.nominal) == differs
    assert (choice.regret_us < choice.nominal_regret_us) == differs
    worst = max(corner.robust_us - corner.best_us for corner in choice.corners)
    assert choice.regret_us == pytest.approx(worst, abs=1e-6)
    assert all(corner.best_us <= min(corner.robust_us, corner.nominal_us) + 1e-9 for corner in choice.corners)


def test_over_all_branches_the_corners_know_their_best_branch() -> None:
    case = tileproof.BmmCase(batch_a=64, batch_b=64, m=64, n=64, k=64)
    choice = robust(case, rules="none", most=2)
    solved = tileproof.solve(case, rules="none")
    assert choice is not None
    assert solved.best is not None
    assert choice.nominal == solved.best.plan
    assert len(choice.corners) == 4
    assert choice.regret_us <= choice.nominal_regret_us


def test_certain_constants_keep_the_winner() -> None:
    case = tileproof.BmmCase(m=256, n=256, k=256)
    choice = robust(case, spans_by_value(SPEC, [("hbm", 1.6, 1.6)]), rules="none", branches=("asw_basic",))
    assert choice is not None
    assert choice.plan == choice.nominal
    assert not choice.nominal_can_lose
    assert choice.spans == ()
    assert len(choice.corners) == 1


def test_pins_hold_and_infeasible_pins_give_nothing() -> None:
    case = tileproof.BmmCase(m=256, n=256, k=256)
    pinned = SolveOptions(pins=parse_pins(["base_m=64"]))
    choice = robust(case, rules="none", branches=("asw_basic",), options=pinned, most=1)
    assert choice is not None
    assert choice.plan.base_m == 64
    broken = SolveOptions(pins=parse_pins(["base_m=100"]))
    assert robust(case, rules="none", branches=("asw_basic",), options=broken) is None
    with pytest.raises(InputError, match="a pin on latency_us says nothing"):
        robust(case, options=SolveOptions(pins=parse_pins(["latency_us<=9"])))


def test_spans_follow_the_confidence_marks() -> None:
    spans = {span.constant.name: span for span in spans_of(SPEC)}
    assert (spans["hbm"].low, spans["hbm"].high) == pytest.approx((1.6 * 0.98, 1.6 * 1.02))
    assert (spans["drain_rate"].low, spans["drain_rate"].high) == pytest.approx((50 * 0.93, 50 * 1.07))
    assert (spans["saturation"].low, spans["saturation"].high) == pytest.approx((0.6, 0.9))
    assert spans["row_256"].high <= 1
    assert not any(name.startswith("head") for name in spans)


def test_spans_of_a_calibration(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text(
        json.dumps({"constants": {"hbm": {"low": 1.4, "high": 1.7}, "head_profiler": {"low": 1, "high": 3}}})
    )
    spans = {span.constant.name: span for span in spans_from(file, SPEC)}
    assert (spans["hbm"].low, spans["hbm"].high) == (1.4, 1.7)
    assert "calibrated" in spans["hbm"].why
    assert "confidence" in spans["l2"].why
    for text in ("[]", "{}", "no json", '{"constants": {"hbm": {"low": 2, "high": 1}}}'):
        file.write_text(text)
        with pytest.raises(InputError):
            spans_from(file, SPEC)


def test_solve_prints_the_robust_choice(run: Any) -> None:
    case = ("solve", "-b", "40", "-m", "32", "-n", "48", "-k", "64", "--trans-b", "--rules", "none")
    answer = run(*case, "--branch", "asw_basic", "--robust", "--json")
    assert answer.exit_code == 0, answer.stderr
    document = json.loads(answer.stdout)["robust"]
    assert document["proven"]
    assert document["worst_regret_us"] <= document["nominal_worst_regret_us"]
    assert len(document["corners"]) == 2 ** len(document["constants"])
    text = run(*case, "--branch", "asw_basic", "--robust").stdout
    assert "robust choice over" in text
    assert "nominal winner" in text
