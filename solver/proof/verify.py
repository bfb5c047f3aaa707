"""Confirm the verdicts of a result without CP-SAT."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from ...hardware import NpuSpec
from ...models.context import Context
from ...models.pins import Pin, parse_pins
from ...models.plan import BranchName
from ..api import make_context
from ..result import BranchResult, CaseResult, Status
from ..search.branches import asked_branch, entry_checks
from .certificate import evaluate_in
from .enumerator import Enumerator


@dataclass(frozen=True)
class VerifyLine:
    """Whether the verdict of one branch was confirmed, and by what."""

    branch: BranchName
    ok: bool
    text: str


def verify_result(
    result: CaseResult,
    *,
    hardware: str | os.PathLike[str] | NpuSpec,
    progress: Callable[[str], None] | None = None,
) -> list[VerifyLine]:
    """Re-check every branch: plans by the evaluator, optimality and infeasibility by enumeration."""
    ctx = make_context(result.case, hardware, result.rules, result.environment)
    pins = parse_pins(result.pins)
    return [verify_branch(ctx, name, branch, progress, pins) for name, branch in result.branches.items()]


def verify_branch(
    ctx: Context,
    name: BranchName,
    result: BranchResult,
    progress: Callable[[str], None] | None = None,
    pins: tuple[Pin, ...] = (),
) -> VerifyLine:
    """Re-check one branch."""
    failed = [check.rule for check in entry_checks(ctx, name) if not check.holds]
    if failed:
        ok = result.status is Status.INFEASIBLE
        return VerifyLine(name, ok, f"the case breaks {', '.join(failed)}")
    if result.status is Status.UNKNOWN:
        return VerifyLine(name, True, "nothing was claimed")
    branch = asked_branch(name, pins)
    if result.plan is not None:
        evaluation = evaluate_in(ctx, branch, result.plan)
        if evaluation.violations:
            return VerifyLine(name, False, f"the plan breaks {', '.join(c.rule for c in evaluation.violations)}")
        if evaluation.ticks != result.latency_ticks:
            text = f"the plan takes {evaluation.ticks} ticks, the result says {result.latency_ticks}"
            return VerifyLine(name, False, text)
    ceiling = None if result.bound_ticks is None else result.bound_ticks - 1

    def report(plans: int) -> None:
        if progress is not None:
            progress(f"{name}: {plans} plans")

    listed = Enumerator(ctx, branch, ceiling=ceiling, progress=report).run()
    found = listed.best is not None and (ceiling is None or listed.best.ticks <= ceiling)
    if found and listed.best is not None:
        text = f"a plan of {listed.best.ticks} ticks exists"
        return VerifyLine(name, False, text + ("" if ceiling is None else f", below the bound {result.bound_ticks}"))
    claim = "no plan obeys the rules" if result.status is Status.INFEASIBLE else "no plan is below the bound"
    return VerifyLine(name, True, f"{claim} ({listed.plans} plans evaluated, the rest excluded by bounds)")
