"""The solver's verdict against a listing of every plan: same optimum, same plan, same infeasibility.

The exhaustive listing shares the formulas with the solver but neither CP-SAT nor the interval bounds, and it leaves no
field out as dominated. The default run takes the first seeds of each branch; ``-m sweep`` runs 300 a branch.
"""

from __future__ import annotations

import pytest
from random_cases import random_context

from tileproof.models.branches import BRANCH_OF
from tileproof.models.plan import BRANCHES, BranchName
from tileproof.solver.proof.enumerator import Enumerator
from tileproof.solver.result import Status
from tileproof.solver.search.branches import breaks_entry
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch

_DEFAULT = {"to_matmul": 8, "iter_batch": 30, "stream_k": 25, "asw_basic": 25, "merge_batch": 40, "special": 40}


def _check(branch: BranchName, seed: int) -> Status:
    ctx = random_context(branch, seed)
    solved = solve_branch(ctx, branch, SolveOptions())
    best = None
    if not breaks_entry(ctx, branch):
        best = Enumerator(ctx, BRANCH_OF[branch], exhaustive=True).run().best
    if best is None:
        assert solved.result.status is Status.INFEASIBLE, f"{branch} seed {seed}: no plan exists"
    else:
        assert solved.result.status is Status.OPTIMAL, f"{branch} seed {seed}: a plan exists"
        assert solved.result.latency_ticks == best.ticks, f"{branch} seed {seed}"
        assert solved.result.plan == best.plan, f"{branch} seed {seed}"
    return solved.result.status


@pytest.mark.parametrize("branch", BRANCHES)
def test_same_answer_as_the_exhaustive_listing(branch: BranchName) -> None:
    statuses = [_check(branch, seed) for seed in range(_DEFAULT[branch])]
    assert Status.OPTIMAL in statuses, "the seeds must hold feasible cases"


@pytest.mark.sweep
@pytest.mark.parametrize("branch", BRANCHES)
def test_same_answer_on_300_cases(branch: BranchName) -> None:
    statuses = [_check(branch, seed) for seed in range(300)]
    assert Status.OPTIMAL in statuses


@pytest.mark.parametrize("branch", ("iter_batch", "merge_batch", "asw_basic", "stream_k"))
def test_bounded_listing_agrees_with_the_exhaustive_one(branch: BranchName) -> None:
    """The listing used by ``--verify`` skips parts by interval bounds; it must not lose the optimum."""
    for seed in range(15):
        ctx = random_context(branch, seed)
        if breaks_entry(ctx, branch):
            continue
        full = Enumerator(ctx, BRANCH_OF[branch], exhaustive=True).run()
        bounded = Enumerator(ctx, BRANCH_OF[branch]).run()
        assert (full.best is None) == (bounded.best is None), f"{branch} seed {seed}"
        if full.best is not None and bounded.best is not None:
            assert (full.best.ticks, full.best.plan) == (bounded.best.ticks, bounded.best.plan), f"{branch} seed {seed}"
