"""The evaluator against the independent formulas, for random and for solved plans of every branch and form."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from bmm_cases import CASES, PR, Fields, Item, item_id
from sampling import feasible, forms

import tileproof
from tileproof import BmmCase
from tileproof.models.branches import BRANCH_OF
from tileproof.models.evaluation import evaluate_values
from tileproof.models.plan import BranchName, Plan
from tileproof.models.points import Points
from tileproof.solver.api import make_context

from . import formulas

POINTS = 40
TOLERANCE = 1e-5


STAGE_NAMES = ("mmad", "mte1", "fixpipe", "drain", "mte2", "fill1", "fill0", "reduce")


def check(case: BmmCase, plan: Plan, chip: str, environment: Any, *, searched: bool = True) -> None:
    """Evaluator and independent formulas agree on a feasible plan: total, stages, capacities, derived fields."""
    given, fields, numbers = case.model_dump(), plan.model_dump(), formulas.CHIPS[chip]
    judged = tileproof.evaluate(case, plan, hardware=chip, environment=environment)
    assert judged.feasible, judged.violations
    expected = formulas.latency_us(given, numbers, environment, fields)
    assert judged.latency_us == pytest.approx(float(expected), rel=TOLERANCE), fields
    tick_us = formulas.tick_cycles(given, numbers, environment) / formulas.MHZ
    assert judged.latency_us == pytest.approx(float(judged.latency_ticks * tick_us), rel=1e-12)
    if plan.branch == "special":
        return
    stages = formulas.stages(given, numbers, environment, fields)
    for name in STAGE_NAMES:
        # A stage may be short: a few ticks of rounding are allowed beside the relative error.
        cycles = float(getattr(stages, name))
        room = TOLERANCE * cycles + 4 * float(tick_us) * formulas.MHZ
        assert judged.stages_us[name] * formulas.MHZ == pytest.approx(cycles, rel=0, abs=room), (name, fields)
    shown = {c.rule: (c.left, c.right) for c in judged.evaluation.checks if c.rule.startswith("cap.")}
    assert shown == formulas.capacities(given, numbers, fields)
    if searched:
        known = formulas.derived(given, numbers, fields)
        assert {name: fields[name] for name in known} == known


def plans_of(item: Item, wanted: int) -> Iterator[tuple[str, Plan]]:
    """Random feasible plans of every form of a case; where tails may be split, some that split them on top.

    IterBatch has structures with the whole block in L0 in the search's own space: there several batches go to L0 at once.
    """
    name, branch_name, sizes, chip, environment = item
    ctx = make_context(BmmCase(**sizes), chip, "none", environment)
    branch = BRANCH_OF[branch_name]
    rng = np.random.default_rng([7, *name.encode()])
    searched = forms(ctx, branch, complete=False).items() if branch_name == "iter_batch" else ()
    for form, structures in [*forms(ctx, branch).items(), *searched]:
        found = feasible(ctx, branch, structures, rng, wanted)
        if "tail" in form:
            found += feasible(ctx, branch, structures, rng, wanted // 4 + 1, split_tail)
        for structure, values in found:
            yield form, evaluate_values(ctx, branch, {**structure.constants, **values}).plan


def split_tail(points: Points) -> Any:
    """Points that cut the last round."""
    return points.columns["tail_m"] * points.columns["tail_n"] > 1


@pytest.mark.parametrize("item", CASES, ids=item_id)
def test_random_feasible_plans(item: Item) -> None:
    _, _, sizes, chip, environment = item
    case = BmmCase(**sizes)
    checked = 0
    for _, plan in plans_of(item, POINTS):
        check(case, plan, chip, environment)
        checked += 1
    assert checked >= POINTS


@pytest.mark.parametrize("rules", ["none", "v0.4"])
@pytest.mark.parametrize("item", CASES, ids=item_id)
def test_solved_plans(item: Item, rules: Any) -> None:
    _, branch, sizes, chip, environment = item
    case = BmmCase(**sizes)
    result = tileproof.solve(case, hardware=chip, rules=rules, environment=environment, branches=[branch])
    solved = result.branches[branch]
    if rules == "none":
        assert solved.status == "optimal"
    if solved.plan is not None:
        check(case, solved.plan, chip, environment)
        given, numbers = case.model_dump(), formulas.CHIPS[chip]
        expected = formulas.latency_us(given, numbers, environment, solved.plan.model_dump())
        assert solved.latency_us == pytest.approx(float(expected), rel=TOLERANCE)
        assert Fraction(result.tick.removesuffix(" cycle")) == formulas.tick_cycles(given, numbers, environment)


def test_the_cases_cover_every_form() -> None:
    """Between them the random plans reach every form, tail split, buffer setting and bottleneck."""
    seen: set[tuple[Any, ...]] = set()
    for item in CASES:
        for form, plan in plans_of(item, 12):
            seen.add((plan.branch, form))
            seen.add((plan.branch, plan.l0_buffers, plan.l0c_buffers, plan.fixpipe_unitflag))
            seen.add((plan.branch, "tail", plan.tail_strategy))
            seen.add(("l1_buffers", plan.branch, plan.l1_buffers))
            seen.add(("iter_l0 leaves a rest", (plan.iter_l1 or 1) % (plan.iter_l0 or 1) > 0))
    cube: tuple[BranchName, ...] = ("to_matmul", "iter_batch", "merge_batch", "asw_basic", "stream_k")
    wanted: set[tuple[Any, ...]] = {("asw_basic", f"{side}-tail") for side in ("none", "a", "b")}
    wanted |= {("to_matmul", f"{side}-asw_basic-tail") for side in ("none", "a", "b")} | {("to_matmul", "stream_k")}
    wanted |= {("iter_batch", f) for f in ("none-a", "b-none", "a-c", "b-c", "a-d", "b-d", "none-e", "none-f")}
    wanted |= {(b, l0, *l0c) for b in cube for l0 in (1, 2) for l0c in ((2, 0), (1, 1), (1, 0))}
    wanted |= {(b, "tail", t) for b in ("asw_basic", "to_matmul") for t in ("A0", "A1a", "A1b", "B")}
    wanted |= {("iter_l0 leaves a rest", True)}
    wanted |= {("l1_buffers", b, count) for b in cube for count in (1, 2, 4)}
    assert wanted <= seen, wanted - seen


WINDOWS = [item for item in CASES if item[0].startswith(("asw above L2", "asw coarse", "asw cross"))]


@pytest.mark.parametrize("item", WINDOWS, ids=item_id)
def test_window_given_or_derived(item: Item) -> None:
    """A given swizzle_w is used as it is; without one the divisor with the smallest working set is taken."""
    _, _, sizes, chip, environment = item
    case, numbers = BmmCase(**sizes), formulas.CHIPS[chip]
    divisors = [w for w in range(1, numbers.cores + 1) if numbers.cores % w == 0]
    latencies = set()
    for position, (_, plan) in enumerate(plans_of(item, 12)):
        assert plan.swizzle_w == formulas.best_window(numbers, plan.model_dump())
        for window in (None, divisors[position % len(divisors)]):
            changed = plan.model_copy(update={"swizzle_w": window})
            check(case, changed, chip, environment)
            latencies.add((window, tileproof.evaluate(case, changed, hardware=chip).latency_ticks))
    assert len({window for window, _ in latencies}) > 4


def streamk_plan(**fields: Any) -> Plan:
    """A StreamK plan with small tiles."""
    plan: Fields = dict(
        branch="stream_k", grid_b=1, grid_m=1, grid_n=1, grid_k=2, single_core_m=64, single_core_n=64,
        base_m=16, base_n=16, base_k=32, step_ka=8, step_kb=8, l0_buffers=2, l0c_buffers=2, l1_buffers=4,
        fixpipe_unitflag=0,
    )  # fmt: skip
    return Plan(**{**plan, **fields})


@pytest.mark.parametrize(("dtype", "k", "slice_k"), [("int8", 480, 240), ("fp16", 500, 250), ("fp8_e4m3", 480, 241)])
def test_streamk_first_load_is_cut_at_the_slice(dtype: Any, k: int, slice_k: int) -> None:
    """Design 5: "K terms with single_core_k as the plan carries it in place of K and aK in all per-core terms"."""
    case = BmmCase(m=64, n=64, k=k, dtype=dtype)
    check(case, streamk_plan(single_core_k=slice_k), PR, "profiler", searched=False)


def test_streamk_tile_larger_than_the_slice() -> None:
    """Design 5: ``m = min(base_m, aM)``; design 6.6: an evaluated plan may carry base_m > aM."""
    case = BmmCase(m=100, n=100, k=140)
    wide = streamk_plan(grid_m=2, single_core_n=112, single_core_k=70, base_m=128, base_n=112, step_ka=1, step_kb=1)
    check(case, wide, PR, "profiler", searched=False)


@pytest.mark.parametrize("branch", ["asw_basic", "stream_k"])
def test_a_pin_that_a_legal_plan_obeys_is_not_proven_infeasible(branch: BranchName) -> None:
    """Design 6.6: an evaluated plan may carry base_m > aM. What ``evaluate`` accepts, a pin must not rule out."""
    case = BmmCase(m=64, n=64, k=4096)
    free = tileproof.solve(case, rules="none", branches=[branch]).branches[branch].plan
    assert free is not None
    wide = free.model_copy(update={"base_m": 128, "base_k": 64, "step_ka": 1, "step_kb": 1})
    assert tileproof.evaluate(case, wide).feasible
    pinned = tileproof.solve(case, rules="none", branches=[branch], pins={"base_m": 128}).branches[branch]
    assert pinned.status == "optimal"
