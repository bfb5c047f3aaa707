"""Advice: what it suggests is legal and as much faster as it says, and the words follow from the numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from bmm_cases import CASES, item_id
from sampling import feasible, forms

import tileproof
from tileproof.hardware import get_spec
from tileproof.models.branches import BRANCH_OF
from tileproof.models.case import make_case
from tileproof.models.context import Context
from tileproof.models.evaluation import Evaluation, evaluate_plan, evaluate_values
from tileproof.models.plan import Plan
from tileproof.solver.review.advice import advice, loads_of
from tileproof.solver.review.neighbours import best_change
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch

_CHANGE = re.compile(r"; (\w+) (\d+) instead of (\d+)(?: \(with ([^)]*)\))? saves (\d+) %")


def changed_plan(ctx: Context, plan: Plan, text: str) -> tuple[Plan, int] | None:
    """The plan that an advice suggests, and the percent it promises."""
    match = _CHANGE.search(text)
    if match is None:
        return None
    field, new, old, others, saved = match.groups()
    assert getattr(plan, field) == int(old)
    update: dict[str, Any] = {field: int(new)}
    for part in (others or "").split(", "):
        if part:
            name, value = part.split()
            update[name] = int(value)
    if "grid_k" in update:
        atoms = ctx.k // 16 + (ctx.k % 16 > 0)
        update["single_core_k"] = -(-atoms // update["grid_k"]) * 16
    return plan.model_copy(update=update), int(saved)


def samples(ctx: Context, name: Any, wanted: int) -> list[Evaluation]:
    """Random legal plans of every form."""
    branch, rng = BRANCH_OF[name], np.random.default_rng(11)
    found = []
    for structures in forms(ctx, branch).values():
        for structure, values in feasible(ctx, branch, structures, rng, wanted, tries=300):
            found.append(evaluate_values(ctx, branch, {**structure.constants, **values}))
    return found


@pytest.mark.parametrize("item", CASES, ids=item_id)
def test_suggestions_are_legal_and_save_what_they_say(item: Any) -> None:
    _, name, fields, chip, environment = item
    ctx = Context.of(make_case(**fields), get_spec(chip), "none", environment)
    for evaluation in samples(ctx, name, 2):
        text = advice(ctx, evaluation)
        assert re.match(r"[A-Za-z0-9]+-bound: ", text), text
        suggestion = changed_plan(ctx, evaluation.plan, text)
        if suggestion is not None:
            better = evaluate_plan(ctx, suggestion[0])
            assert better.feasible, text
            gain = 1 - better.ticks / evaluation.ticks
            assert gain > 0
            assert abs(100 * gain - suggestion[1]) <= 1, text


@pytest.mark.parametrize("item", CASES[::3], ids=item_id)
def test_an_optimum_has_nothing_to_change(item: Any) -> None:
    _, name, fields, chip, environment = item
    ctx = Context.of(make_case(**fields), get_spec(chip), "none", environment)
    best = solve_branch(ctx, name, SolveOptions()).evaluation
    assert best is not None
    assert _CHANGE.search(advice(ctx, best)) is None
    assert best_change(ctx, best, best.plan) is None


def test_re_reads_are_those_of_the_tile() -> None:
    case = make_case(m=4096, n=4096, k=4096)
    ctx = Context.of(case, get_spec("ascend950pr"), "none")
    best = solve_branch(ctx, "asw_basic", SolveOptions(explain=False)).result.plan
    assert best is not None
    small = best.model_copy(update={"base_m": 32, "tail_m": 1, "tail_n": 1, "swizzle_w": None})
    evaluation = evaluate_plan(ctx, small)
    loads = loads_of(ctx, evaluation.plan)
    assert loads is not None
    total_a, total_b, once_b = loads.reads_a.passed, loads.reads_b.passed, loads.reads_b.once
    assert (total_b, once_b) == (128 * ctx.unique_b, ctx.unique_b)
    assert (total_a, loads.reads_a.once) == (evaluation.plan.n_cnt * ctx.unique_a, ctx.unique_a)  # type: ignore[operator]
    text = advice(ctx, evaluation)
    share = round(100 * (total_b - once_b) / (total_a + total_b))
    assert f"{share} % of the reads are re-reads of B; base_m " in text


def test_at_the_roofline_nothing_is_looked_for() -> None:
    case = make_case(batch_a=32, batch_b=32, m=4096, n=4096, k=4096)
    ctx = Context.of(case, get_spec("ascend950pr"), "none")
    best = solve_branch(ctx, "asw_basic", SolveOptions(explain=False)).evaluation
    assert best is not None
    assert advice(ctx, best).startswith(
        "MMAD-bound: 99 % of the time; at 99 % of the roofline there is nothing to gain"
    )


def test_what_is_proven_is_said() -> None:
    ctx = Context.of(make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024), get_spec("ascend950pr"), "none")
    best = solve_branch(ctx, "asw_basic", SolveOptions()).evaluation
    assert best is not None
    text = advice(ctx, best, proven="no tiling of asw_basic is faster")
    assert "; proven: no tiling of asw_basic is faster" in text


def test_how_to_make_a_plan_legal() -> None:
    ctx = Context.of(make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024), get_spec("ascend950pr"), "none")
    best = solve_branch(ctx, "asw_basic", SolveOptions()).result.plan
    assert best is not None
    wrong = evaluate_plan(ctx, best.model_copy(update={"base_k": 128}))
    text = advice(ctx, wrong)
    assert text.startswith("cap.l0a: 131072 B against 65536 B (")
    assert "base_k 64 instead of 128" in text
    assert text.endswith(" us")


def test_an_empty_output_needs_nothing() -> None:
    result = tileproof.solve(make_case(m=0, n=2, k=2))
    assert result.best is not None
    assert result.best.plan is not None
    ctx = Context.of(result.case, get_spec("ascend950pr"), "v0.4")
    assert advice(ctx, evaluate_plan(ctx, result.best.plan)) == "the output is empty, there is nothing to do"
