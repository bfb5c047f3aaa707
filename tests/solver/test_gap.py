"""The gap ladder: every bound is below every legal plan, and the rungs are in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bmm_cases import CASES, item_id
from random_cases import random_context
from sampling import feasible, forms

import tileproof
from tileproof.hardware import get_spec
from tileproof.models.branches import BRANCH_OF
from tileproof.models.case import make_case
from tileproof.models.context import Context
from tileproof.models.evaluation import evaluate_values
from tileproof.models.plan import BRANCHES, BranchName
from tileproof.solver.review.gap import LEVELS, gap_of, gap_of_result, roofline_ticks, traffic_bytes, traffic_ticks
from tileproof.solver.search.branches import breaks_entry


def check_bounds(ctx: Context, wanted: int) -> int:
    """Bounds against random legal plans of every form of every branch; how many were seen."""
    seen = 0
    rng = np.random.default_rng(7)
    bounds = roofline_ticks(ctx), traffic_ticks(ctx)
    for name in BRANCHES:
        if breaks_entry(ctx, name):
            continue
        branch = BRANCH_OF[name]
        for form, structures in forms(ctx, branch).items():
            for structure, values in feasible(ctx, branch, structures, rng, wanted, tries=300):
                found = evaluate_values(ctx, branch, {**structure.constants, **values})
                assert found.feasible
                assert max(bounds) <= found.ticks, f"{name} {form}: {values}"
                seen += 1
    return seen


@pytest.mark.parametrize("name", BRANCHES)
def test_bounds_are_below_every_plan_of_small_cases(name: BranchName) -> None:
    assert sum(check_bounds(random_context(name, seed), 3) for seed in range(14)) > 20


@pytest.mark.parametrize("item", CASES[::2], ids=item_id)
def test_bounds_are_below_every_plan(item: Any) -> None:
    _, _, fields, chip, environment = item
    assert check_bounds(Context.of(make_case(**fields), get_spec(chip), "none", environment), 2)


def test_fp32_output_leaves_at_the_drain_rate_of_l0c() -> None:
    """Output over the L2 write rate alone would not be a bound: fixpipe drains fp32 faster than that."""
    case = make_case(m=8192, n=4096, k=16, dtype="fp16", out_dtype="fp32")
    result = tileproof.solve(case, rules="none", branches=["asw_basic"])
    ctx = Context.of(case, get_spec("ascend950pr"), "none", "profiler")
    best = result.branches["asw_basic"].latency_ticks
    assert best is not None
    naive = ctx.head_ticks + int(ctx.output_total * ctx.ticks_per_cycle / ctx.spec.l2_write_bytes_per_cycle)
    assert roofline_ticks(ctx) <= best < naive


def test_traffic_bound_exceeds_the_compulsory_bytes_where_memory_is_small() -> None:
    ctx = Context.of(make_case(m=16384, n=16384, k=16384), get_spec("ascend950pr"), "none", "profiler")
    assert traffic_bytes(ctx) > 2 * (ctx.unique_a + ctx.unique_b)


def test_rungs_are_in_order() -> None:
    case = make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024)
    result = tileproof.solve(case, rules="none")
    ctx = Context.of(case, get_spec("ascend950pr"), "none", "profiler")
    for name, branch in result.branches.items():
        if branch.latency_ticks is None:
            continue
        gap = gap_of(ctx, name, branch.latency_ticks)
        assert gap.branch_optimum == branch.latency_ticks
        assert gap.optimum == min(b.latency_ticks for b in result.branches.values() if b.latency_ticks is not None)
        assert gap.optimum >= max(gap.roofline, gap.traffic)
        assert [rung[0] for rung in gap.rungs()] == list(LEVELS)
    winner = gap_of_result(result, get_spec("ascend950pr"))
    assert winner is not None
    assert winner.to_json()["optimum"]["ratio"] == 1.0


def test_with_pins_the_optima_are_those_without() -> None:
    case = make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024)
    pinned = tileproof.solve(case, rules="none", branches=["asw_basic"], pins=["base_m=64"])
    gap = gap_of_result(pinned, get_spec("ascend950pr"))
    assert gap is not None
    assert gap.branch_optimum is not None
    assert gap.branch_optimum < gap.ticks


def test_an_empty_output_has_no_bound_above_zero() -> None:
    ctx = Context.of(make_case(m=0, n=4, k=4), get_spec("ascend950pr"), "none", "profiler")
    assert (roofline_ticks(ctx), traffic_ticks(ctx)) == (0, 0)
