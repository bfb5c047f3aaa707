"""Judging tilings: complete ones as they stand, of partial ones what is forced and what is chosen."""

from __future__ import annotations

from typing import Any

import pytest
from random_cases import random_context

import tileproof
from tileproof.hardware import get_spec
from tileproof.models.case import make_case
from tileproof.models.context import Context
from tileproof.models.evaluation import evaluate_plan
from tileproof.models.plan import BRANCHES, BranchName
from tileproof.solver.review.judge import deciding_fields, judge
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch

CASE = make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024)


@pytest.fixture
def ctx() -> Context:
    return Context.of(CASE, get_spec("ascend950pr"), "none", "profiler")


@pytest.fixture
def plan(ctx: Context) -> dict[str, Any]:
    best = solve_branch(ctx, "asw_basic", SolveOptions()).result.plan
    assert best is not None
    return best.model_dump(exclude_none=True)


@pytest.mark.parametrize("name", BRANCHES)
def test_an_optimum_is_judged_as_it_was_found(name: BranchName) -> None:
    seen = 0
    for seed in range(20):
        ctx = random_context(name, seed)
        solved = solve_branch(ctx, name, SolveOptions(explain=False)).evaluation
        if solved is None:
            continue
        seen += 1
        verdict = judge(ctx, solved.plan.model_dump(exclude_none=True))
        assert verdict.evaluation is not None
        assert (verdict.feasible, verdict.violations, verdict.chosen) == (True, (), ())
        assert (verdict.evaluation.ticks, verdict.evaluation.plan) == (solved.ticks, solved.plan)
    assert seen


def test_both_sides_of_every_broken_rule(ctx: Context, plan: dict[str, Any]) -> None:
    verdict = judge(ctx, {**plan, "base_n": 512})
    assert not verdict.feasible
    assert "cap.l0c 524288 <= 262144" in verdict.violations
    assert "derived.n_cnt 3 == 1" in verdict.violations


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("m_cnt", 7, "derived.m_cnt 7 == 1"),
        ("k_l1", 999, "derived.k_l1 999 == 320"),
        ("depth_a1", 2, "derived.depth_a1 2 == 8"),
        ("tail_strategy", "B", "derived.tail_strategy B == A0"),
        ("merge_b0", 4, "derived.merge_b0 4 == none"),
    ],
)
def test_a_derived_field_that_does_not_follow_is_named(
    ctx: Context, plan: dict[str, Any], field: str, value: Any, text: str
) -> None:
    verdict = judge(ctx, {**plan, field: value})
    assert verdict.violations == (text,)
    assert not verdict.feasible


def test_what_an_l1_form_leaves_no_choice_in() -> None:
    case = make_case(batch_a=20, batch_b=20, m=100, n=180, k=260)
    ctx = Context.of(case, get_spec("ascend950pr"), "none", "profiler")
    options = SolveOptions(explain=False, pins=tileproof.models.pins.parse_pins(["l1_form=c"]))
    best = solve_branch(ctx, "iter_batch", options).result.plan
    assert best is not None
    verdict = judge(ctx, {**best.model_dump(exclude_none=True), "iter_l1": 3})
    assert "derived.iter_l1 3 == 1" in verdict.violations


def test_missing_derived_fields_are_derived(ctx: Context, plan: dict[str, Any]) -> None:
    deciding = {name: plan[name] for name in ("branch", *deciding_fields(plan))}
    verdict = judge(ctx, deciding)
    assert verdict.chosen == ()
    assert verdict.evaluation is not None
    assert verdict.evaluation.plan.model_dump(exclude_none=True) == plan


def test_missing_deciding_fields_are_derived_when_forced(ctx: Context, plan: dict[str, Any]) -> None:
    for field, forced in (("step_kb", True), ("base_m", True), ("l0_buffers", False)):
        rest = {name: value for name, value in plan.items() if name != field}
        verdict = judge(ctx, rest)
        assert verdict.chosen == (() if forced else (field,)), field
        assert verdict.evaluation is not None
        assert getattr(verdict.evaluation.plan, field) == plan[field]


def test_open_fields_are_chosen_as_well_as_can_be(ctx: Context) -> None:
    given = {"branch": "asw_basic", "base_m": 64}
    verdict = judge(ctx, given)
    best = tileproof.solve(CASE, rules="none", branches=["asw_basic"], pins=["base_m=64"]).best
    assert best is not None
    assert verdict.evaluation is not None
    assert verdict.evaluation.plan == best.plan
    assert {"base_n", "base_k", "l1_buffers"} <= set(verdict.chosen)
    assert not {"base_m", "m_cnt"} & set(verdict.chosen)


def test_an_open_branch_is_chosen(ctx: Context) -> None:
    verdict = judge(ctx, {"base_m": 256})
    least = min(b.latency_ticks for b in tileproof.solve(CASE, rules="none", pins=["base_m=256"]).branches.values() if b.latency_ticks)  # fmt: skip
    assert verdict.chosen[0] == "branch"
    assert verdict.evaluation is not None
    assert verdict.evaluation.ticks == least


def test_given_fields_that_cannot_be_met_give_a_minimal_conflict(ctx: Context) -> None:
    verdict = judge(ctx, {"branch": "asw_basic", "base_m": 512, "base_n": 176})
    assert verdict.evaluation is None
    assert verdict.rules == ("cap.l0c", "pin.base_m", "pin.base_n")
    assert verdict.violations[0] == "cap.l0c 360448 <= 262144"


def test_a_buffer_count_that_no_plan_has_is_named(ctx: Context) -> None:
    verdict = judge(ctx, {"branch": "asw_basic", "l1_buffers": 3})
    assert not verdict.feasible
    assert "buffer.l1" in verdict.rules or "pin.l1_buffers" in verdict.rules


@pytest.mark.parametrize(("k", "name"), [(0, "asw_basic"), (1, "stream_k"), (64, "special"), (64, "to_matmul")])
def test_a_branch_without_formula_for_the_case_is_no_crash(k: int, name: BranchName) -> None:
    fields = solve_branch(
        Context.of(make_case(batch_a=4, batch_b=1, m=64, n=64, k=64 if name != "special" else 1), get_spec("ascend950pr"), "none"),
        name, SolveOptions(explain=False),
    ).result.plan  # fmt: skip
    ctx = Context.of(make_case(m=64, n=64, k=k), get_spec("ascend950pr"), "none")
    given = {"branch": name} if fields is None else fields.model_dump(exclude_none=True)
    verdict = judge(ctx, given)
    assert not verdict.feasible
    assert verdict.rules[0].startswith("entry.")


def test_evaluation_is_that_of_the_model(ctx: Context, plan: dict[str, Any]) -> None:
    changed = {**plan, "base_k": 32, "step_ka": 4, "step_kb": 4, "depth_a1": 8, "depth_b1": 8, "k_l1": 128}
    verdict = judge(ctx, changed)
    assert verdict.feasible
    assert verdict.evaluation is not None
    assert verdict.evaluation.ticks == evaluate_plan(ctx, tileproof.Plan(**changed)).ticks
