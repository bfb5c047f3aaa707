"""One plan, evaluated exactly: every rule with both sides, every stage in ticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..hardware.errors import InputError
from .algebra import Algebra, IntAlgebra, RuleCheck
from .branches import BRANCH_OF, Branch
from .branches.base import Word
from .context import Context
from .fields import BOUNDED, FIELD_PREFERENCE, FIELDS, TILE, field_of, least_value
from .latency import BOTTLENECKS, Outcome
from .plan import Plan


@dataclass(frozen=True)
class Evaluation:
    """A plan with its ticks, stages and rule checks."""

    plan: Plan
    ticks: int
    stages: Mapping[str, int]
    checks: tuple[RuleCheck, ...]
    hbm_units: int

    @property
    def violations(self) -> tuple[RuleCheck, ...]:
        """Rules that do not hold."""
        return tuple(check for check in self.checks if not check.holds)

    @property
    def feasible(self) -> bool:
        """Whether every rule holds."""
        return not self.violations

    @property
    def bottleneck(self) -> str:
        """Largest stage; ``none`` of an empty output, which takes no time."""
        largest = max(BOTTLENECKS, key=lambda name: self.stages[name])
        return largest if self.stages[largest] else "none"

    @property
    def preference(self) -> tuple[Any, ...]:
        """Tie-break key: among equally fast plans the smallest one is *the* answer (design section 8)."""
        plan = self.plan
        given = ((getattr(plan, name), sign) for name, sign in FIELD_PREFERENCE)
        return (self.hbm_units, *(-sign * (value or 0) if sign else value or "" for value, sign in given))


def build_plan(alg: Algebra, ctx: Context, branch: Branch, values: Mapping[str, Any], outcome: Outcome) -> Plan:
    """The plan of one point of a branch's search space."""
    fields: dict[str, Any] = {}
    for name, value in branch.fields(alg, ctx, values, outcome.counts).items():
        if isinstance(value, Word):
            fields[name] = value.names[int(value.code())]
        elif isinstance(value, str):
            fields[name] = value
        else:
            fields[name] = int(value() if callable(value) else value)
    return Plan.model_validate({"branch": branch.name, "out_dtype_bytes": ctx.so, **fields})


def evaluate_values(
    ctx: Context, branch: Branch, values: Mapping[str, Any], extra: tuple[RuleCheck, ...] = ()
) -> Evaluation:
    """Evaluate one point of a branch's search space."""
    alg = IntAlgebra()
    branch.entry(alg, ctx)
    outcome = branch.formula(alg, ctx, values)
    return Evaluation(
        plan=build_plan(alg, ctx, branch, values, outcome),
        ticks=int(outcome.stages.total),
        stages={name: int(value) for name, value in vars(outcome.stages).items()},
        checks=(*extra, *alg.checks),
        hbm_units=int(outcome.count("hbm_units")),
    )


def plan_checks(ctx: Context, plan: Plan) -> tuple[RuleCheck, ...]:
    """Rules on single fields that the search obeys by construction: alignment and buffer counts."""
    checks = []
    for name in BRANCH_OF[plan.branch].solving(vars(plan)).facts.aligned:
        value = getattr(plan, name)
        if value is not None:
            checks.append(RuleCheck(f"align.{name}", value % FIELDS[name].atom_of(ctx), "==", 0))
            if name in TILE:
                checks.append(RuleCheck(f"cover.{name}", value, ">=", 1))
    for field in BOUNDED:
        value = getattr(plan, field.name)
        if value is not None:
            checks.append(RuleCheck(field.rule, value, "==", field.nearest(value)))
    return tuple(checks)


def evaluate_plan(ctx: Context, plan: Plan) -> Evaluation:
    """Evaluate a plan as it stands.

    Raises:
        InputError: a field that the branch needs is missing or not positive.
    """
    branch = BRANCH_OF[plan.branch]
    alg = IntAlgebra()
    branch.entry(alg, ctx)
    if any(check.rule in branch.facts.no_formula and not check.holds for check in alg.checks):
        return Evaluation(plan, 0, dict.fromkeys(BOTTLENECKS, 0), tuple(alg.checks), 0)
    values, optional = branch.values(ctx, plan), branch.optional(vars(plan))
    for name, value in values.items():
        if value is None and name not in optional:
            raise InputError(f"plan: {field_of(name)} is missing; branch {plan.branch} needs it")
        least = 0 if name in branch.facts.zero else least_value(name)
        if isinstance(value, int) and value < least:
            raise InputError(f"plan: {field_of(name)} is {value}; allowed is {least} or more")
    return evaluate_values(ctx, branch, values, plan_checks(ctx, plan))
