"""Optima confirmed by other solvers on plain models, without any bound, cut or hint of this package."""

from __future__ import annotations

from typing import Any

import pytest
from rivals import SAME, Solver, cpmpy_joint, highs, judged_ticks, ours, run

from tileproof import BmmCase
from tileproof.models.branches import BRANCH_OF
from tileproof.models.plan import BranchName
from tileproof.models.rules import Profile
from tileproof.solver.api import make_context

TINY: list[tuple[BranchName, Profile, dict[str, Any]]] = [
    ("asw_basic", "none", dict(batch_a=(1,), batch_b=(40,), m=24, n=40, k=48, dtype="fp32")),
    ("asw_basic", "v0.4", dict(batch_a=(17,), batch_b=(17,), m=1, n=32, k=96, dtype="int8", bias="int32")),
    ("merge_batch", "none", dict(batch_a=(100,), batch_b=(100,), m=8, n=24, k=48)),
    ("stream_k", "none", dict(batch_a=(1,), batch_b=(1,), m=16, n=32, k=128)),
]


def optimum(solver: Solver, name: BranchName, rules: Profile, case: BmmCase) -> int:
    """Ticks of the plan that a solver proves optimal."""
    attempt = run(solver, make_context(case, rules=rules), BRANCH_OF[name], 60.0)
    assert attempt.proven, attempt.note
    ticks = judged_ticks(case, rules, BRANCH_OF[name], attempt.found[-1][1])
    assert ticks is not None
    return ticks


@pytest.mark.parametrize(("name", "rules", "sizes"), TINY)
def test_cpmpy_proves_the_same_optimum(name: BranchName, rules: Profile, sizes: dict[str, Any]) -> None:
    pytest.importorskip("cpmpy", reason="cpmpy is not installed")
    case = BmmCase(**sizes)
    assert optimum(cpmpy_joint, name, rules, case) == optimum(ours, name, rules, case)


@pytest.mark.parametrize(("name", "rules", "sizes"), TINY)
def test_highs_proves_the_same_optimum(name: BranchName, rules: Profile, sizes: dict[str, Any]) -> None:
    pytest.importorskip("highspy", reason="highspy is not installed")
    case = BmmCase(**sizes)
    assert optimum(highs, name, rules, case) == pytest.approx(optimum(ours, name, rules, case), rel=SAME)
