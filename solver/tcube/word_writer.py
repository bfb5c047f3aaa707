"""A plan as the int32 words of the shipped kernels, where their struct can express it."""

from __future__ import annotations

from typing import Final

from ...hardware import NpuSpec
from ...hardware.errors import InputError
from ...models.case import BmmCase
from ...models.context import ACC_BYTES, ATOM, ceil_to
from ...models.plan import Plan
from .convert import plan_to_tcube
from .words import STRUCTS

__all__ = ["write_words"]

#: L2 policy of the inputs -> l2CacheDisable: 1 A passes L2 by, 2 B does, 3 both.
_L2_DISABLE: Final = {"keep": 0, "stream_a": 1, "stream_b": 2, "stream": 3}

_STRUCT_OF: Final = {
    "iter_batch": "IterBatchBasic",
    "merge_batch": "MergeBatchBasic",
    "asw_basic": "MatMulV3Basic",
    "stream_k": "MatMulV3Basic",
}


def write_words(case: BmmCase, plan: Plan, spec: NpuSpec, struct: str | None = None) -> list[int]:
    """Words of a plan; by default of the struct its branch is shipped with.

    Raises:
        InputError: the struct cannot express the plan; the message says what stands in the way.
    """
    if struct is None:
        struct = _usual_struct(case, plan)
    if struct not in STRUCTS:
        raise InputError(f"struct {struct!r} is not known; allowed: {', '.join(STRUCTS)}")
    if struct == "TCubeTiling":
        return plan_to_tcube(case, plan, spec).words()
    if struct != _usual_struct(case, plan):
        raise InputError(f"{struct} has no fields for branch {plan.branch}", column="branch")
    values = dict.fromkeys(STRUCTS[struct], 0)
    values |= {"m": case.m, "n": case.n, "k": case.k, "batch_dim_all": case.batch, "batch_x3": 1}
    values |= {"hf32": int(case.dtype == "hf32"), "l2_cache_disable": _L2_DISABLE[plan.l2_policy_in or "keep"]}
    if struct == "KEqualZero":
        values |= {"total_elements": case.batch * case.m * case.n, "used_core_num": plan.used_core_num or 0}
    elif struct == "IterBatchBasic":
        values |= _iter(plan)
    elif struct == "MergeBatchBasic":
        values |= _merge(plan)
    else:
        values |= _basic(case, plan, spec)
    return [values[name] for name in STRUCTS[struct]]


def _usual_struct(case: BmmCase, plan: Plan) -> str:
    if plan.branch == "special":
        if case.k == 0:
            return "KEqualZero"
        raise InputError(
            "BatchMatMulToMul gives whole batches to vector cores; the plan of K = 1 cuts rows", column="k"
        )
    if plan.branch == "to_matmul":
        raise InputError("a folded case is another matmul; write the words of that one", column="branch")
    struct = _STRUCT_OF.get(plan.branch)
    if struct is None:
        raise InputError(f"no shipped kernel has branch {plan.branch}, so there is no struct for it", column="branch")
    return f"{struct}+batch" if struct == "MatMulV3Basic" and case.batch > 1 else struct


def _need(holds: bool, column: str, message: str) -> None:
    if not holds:
        raise InputError(message, column=column)


def _whole_numbers(plan: Plan, *names: str) -> dict[str, int]:
    values = {}
    for name in names:
        value = getattr(plan, name)
        _need(value is not None, name, "is missing; the words need it")
        values[name] = int(value)
    return values


def _halves(plan: Plan, l1_buffers: tuple[int, ...]) -> None:
    """Buffer counts that the kernels have built in."""
    _need(plan.l0_buffers == 2, "l0_buffers", f"is {plan.l0_buffers}; the shipped kernels always use 2")
    allowed = " or ".join(map(str, l1_buffers))
    _need(plan.l1_buffers in l1_buffers, "l1_buffers", f"is {plan.l1_buffers}; the struct knows {allowed}")


def _iter(plan: Plan) -> dict[str, int]:
    _need(plan.l1_form == "b", "l1_form", f"is {plan.l1_form}; IterBatchBasic keeps whole batches in L1 (form b)")
    _halves(plan, (2,))
    _need(plan.l0c_buffers == 2, "l0c_buffers", f"is {plan.l0c_buffers}; IterBatchBasic always uses 2")
    values = _whole_numbers(plan, "base_m", "base_n", "base_k", "iter_l1", "iter_l0")
    return values | {"iter_batch_l1": values["iter_l1"], "iter_batch_l0": values["iter_l0"]}


def _merge(plan: Plan) -> dict[str, int]:
    _halves(plan, (2,))
    _need(plan.l0c_buffers == 2, "l0c_buffers", f"is {plan.l0c_buffers}; MergeBatchBasic always uses 2")
    values = _whole_numbers(plan, "base_k", "b_l1", "merge_b0", "step_ka")
    return {
        "base_k": values["base_k"],
        "batch_al1": values["b_l1"],
        "batch_bl1": values["b_l1"],
        "batch_l0": values["merge_b0"],
        "k_l1": values["step_ka"] * values["base_k"],
    }


def _basic(case: BmmCase, plan: Plan, spec: NpuSpec) -> dict[str, int]:
    _halves(plan, (2, 4))
    values = _whole_numbers(
        plan, "used_core_num", "base_m", "base_n", "base_k", "step_ka", "step_kb", "single_core_k", "l0c_buffers"
    )
    base_m, base_n, base_k = values["base_m"], values["base_n"], values["base_k"]
    resident = plan.full_load or "none"
    steps = [values[f"step_k{side}"] for side in "ab" if side != resident]
    _need(
        len(set(steps)) == 1, "step_kb", f"step_ka {steps[0]} and step_kb {steps[-1]}; the struct has one kL1 for both"
    )
    split = plan.branch == "stream_k"
    if split:
        _need(plan.grid_b == case.batch, "grid_b", f"is {plan.grid_b}; the kernel gives each batch of its own a slice")
        for name, extent, base in (("m", case.m, base_m), ("n", case.n, base_n)):
            blocks, grid = -(-extent // base), getattr(plan, f"grid_{name}")
            _need(grid == blocks, f"grid_{name}", f"is {grid} for {blocks} blocks; the kernel gives a core one block")
    double_ub = not split and resident != "a" and base_m * base_n * ACC_BYTES <= spec.ub_bytes
    bytes_ = (int(case.dtype == "hf32"), plan.l1_buffers or 0, values["l0c_buffers"], 2 if double_ub else 1)
    return {
        "used_core_num": values["used_core_num"],
        "m_l1": ceil_to(case.m, ATOM) if resident == "a" else min(base_m, ceil_to(case.m, ATOM)),
        "n_l1": ceil_to(case.n, ATOM) if resident == "b" else min(base_n, ceil_to(case.n, ATOM)),
        "k_l1": steps[0] * base_k,
        "base_m": base_m,
        "base_n": base_n,
        "base_k": base_k,
        "single_core_k": values["single_core_k"],
        "m_tail_cnt": plan.tail_m or 1,
        "n_tail_cnt": plan.tail_n or 1,
        "m_base_tail_split": 1,
        "n_base_tail_split": 1,
        "packed": sum(byte << 8 * index for index, byte in enumerate(bytes_)),
        "slice_m": base_m,
        "src_nd_stride": 1,
        "row_stride": 1,
    }
