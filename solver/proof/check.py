"""What is claimed of a branch, checked again without CP-SAT: its plan by the evaluator, the rest by enumeration.

``solve --verify`` and ``tileproof verify`` both ask :meth:`BranchCheck.verdict`; the one claims what a result says, the
other what a certificate says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from ...models.branches import Branch
from ...models.context import Context
from ...models.evaluation import Evaluation, evaluate_values, plan_checks
from ...models.pins import Pin
from ...models.plan import BranchName, Plan
from ..result import BranchResult, Status
from ..search.branches import asked_branch, entry_checks
from .enumerator import Enumeration, Enumerator

__all__ = ["BranchCheck", "CheckLine", "Claim", "evaluate_in", "plan_record", "sides_record"]

#: Plans at once when looking for one that shows that a rule is needed.
_PROBE: Final = 4_000


@dataclass(frozen=True)
class CheckLine:
    """One thing that was checked: where, whether it holds, whether all of it was covered, and what was found."""

    where: str
    ok: bool
    text: str
    complete: bool = True

    @property
    def told(self) -> CheckLine:
        """The line as it is shown: what does not hold is said not to be so."""
        return self if self.ok else replace(self, text=f"not so: {self.text}")


@dataclass(frozen=True)
class Claim:
    """What is said of a branch.

    ``plan`` takes ``ticks``; no plan is below ``bound_ticks``, which a line calls ``below``; an infeasible branch has
    none at all. ``recorded`` is the plan as plain data, with both sides of every rule, where those were written down.
    """

    status: Status
    plan: Plan | None = None
    ticks: int | None = None
    bound_ticks: int | None = None
    below: str = "the bound"
    recorded: tuple[Any, Any] | None = None

    @classmethod
    def of(cls, result: BranchResult) -> Claim:
        """What a result says; of a branch of unknown status it says nothing."""
        if result.status is Status.UNKNOWN:
            return cls(result.status)
        return cls(result.status, result.plan, result.latency_ticks, result.bound_ticks)


def plan_record(plan: Plan) -> dict[str, Any]:
    """A plan as plain data, without the fields that it does not have."""
    return {name: value for name, value in plan.model_dump(mode="json").items() if value is not None}


def sides_record(evaluation: Evaluation) -> list[list[Any]]:
    """Both sides of every rule as plain data."""
    return [[check.rule, check.left, check.operator, check.right] for check in evaluation.checks]


def evaluate_in(ctx: Context, branch: Branch, plan: Plan) -> Evaluation:
    """Evaluate a plan by the formulas of a branch with its pins."""
    if not ctx.batch * ctx.m * ctx.n:
        (structure,) = branch.structures(ctx, complete=True)
        return evaluate_values(ctx, branch, structure.constants)
    return evaluate_values(ctx, branch, branch.values(ctx, plan), plan_checks(ctx, plan))


class BranchCheck:
    """Checks of one branch of one case.

    Args:
        ctx: the case.
        name: the branch.
        pins: rules of the user.
        budget: plans to enumerate for each claim; what was covered is said when it ends.
        progress: called with the branch and the plans listed so far.
    """

    def __init__(
        self,
        ctx: Context,
        name: BranchName,
        pins: tuple[Pin, ...] = (),
        *,
        budget: int | None = None,
        progress: Callable[[str, int], None] | None = None,
    ) -> None:
        self.ctx = ctx
        self.name = name
        self.branch = asked_branch(name, pins)
        self.broken = [check.rule for check in entry_checks(ctx, name) if not check.holds]
        self._budget = budget
        self._progress = progress

    def line(self, ok: bool, text: str) -> CheckLine:
        """A line about the branch, all of it covered."""
        return CheckLine(self.name, ok, text)

    def verdict(self, claim: Claim) -> Iterator[CheckLine]:
        """The plan, and that there is no better one or none at all.

        Raises:
            pydantic.ValidationError: a field that follows from those of the plan is not possible.
        """
        if claim.plan is not None:
            yield from self._plan(claim, claim.plan)
        if claim.status is Status.OPTIMAL:
            same = claim.bound_ticks == claim.ticks
            yield self.line(same, "the bound equals the latency of an optimal plan")
        if self.broken:
            ok = claim.status in (Status.INFEASIBLE, Status.UNKNOWN)
            yield self.line(ok, f"infeasible, the case breaks {', '.join(self.broken)}")
        elif claim.status is Status.INFEASIBLE:
            yield self.nothing("no plan obeys the rules")
        elif claim.bound_ticks is not None:
            yield self.nothing(f"no plan is below {claim.below}", ceiling=claim.bound_ticks - 1)

    def _plan(self, claim: Claim, plan: Plan) -> Iterator[CheckLine]:
        """That a plan is one of the branch, obeys its rules, takes so long and is recorded as it is."""
        try:
            evaluation = evaluate_in(self.ctx, self.branch, plan)
        except ValidationError:
            raise
        except (TypeError, ValueError, ArithmeticError, LookupError):
            yield self.line(False, "the plan is complete and its numbers are possible")
            return
        yield self.line(plan.branch == self.name, f"the plan is one of {self.name}")
        failed = [check.rule for check in evaluation.violations]
        yield self.line(not failed, f"the plan breaks no rule{': ' + ', '.join(failed) if failed else ''}")
        same = evaluation.ticks == claim.ticks
        yield self.line(same, f"the plan takes {claim.ticks} ticks" + ("" if same else f" but {evaluation.ticks}"))
        if claim.recorded is not None:
            whole, sides = claim.recorded
            follow = plan_record(evaluation.plan) == whole
            yield self.line(follow, "the derived fields of the plan follow from the others")
            yield self.line(sides_record(evaluation) == sides, "both sides of every rule are as recorded")

    def nothing(self, claim: str, *, ceiling: int | None = None, only: frozenset[str] | None = None) -> CheckLine:
        """That there is no plan: none at or below ``ceiling`` ticks, none that obeys ``only`` these rules."""
        listed = self._listed(ceiling=ceiling, only=only)
        best = listed.best
        if best is not None and (ceiling is None or best.ticks <= ceiling):
            return self.line(False, f"{claim}, but one of {best.ticks} ticks exists")
        if not listed.complete:
            text = f"{claim} among the {listed.examined} (partial) plans of the budget; the rest was not covered"
            return CheckLine(self.name, True, text, complete=False)
        return self.line(True, f"{claim} ({listed.plans} plans evaluated, the rest excluded by bounds)")

    def some(self, only: frozenset[str]) -> bool | None:
        """Whether there is a plan that obeys these rules; None when the budget came first."""
        listed = Enumerator(self.ctx, self.branch, budget=self._budget, only=only, first=True, chunk=_PROBE).run()
        return True if listed.best is not None else False if listed.complete else None

    def _listed(self, *, ceiling: int | None, only: frozenset[str] | None) -> Enumeration:
        def report(plans: int) -> None:
            if self._progress is not None:
                self._progress(self.name, plans)

        return Enumerator(
            self.ctx, self.branch, ceiling=ceiling, budget=self._budget, only=only, first=True, progress=report
        ).run()
