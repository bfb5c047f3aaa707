"""Results in words: the case, the deciding parameters of a plan, its buffers."""

from __future__ import annotations

from typing import Final

from ..models.branches import BRANCH_OF
from ..models.case import BmmCase
from ..models.plan import Plan
from .result import BranchResult, Conflict

#: Display name of what a capacity rule protects.
BUFFER_NAMES: Final[dict[str, str]] = {
    "cap.l0a": "L0A",
    "cap.l0b": "L0B",
    "cap.l0c": "L0C",
    "cap.l1": "L1",
    "cap.bias_table": "bias table",
    "cap.ub": "UB",
    "cap.workspace_slot": "workspace slot",
    "cap.cores": "cores",
}


def case_line(case: BmmCase) -> str:
    """Shapes as stored, types and what else matters, on one line."""

    def shape(batch: tuple[int, ...], rows: int, columns: int) -> str:
        return f"[{','.join(map(str, (*batch, rows, columns)))}]"

    a = shape(case.batch_a, case.k, case.m) + "^T" if case.trans_a else shape(case.batch_a, case.m, case.k)
    b = shape(case.batch_b, case.n, case.k) + "^T" if case.trans_b else shape(case.batch_b, case.k, case.n)
    parts = [f"{a} x {b} {case.dtype} -> {case.output_dtype}"]
    if case.bias:
        parts.append(f"bias {case.bias}{' of each batch' if case.bias_batch else ''}")
    if case.format_b != "ND":
        parts.append(f"B in {case.format_b}")
    name = f"{case.case_id}: " if case.case_id else ""
    return name + ", ".join(parts)


def deciding_parameters(plan: Plan) -> str:
    """What tells this tiling from another of its branch, in short."""
    return BRANCH_OF[plan.branch].words(plan)


def percent(share: float) -> str:
    """A share as text; 100 % only when it is all."""
    return f"{min(round(share * 100), 99) if share < 1 else round(share * 100)} %"


def conflicts_of(branch: BranchResult) -> list[Conflict]:
    """All conflicts of an infeasible branch, the headline first."""
    if not branch.conflict:
        return list(branch.other_conflicts)
    policy = all(member.kind == "policy" for member in branch.conflict)
    return [Conflict(members=branch.conflict, policy_only=policy), *branch.other_conflicts]
