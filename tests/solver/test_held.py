"""Search spaces cut to pins: nothing that a pin allows is lost, and a pinned value however far is in them."""

from __future__ import annotations

import random
from itertools import product

import pytest
from random_cases import random_context

from tileproof.hardware import get_spec
from tileproof.models.branches import BRANCH_OF, Decision
from tileproof.models.case import make_case
from tileproof.models.pins import PinnedBranch, parse_pins
from tileproof.models.plan import BRANCHES, BranchName
from tileproof.solver.api import solve
from tileproof.solver.proof.certificate import check_certificate, make_certificate
from tileproof.solver.proof.enumerator import Enumerator
from tileproof.solver.search.branches import breaks_entry
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch


@pytest.mark.parametrize("decision", [Decision("x", 2, 9), Decision("x", 1, 16, (1, 2, 4, 16))])
def test_a_decision_within_two_values_is_the_part_of_its_domain_between_them(decision: Decision) -> None:
    for lo, hi in product(range(-1, 19), repeat=2):
        expected = [value for value in decision.domain() if lo <= value <= hi]
        left = decision.within(lo, hi)
        assert ([] if left is None else list(left.domain())) == expected


@pytest.mark.parametrize("branch", BRANCHES)
def test_pinned_optimum_is_that_of_the_listing_of_every_plan(branch: BranchName) -> None:
    """The exhaustive listing judges pins by their rules alone; the search and the bounded listing cut domains."""
    rng = random.Random(f"held {branch}")
    fields = ["base_m", "base_n", "base_k", "step_ka", "step_kb", "iter_l1", "merge_b0", "b_l1", "grid_k", "grid_m"]
    checked = 0
    for seed in range(20):
        ctx = random_context(branch, seed)
        if breaks_entry(ctx, branch):
            continue
        low = rng.choice([1, 2, 3, 16, 32])
        text = rng.choice([f"{low}", f"{low}..{4 * low}", f"{low + 1}..{low + 5}"])
        pins = parse_pins([f"{field}={text}" for field in rng.sample(fields, rng.choice([1, 1, 2]))])
        pinned = PinnedBranch(BRANCH_OF[branch], pins)
        solved = solve_branch(ctx, branch, SolveOptions(explain=False, pins=pins)).result
        every = Enumerator(ctx, pinned, exhaustive=True, budget=300_000).run()
        if not every.complete:
            continue
        checked += 1
        bounded = Enumerator(ctx, pinned, chunk=7).run()
        expected = None if every.best is None else every.best.ticks
        assert (None if bounded.best is None else bounded.best.ticks) == expected, (seed, pins)
        assert solved.latency_ticks == expected, (seed, pins)
    assert checked >= 5


@pytest.mark.parametrize(
    ("branch", "pin"),
    [
        ("asw_basic", "base_m=40000000"),
        ("iter_batch", "base_m=16777216"),
        ("iter_batch", "base_n=1048576"),
        ("stream_k", "grid_k=1"),
        ("stream_k", "grid_k=33"),
        ("asw_basic", "step_ka=1000000"),
    ],
)
def test_far_values_name_the_pin_and_verify_in_few_plans(branch: BranchName, pin: str) -> None:
    case = make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024)
    result = solve(case, rules="none", branches=[branch], pins=[pin])
    conflict = result.branches[branch].conflict
    assert conflict is not None
    assert f"pin.{pin.partition('=')[0]}" in [member.rule for member in conflict]
    checked = check_certificate(make_certificate(result, get_spec("ascend950pr")), budget=100_000)
    assert all(line.ok and line.complete for line in checked)
