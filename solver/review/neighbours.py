"""Single changes of a tiling: one parameter moved, every other decision kept, each outcome evaluated exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...models.algebra import IntAlgebra, Value
from ...models.branches import BRANCH_OF, Branch
from ...models.branches.base import Asked
from ...models.context import Context
from ...models.evaluation import Evaluation, evaluate_values, plan_checks
from ...models.plan import Plan
from ...models.rules import OPERATORS

__all__ = ["Broken", "Change", "Legal", "best_change", "shown", "start", "ticks_of"]

#: A change that gains less is none.
_LEAST_GAIN: Final = 0.0005
#: Domains above this are sampled: no branch's time depends on so long a domain but through a few classes.
_DENSE: Final = 512


class Broken(Exception):
    """A rule does not hold; ``rule`` is its id."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


class Legal(IntAlgebra):
    """Evaluation that ends at the first rule that does not hold.

    ``strict`` also keeps to what the search space leaves out (a tile larger than its slice).
    """

    def __init__(self, *, strict: bool = True) -> None:
        super().__init__()
        self._strict = strict

    def within(self, left: Value, operator: str, right: Value) -> None:
        if self._strict and not OPERATORS[operator](left, right):
            raise Broken("")

    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        if not OPERATORS[operator](left, right):
            raise Broken(rule_id)

    def rule_divides(self, rule_id: str, x: Value, y: Value) -> None:
        if max(x, y) % min(x, y):
            raise Broken(rule_id)


@dataclass(frozen=True)
class Change:
    """One parameter moved from ``old`` to ``new``; ``ticks`` before, ``evaluation`` of the changed plan."""

    field: str
    old: Any
    new: Any
    ticks: int
    evaluation: Evaluation

    @property
    def gain(self) -> float:
        """Share of the time that is saved."""
        return 1 - self.evaluation.ticks / self.ticks if self.ticks else 0.0

    @property
    def text(self) -> str:
        """The change in words."""
        return f"{self.field} {shown(self.old)} -> {shown(self.new)} saves {100 * self.gain:.1f} %"


def shown(value: Any) -> str:
    """A plan value as text."""
    return "none" if value is None else str(value)


def start(ctx: Context, plan: Plan) -> dict[str, Any]:
    """Decisions and constants of a plan; steps deeper than K allowed."""
    values = BRANCH_OF[plan.branch].values(ctx, plan)
    if plan.fold is not None:
        values["fold"] = plan.fold
    return {**values, "free_steps": True}


def ticks_of(ctx: Context, branch: Branch, values: Mapping[str, Any], *, strict: bool = True) -> int | None:
    """Time of a point, or None when a rule does not hold."""
    try:
        return int(branch.formula(Legal(strict=strict), ctx, values).stages.total)
    except Broken:
        return None


def best_change(ctx: Context, evaluation: Evaluation, plan: Plan) -> Change | None:
    """The single change that gains most: in time, or for a plan that breaks rules, the fastest legal plan it leads to.

    ``plan`` is the plan as it was given (an open swizzle_w stays derived). Among equal gains the first parameter and
    the nearest value.
    """
    branch = BRANCH_OF[plan.branch]
    here = start(ctx, plan)
    misfits = {check.rule.partition(".")[2] for check in plan_checks(ctx, plan) if not check.holds}
    strict = not evaluation.feasible or ticks_of(ctx, branch, here) is not None
    best: tuple[int, int, int] | None = None
    found: tuple[str, dict[str, Any]] | None = None
    for order, (name, values) in enumerate(_moves(ctx, branch, here)):
        if misfits - {branch.field_of(name, values), name}:
            continue
        ticks = ticks_of(ctx, branch, values, strict=strict)
        if ticks is None:
            continue
        far = abs(values[name] - (here[name] or 0)) if isinstance(values[name], int) else 0
        key = (ticks, far, order)
        if best is None or key < best:
            best, found = key, (name, values)
    if best is None or found is None:
        return None
    if evaluation.feasible and best[0] >= evaluation.ticks * (1 - _LEAST_GAIN):
        return None
    name, values = found
    changed = evaluate_values(ctx, branch, values)
    field = branch.field_of(name, values)
    return Change(field, getattr(plan, field), getattr(changed.plan, field), evaluation.ticks, changed)


def _moves(ctx: Context, branch: Branch, here: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every point that differs from ``here`` in one parameter: (its name, the point)."""
    seen: set[tuple[str, Any]] = set()
    for structure in branch.structures(ctx, complete=True):
        differs = {name for name, value in structure.constants.items() if here.get(name) != value}
        if not differs:
            for decision in structure.decisions:
                dropped = branch.facts.follows.get(decision.name)
                kept = {name: value for name, value in here.items() if name != dropped}
                for value in _values(decision.domain()):
                    if value != here.get(decision.name) and (decision.name, value) not in seen:
                        seen.add((decision.name, value))
                        yield decision.name, {**kept, decision.name: value}
            continue
        name = next((moved[0] for moved in branch.facts.moves if moved[0] in differs <= set(moved)), None)
        if name is not None and all(here.get(decision.name) is not None for decision in structure.decisions):
            yield name, {**here, **structure.constants}
    solving = branch.solving(here)
    for name in solving.facts.either:
        for given in solving.variants(ctx, {name: Asked()}):
            if here.get(name) is not None and given.get(name) not in (None, here[name]):
                yield name, {**here, **given}


def _values(domain: Any) -> Any:
    """A domain, its far part sampled."""
    if len(domain) <= _DENSE:
        return domain
    last = len(domain) - 1
    sparse = {m << e for m in (2, 3) for e in range(64) if _DENSE <= m << e < last}
    return [domain[index] for index in sorted({*range(_DENSE), *sparse, last})]
