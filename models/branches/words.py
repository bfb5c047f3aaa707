"""The deciding parameters of a Cube tiling in words."""

from __future__ import annotations

from ..plan import Plan


def cube_words(plan: Plan, own: str) -> str:
    """What every Cube tiling has, after what only its branch has (``own``)."""
    parts = [own, f"base {plan.base_m}x{plan.base_n}x{plan.base_k}", _steps(plan), _buffers(plan)]
    if plan.tail_m and plan.tail_n and plan.tail_m * plan.tail_n > 1:
        parts.append(f"tail {plan.tail_m}x{plan.tail_n}")
    if plan.full_load in ("a", "b"):
        parts.append(f"{plan.full_load.upper()} stays in L1")
    parts.append(f"{plan.used_core_num} cores")
    return ", ".join(part for part in parts if part)


def _steps(plan: Plan) -> str:
    steps = f"step k {plan.step_ka}/{plan.step_kb}"
    if max(plan.step_m or 1, plan.step_n or 1) > 1:
        steps += f", m/n {plan.step_m}/{plan.step_n}"
    return steps


def _buffers(plan: Plan) -> str:
    flag = " unit flag" if plan.fixpipe_unitflag else ""
    return f"L1 x{plan.l1_buffers}, L0 x{plan.l0_buffers}, L0C x{plan.l0c_buffers}{flag}"
