"""Results in words: the case, the deciding parameters of a plan, its buffers."""

from __future__ import annotations

from typing import Final

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
    if plan.branch == "special":
        return f"{plan.used_core_num} vector cores, tile {plan.base_m}x{plan.base_n}, UB x{plan.ub_buffers}"
    parts = [_of_branch(plan), f"base {plan.base_m}x{plan.base_n}x{plan.base_k}", _steps(plan), _buffers(plan)]
    if plan.tail_m and plan.tail_n and plan.tail_m * plan.tail_n > 1:
        parts.append(f"tail {plan.tail_m}x{plan.tail_n}")
    if plan.full_load in ("a", "b"):
        parts.append(f"{plan.full_load.upper()} stays in L1")
    parts.append(f"{plan.used_core_num} cores")
    return ", ".join(part for part in parts if part)


def _of_branch(plan: Plan) -> str:
    if plan.branch == "to_matmul":
        inner = f", {_grid(plan)}" if plan.inner_branch == "stream_k" else ""
        return f"fold {(plan.fold or '').upper()}, {plan.inner_branch}{inner}"
    if plan.branch == "iter_batch":
        return f"form {plan.l1_form}, {plan.b_core} batches a core, {plan.iter_l1} in L1, {plan.iter_l0} in L0"
    if plan.branch == "merge_batch":
        return f"merge {plan.merge_b0} of {plan.b_core} batches a core, {plan.b_l1} in L1"
    if plan.branch == "stream_k":
        return _grid(plan)
    return ""


def _grid(plan: Plan) -> str:
    return f"grid (b,m,n,k) {plan.grid_b}x{plan.grid_m}x{plan.grid_n}x{plan.grid_k}"


def _steps(plan: Plan) -> str:
    steps = f"step k {plan.step_ka}/{plan.step_kb}"
    if max(plan.step_m or 1, plan.step_n or 1) > 1:
        steps += f", m/n {plan.step_m}/{plan.step_n}"
    return steps


def _buffers(plan: Plan) -> str:
    flag = " unit flag" if plan.fixpipe_unitflag else ""
    return f"L1 x{plan.l1_buffers}, L0 x{plan.l0_buffers}, L0C x{plan.l0c_buffers}{flag}"


def percent(share: float) -> str:
    """A share as text; 100 % only when it is all."""
    return f"{min(round(share * 100), 99) if share < 1 else round(share * 100)} %"


def conflicts_of(branch: BranchResult) -> list[Conflict]:
    """All conflicts of an infeasible branch, the headline first."""
    if not branch.conflict:
        return list(branch.other_conflicts)
    policy = all(member.kind == "policy" for member in branch.conflict)
    return [Conflict(members=branch.conflict, policy_only=policy), *branch.other_conflicts]
