"""Plan to ``TCubeTiling`` and back.

The struct describes one matmul of the high-level API; a plan has more (batches, branch, what stays in L1, the cut of
the last round). So a written struct carries the whole plan in ``tileproof``. The struct's own fields win where somebody
edited them afterwards; the fields that follow from others are then left out, for the evaluator to derive.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError

from ...hardware import NpuSpec
from ...hardware.errors import InputError
from ...models.case import BmmCase, explain_validation, make_case
from ...models.plan import BRANCHES, BranchName, Plan
from .struct import FIELDS, INT32, TABLE_1, TCubeTiling, TileproofExtra

__all__ = ["case_of_tcube", "import_notes", "plan_to_tcube", "tcube_to_fields"]

PlanFields = dict[str, int | str]

#: Field of the struct -> field of the plan.
_PLAN_FIELD: Final[dict[str, str]] = {
    "usedCoreNum": "used_core_num", "singleCoreM": "single_core_m", "singleCoreN": "single_core_n",
    "singleCoreK": "single_core_k", "baseM": "base_m", "baseN": "base_n", "baseK": "base_k", "depthA1": "depth_a1",
    "depthB1": "depth_b1", "stepM": "step_m", "stepN": "step_n", "stepKa": "step_ka", "stepKb": "step_kb",
    "iterateOrder": "iterate_order", "dbL0A": "l0_buffers", "dbL0B": "l0_buffers", "dbL0C": "l0c_buffers",
}  # fmt: skip
#: Fields of the plan that nothing else gives (design section 6); the others follow from them.
_DECISIONS: Final = (
    "branch", "inner_branch", "fold", "grid_b", "grid_m", "grid_n", "grid_k", "merge_b0", "iter_l1", "iter_l0", "b_l1",
    "l1_form", "full_load", "base_m", "base_n", "base_k", "l0_buffers", "l0c_buffers", "l1_buffers", "fixpipe_unitflag",
    "tail_m", "tail_n",
)  # fmt: skip


# -- out
def plan_to_tcube(case: BmmCase, plan: Plan, spec: NpuSpec) -> TCubeTiling:
    """The struct of a plan, with the plan in its ``tileproof``.

    Raises:
        InputError: the plan has no Cube work (branch special), or a number does not fit an int32.
    """
    if plan.branch == "special":
        raise InputError(
            "branch special works on the vector cores; TCubeTiling describes Cube work only", column="branch"
        )
    fields = _struct_of(case, plan)
    for name, value in fields.items():
        if not INT32[0] <= value <= INT32[1]:
            raise InputError(f"{name} = {value} does not fit the int32 of TCubeTiling", column=name)
    plan_fields = {name: value for name, value in plan.model_dump().items() if value is not None}
    extra = TileproofExtra(hardware=spec.name, case=case, plan=plan_fields)
    return TCubeTiling.model_validate({name: fields[name] for name in FIELDS if name in fields} | {"tileproof": extra})


def _struct_of(case: BmmCase, plan: Plan) -> dict[str, int]:
    """Fields of the struct that a plan implies; those of absent plan fields are left out."""
    m, n = _extents(case, plan.fold)
    fields: dict[str, int] = dict.fromkeys(TABLE_1, 0)
    fields |= {"M": m, "N": n, "Ka": case.k, "Kb": case.k, "isBias": int(case.bias is not None)}
    for name, source in _PLAN_FIELD.items():
        value = getattr(plan, source)
        if value is None:
            del fields[name]
        else:
            fields[name] = value
    for name, extent in (("singleCoreM", m), ("singleCoreN", n)):  # a slice of stream_k is padded to 16
        if name in fields:
            fields[name] = min(fields[name], extent)
    return fields


def _extents(case: BmmCase, fold: str | None) -> tuple[int, int]:
    """M and N of the matmul: those of the case, the folded one times the batch."""
    return (case.m * case.batch if fold == "a" else case.m, case.n * case.batch if fold == "b" else case.n)


# -- in
def case_of_tcube(tiling: TCubeTiling, **fields: Any) -> BmmCase:
    """The case a struct was written for: its ``tileproof``, else M, N, Ka and bias of the struct, and ``fields``.

    Raises:
        InputError: the struct lacks M, N or Ka, or a field is out of range.
    """
    if tiling.tileproof is not None:
        return tiling.tileproof.case
    for name in ("M", "N", "Ka"):
        if name not in tiling.given:
            raise InputError("is missing; without a case it gives the size", column=name)
    sizes: dict[str, Any] = {"m": tiling.M, "n": tiling.N, "k": tiling.Ka}
    if tiling.isBias:
        sizes["bias"] = "fp32"
    return make_case(**{**sizes, **fields})


def tcube_to_fields(
    tiling: TCubeTiling, case: BmmCase | None = None, branch: BranchName | None = None
) -> tuple[BranchName, PlanFields]:
    """Branch and plan fields (the branch among them) that a struct stands for; everything else is left open.

    A struct with an unchanged ``tileproof`` gives its whole plan. A bare struct is read as ``branch``, by default
    asw_basic (to_matmul where M or N is that of the folded case).

    Raises:
        InputError: the struct is for another case, or its ``tileproof`` is not a plan.
    """
    extra = tiling.tileproof
    if case is None:
        case = case_of_tcube(tiling)
    if extra is None:
        name, fold = _bare_branch(tiling, case, branch)
        _check_sizes(tiling, case, fold)
        fields = _bare_fields(tiling, case, name)
        if fold is not None:
            fields |= {"inner_branch": "asw_basic", "fold": fold}
        return name, {"branch": name, **fields}
    try:
        plan = Plan.model_validate(extra.plan)
    except ValidationError as error:
        field, message = explain_validation(error)
        raise InputError(message, column=f"tileproof.plan.{field}") from None
    if branch is not None and branch != plan.branch:
        raise InputError(f"is {plan.branch}, but {branch} is asked for", column="tileproof.plan.branch")
    _check_sizes(tiling, case, plan.fold)
    return plan.branch, _edited(tiling, case, plan)


def _bare_branch(tiling: TCubeTiling, case: BmmCase, branch: BranchName | None) -> tuple[BranchName, str | None]:
    if branch is not None and branch not in BRANCHES:
        raise InputError(f"branch: {branch!r} is not known; allowed: {', '.join(BRANCHES)}")
    if branch in (None, "to_matmul") and case.batch > 1:
        for fold in "ab":
            m, n = _extents(case, fold)
            if m == tiling.M and n == tiling.N and {"M", "N"} <= tiling.given:
                return "to_matmul", fold
    return branch or "asw_basic", None


def _check_sizes(tiling: TCubeTiling, case: BmmCase, fold: str | None) -> None:
    m, n = _extents(case, fold)
    for name, value in (("M", m), ("N", n), ("Ka", case.k), ("Kb", case.k)):
        if name in tiling.given and getattr(tiling, name) != value:
            raise InputError(f"is {getattr(tiling, name)}, but the case has {value}", column=name)
    if "isBias" in tiling.given and bool(tiling.isBias) != (case.bias is not None):
        has = "a" if case.bias else "no"
        raise InputError(f"is {tiling.isBias}, but the case has {has} bias", column="isBias")


def _bare_fields(tiling: TCubeTiling, case: BmmCase, branch: BranchName) -> PlanFields:
    """The free choices of a plan that a struct states."""
    given = tiling.given
    fields: PlanFields = {
        _PLAN_FIELD[name]: getattr(tiling, name)
        for name in ("baseM", "baseN", "baseK", "dbL0C", "stepKa", "stepKb")
        if name in given
    }
    l0 = [getattr(tiling, name) for name in ("dbL0A", "dbL0B") if name in given]
    if l0:
        fields["l0_buffers"] = min(l0)
    buffers = _buffers(tiling)
    whole = _whole(tiling, case)
    if branch in ("asw_basic", "to_matmul") and len(buffers) == 2:
        fields["full_load"] = whole or "none"
        if whole:
            fields.pop(f"step_k{whole}", None)
    streamed = [count for side, count in buffers.items() if side != whole]
    if streamed:
        fields["l1_buffers"] = min(streamed)
    if branch == "stream_k" and tiling.singleCoreK > 0:
        fields |= {"single_core_k": tiling.singleCoreK, "grid_k": -(-case.k // tiling.singleCoreK)}
    return fields


def _buffers(tiling: TCubeTiling) -> dict[str, int]:
    """L1 buffers of each operand: depth over the product of its steps; absent where that is no whole number."""
    result = {}
    for side, depth, steps in (("a", "depthA1", ("stepM", "stepKa")), ("b", "depthB1", ("stepN", "stepKb"))):
        part = getattr(tiling, steps[0]) * getattr(tiling, steps[1])
        held = getattr(tiling, depth)
        if {depth, *steps} <= tiling.given and part > 0 and held > 0 and held % part == 0:
            result[side] = held // part
    return result


def _whole(tiling: TCubeTiling, case: BmmCase) -> str | None:
    """Operand that lies whole in L1 in one buffer while the other one has several buffers."""
    buffers = _buffers(tiling)
    for side, other, extent, base, step, step_k in (
        ("a", "b", tiling.M or case.m, tiling.baseM, tiling.stepM, tiling.stepKa),
        ("b", "a", tiling.N or case.n, tiling.baseN, tiling.stepN, tiling.stepKb),
    ):
        one_buffer = buffers.get(side) == 1 and buffers.get(other, 1) > 1
        if one_buffer and base * step >= extent and tiling.baseK * step_k >= case.k:
            return side
    return None


def _edited(tiling: TCubeTiling, case: BmmCase, plan: Plan) -> PlanFields:
    """The plan, with what was changed in the struct after it was written."""
    written = _struct_of(case, plan)
    stated: PlanFields = {name: value for name, value in plan.model_dump().items() if value is not None}
    changed = {
        name: getattr(tiling, name)
        for name in _PLAN_FIELD
        if name in tiling.given and getattr(tiling, name) != written.get(name)
    }
    if not changed:
        return stated
    fields = {name: stated[name] for name in _decisions(plan) if name in stated}
    fields |= {_PLAN_FIELD[name]: value for name, value in changed.items()}
    if {"dbL0A", "dbL0B"} & set(changed):
        fields["l0_buffers"] = min(tiling.dbL0A, tiling.dbL0B)
    if {"depthA1", "depthB1"} & set(changed):
        streamed = {count for side, count in _buffers(tiling).items() if side != plan.full_load}
        if streamed:
            fields["l1_buffers"] = min(streamed)
    return fields


def _decisions(plan: Plan) -> tuple[str, ...]:
    """Fields of the plan that were chosen; which steps are, depends on what stays in L1."""
    steps: tuple[str, ...] = tuple(f"step_k{side}" for side in "ab" if plan.full_load != side)
    if plan.branch == "iter_batch":
        if plan.l1_form in ("c", "d"):
            steps = ("step_n",) if plan.full_load == "a" else ("step_m",)
        elif plan.l1_form in ("a", "b"):
            steps = ()
    slices = ("single_core_k",) if "stream_k" in (plan.branch, plan.inner_branch) else ()
    return (*_DECISIONS, *steps, *slices)


def import_notes(tiling: TCubeTiling, case: BmmCase) -> list[str]:
    """What of a bare struct the model does not follow, one sentence each."""
    if tiling.tileproof is not None:
        return []
    notes, given, buffers = [], tiling.given, _buffers(tiling)
    whole = _whole(tiling, case)
    if {"dbL0A", "dbL0B"} <= given and tiling.dbL0A != tiling.dbL0B:
        fewer = min(tiling.dbL0A, tiling.dbL0B)
        notes.append(f"dbL0A = {tiling.dbL0A} and dbL0B = {tiling.dbL0B}: modelled with {fewer} for both")
    if whole is None and len(set(buffers.values())) == 2:
        fewer = min(buffers.values())
        notes.append(f"A1 has {buffers['a']} buffers and B1 {buffers['b']}: modelled with {fewer} for both")
    for side, name in (("a", "stepM"), ("b", "stepN")):
        if getattr(tiling, name) > 1 and whole != side:
            notes.append(
                f"{name} = {getattr(tiling, name)}: modelled with 1, the operand being streamed block by block"
            )
    for name, base in (("singleCoreM", "baseM"), ("singleCoreN", "baseN")):
        if name in given and base in given and getattr(tiling, name) > getattr(tiling, base) > 0:
            notes.append(
                f"{name} = {getattr(tiling, name)}: modelled as blocks of {base} dealt to the cores in a window"
            )
    if tiling.iterateOrder == 1:
        notes.append("iterateOrder = 1: the order inside the window is not modelled")
    return notes
