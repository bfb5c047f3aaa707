"""A branch as it is asked for: with its pins, and what the case alone says of it. Needs no OR-Tools."""

from __future__ import annotations

from ...models.algebra import IntAlgebra, RuleCheck
from ...models.branches import BRANCH_OF, Branch
from ...models.context import Context
from ...models.pins import Pin, PinnedBranch
from ...models.plan import BranchName

__all__ = ["asked_branch", "breaks_entry", "entry_checks"]


def asked_branch(name: BranchName, pins: tuple[Pin, ...]) -> Branch:
    """The branch, with the pins as further rules when there are any."""
    return PinnedBranch(BRANCH_OF[name], pins) if pins else BRANCH_OF[name]


def entry_checks(ctx: Context, name: BranchName) -> tuple[RuleCheck, ...]:
    """Rules of a branch that depend on the case alone."""
    alg = IntAlgebra()
    BRANCH_OF[name].entry(alg, ctx)
    return tuple(alg.checks)


def breaks_entry(ctx: Context, name: BranchName) -> bool:
    """Whether a rule that depends on the case alone rules the branch out."""
    return any(not check.holds for check in entry_checks(ctx, name))
