"""One plan, evaluated exactly: every rule with both sides, every stage in ticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..hardware.errors import InputError
from .algebra import Algebra, IntAlgebra, RuleCheck
from .branches import BRANCH_OF, Branch
from .branches.base import L1_BUFFERS, Word
from .context import ATOM, Context
from .latency import BOTTLENECKS, Outcome
from .plan import Plan

#: Levels of the tie-break among equally fast plans: (decision or count, +1 to prefer larger values).
PREFERENCE: tuple[tuple[str, int], ...] = (
    ("hbm_units", -1), ("l0_buffers", 1), ("uk", 1), ("k_l1", 1), ("l1_buffers", 1), ("ub_buffers", 1),
    ("used_core_num", 1), ("um", 1), ("un", 1), ("step_ka", -1), ("step_k", -1), ("step_kb", -1), ("step_part", -1),
    ("tail_m", -1), ("tail_n", -1), ("iter_l1", -1), ("iter_l0", 1), ("merge_b0", -1), ("b_l1", -1), ("grid_b", -1),
    ("grid_m", -1), ("grid_n", -1), ("grid_k", -1),
)  # fmt: skip
_FIELD_PREFERENCE: tuple[tuple[str, int], ...] = (
    ("l0_buffers", 1), ("base_k", 1), ("k_l1", 1), ("l1_buffers", 1), ("ub_buffers", 1), ("used_core_num", 1),
    ("base_m", 1), ("base_n", 1), ("step_ka", -1), ("step_kb", -1), ("step_m", -1), ("step_n", -1), ("tail_m", -1),
    ("tail_n", -1), ("iter_l1", -1), ("iter_l0", 1), ("merge_b0", -1), ("b_l1", -1), ("grid_b", -1), ("grid_m", -1),
    ("grid_n", -1), ("grid_k", -1),
)  # fmt: skip


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
        numbers = tuple(-sign * (getattr(plan, name) or 0) for name, sign in _FIELD_PREFERENCE)
        words = (plan.l1_form or "", plan.full_load or "", plan.inner_branch or "")
        return (self.hbm_units, *numbers, *words, -(plan.l0c_buffers or 0), -(plan.fixpipe_unitflag or 0))


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
    for field, atom in (("base_m", ATOM), ("base_n", ATOM), ("base_k", ctx.atom_k)):
        value = getattr(plan, field)
        if value is not None and plan.branch != "special":
            checks.append(RuleCheck(f"align.{field}", value % atom, "==", 0))
            checks.append(RuleCheck(f"cover.{field}", value, ">=", 1))
    for field in ("single_core_m", "single_core_n"):
        value = getattr(plan, field)
        if value is not None and "stream_k" in (plan.branch, plan.inner_branch):
            checks.append(RuleCheck(f"align.{field}", value % ATOM, "==", 0))
    for rule, value, allowed in (
        ("buffer.l0", plan.l0_buffers, (1, 2)),
        ("buffer.l0c", plan.l0c_buffers, (1, 2)),
        ("buffer.l1", plan.l1_buffers, L1_BUFFERS),
        ("buffer.ub", plan.ub_buffers, (1, 2)),
    ):
        if value is not None:
            checks.append(RuleCheck(rule, value, "==", min(allowed, key=lambda n, v=value: abs(n - v))))
    return tuple(checks)


def evaluate_plan(ctx: Context, plan: Plan) -> Evaluation:
    """Evaluate a plan as it stands.

    Raises:
        InputError: a field that the branch needs is missing or not positive.
    """
    branch = BRANCH_OF[plan.branch]
    alg = IntAlgebra()
    branch.entry(alg, ctx)
    if any(check.rule in NO_FORMULA and not check.holds for check in alg.checks):
        return Evaluation(plan, 0, dict.fromkeys(BOTTLENECKS, 0), tuple(alg.checks), 0)
    values = branch.values(ctx, plan)
    for name, value in values.items():
        if value is None and name not in _OPTIONAL and not (name.startswith("step") and _derived_step(plan, name)):
            raise InputError(f"plan: {_FIELD_OF.get(name, name)} is missing; branch {plan.branch} needs it")
        if isinstance(value, int) and value < 1 and name not in ("fixpipe_unitflag", *_EMPTY_OK):
            raise InputError(f"plan: {_FIELD_OF.get(name, name)} is {value}; allowed is 1 or more")
    return evaluate_values(ctx, branch, values, plan_checks(ctx, plan))


#: Case rules without which a branch has no formulas at all.
NO_FORMULA = (
    "entry.k_at_least_2", "entry.output_not_empty", "entry.k_at_most_1", "entry.batch_to_fold", "entry.fold_one_side",
)  # fmt: skip
_OPTIONAL = ("swizzle_w", "single_m", "single_n")
_EMPTY_OK = ("used", "rows", "runs")
_FIELD_OF = {
    "um": "base_m", "un": "base_n", "uk": "base_k", "step_k": "step_ka", "used": "used_core_num", "rows": "base_m",
    "runs": "base_n", "step_part": "step_m or step_n",
}  # fmt: skip


def _derived_step(plan: Plan, name: str) -> bool:
    """Steps that follow from the others: of a resident operand, or not used by the L1 form."""
    if plan.branch == "iter_batch":
        streamed = (
            {"step_ka", "step_kb"}
            if plan.l1_form in ("e", "f")
            else {"step_part"}
            if plan.l1_form in ("c", "d")
            else set()
        )
        return name not in streamed
    return name == f"step_k{plan.full_load}"
