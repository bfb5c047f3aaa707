"""Confirm the verdicts of a result without CP-SAT."""

from __future__ import annotations

import os
from collections.abc import Callable

from ...hardware import NpuSpec
from ...models.pins import parse_pins
from ..api import make_context
from ..result import BranchResult, CaseResult
from .check import BranchCheck, CheckLine, Claim

__all__ = ["verify_branch", "verify_result"]


def verify_result(
    result: CaseResult,
    *,
    hardware: str | os.PathLike[str] | NpuSpec,
    progress: Callable[[str], None] | None = None,
) -> list[CheckLine]:
    """Re-check every branch, a line for each: plans by the evaluator, optimality and infeasibility by enumeration."""
    ctx = make_context(result.case, hardware, result.rules, result.environment)
    pins = parse_pins(result.pins)

    def report(name: str, plans: int) -> None:
        if progress is not None:
            progress(f"{name}: {plans} plans")

    return [
        verify_branch(BranchCheck(ctx, name, pins, progress=report), branch) for name, branch in result.branches.items()
    ]


def verify_branch(check: BranchCheck, result: BranchResult) -> CheckLine:
    """The first line about a branch that does not hold, else the last one: what was shown of all its plans."""
    line = check.line(True, "nothing was claimed")
    for line in check.verdict(Claim.of(result)):
        if not line.ok:
            return line.told
    return check.line(True, f"the case breaks {', '.join(check.broken)}") if check.broken else line
