"""What an engineer can do about a tiling: where its time goes, in numbers, and a change that was tried and is faster.

Every suggestion is evaluated before it is made: the changed plan obeys all rules and takes less time. A change may
bring others along that make room for it (a smaller base_k, one L0C buffer with the unit flag); these are named with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...hardware.errors import InternalError
from ...models.algebra import IntAlgebra
from ...models.branches import BRANCH_OF
from ...models.context import Context
from ...models.evaluation import Evaluation, evaluate_values
from ...models.latency import Loads
from ...models.plan import PLAN_FIELDS, Plan
from ...models.rules import rule_info
from ..describe import BUFFER_NAMES, percent
from .gap import roofline_ticks
from .neighbours import start
from .remedies import faster_plan, make_room

__all__ = ["advice", "loads_of"]

#: Share of the time from which the fixed parts (head, fills, drain) are what matters.
_FIXED_SHARE: Final = 0.5
#: Share of the roofline above which no tile is looked for.
_NEAR: Final = 0.95

_BOUND: Final = {
    "mmad": "MMAD", "mte2": "MTE2", "mte1": "MTE1", "fixpipe": "FIXPIPE", "reduce": "reduction", "reorder": "reorder",
    "vector": "vector",
}  # fmt: skip


def advice(ctx: Context, evaluation: Evaluation, *, proven: str = "") -> str:
    """What takes the time, and what would help.

    ``proven`` says what is proven about the plan, so that nothing faster is looked for.
    """
    if not evaluation.feasible:
        return _how_to_repair(ctx, evaluation)
    if not evaluation.ticks:
        return "the output is empty, there is nothing to do"
    kind, text = _diagnosis(ctx, evaluation)
    if kind == "done":
        return text
    if proven:
        return f"{text}; proven: {proven}{_what_is_full(evaluation)}"
    better = faster_plan(ctx, evaluation, kind)
    if better is None:
        return text + _what_is_full(evaluation)
    return f"{text}; {_difference(evaluation.plan, better.plan)} saves {_saved(evaluation, better)}" + _less_read(
        ctx, evaluation.plan, better.plan
    )


# -- where the time goes
def _diagnosis(ctx: Context, evaluation: Evaluation) -> tuple[str, str]:
    """Kind of the bottleneck and a clause about it; kind ``done`` when the tile cannot help."""
    stages, total, plan = evaluation.stages, evaluation.ticks, evaluation.plan
    name = evaluation.bottleneck
    stage = stages[name]
    near = roofline_ticks(ctx) / total
    fixed = {part: stages.get(part, 0) for part in ("head", "fill1", "fill0", "drain")}
    share = f"{_BOUND[name]}-bound: {percent(stage / total)} of the time"
    if 2 * fixed["head"] > total:
        share = f"latency-bound: the launch head is {percent(fixed['head'] / total)} of the time"
    if near >= _NEAR:
        return "done", f"{share}; at {percent(near)} of the roofline there is nothing to gain from the tile"
    if _in_turn(evaluation):
        text = f"{share}; loads and work take turns: all that a core does is one L1 step, or it has one L1 buffer"
        return "serial", text
    if sum(fixed.values()) >= _FIXED_SHARE * total:
        fills = percent((fixed["fill1"] + fixed["fill0"] + fixed["drain"]) / total)
        text = (
            f"latency-bound: the launch head is {percent(fixed['head'] / total)} of the time, fills and drain {fills}"
        )
        return "fixed", text + _idle(ctx, plan)
    if name == "mmad":
        macs = ctx.batch * ctx.m * ctx.n * ctx.k
        ideal = macs * ctx.ticks_per_cycle / (ctx.cores * ctx.spec.mac_per_cycle(ctx.case.dtype))
        return "mmad", f"{share}, at {percent(float(ideal / stage))} of the Cube peak{_idle(ctx, plan)}"
    if name == "mte2":
        kind, why = _why_mte2(ctx, plan)
        return kind, share + why
    if name == "fixpipe":
        if stage <= ctx.unaligned_ticks:
            share += f"; output rows of {ctx.n * ctx.so} B are no multiple of 32 B, a padded N would be written faster"
        return "fixpipe", share
    if name == "reorder":
        return "reorder", f"{share}; B stored transposed ([B,N,K]) would need no reorder"
    if name == "vector":
        return "vector", f"{share}, on {plan.used_core_num} of {ctx.spec.aiv_cores} vector cores"
    return name, share


def _in_turn(evaluation: Evaluation) -> bool:
    """Whether MTE2 overlaps with nothing: only one L1 buffer is ever in use."""
    stages = evaluation.stages
    rest = ("head", "fill0", "mte2", "reduce", "reorder")
    work = max(stages[name] for name in ("mmad", "mte1", "fixpipe"))
    return stages["mte2"] > 0 and stages["total"] >= sum(stages[name] for name in rest) + work


def _idle(ctx: Context, plan: Plan) -> str:
    """Cores without work, in all or in the last round."""
    used = plan.used_core_num or 0
    if plan.branch == "special" or not used:
        return ""
    if used < ctx.cores:
        return f"; {used} of {ctx.cores} cores have work"
    if plan.tail_m == plan.tail_n == 1:  # rounds of blocks, the last one uncut
        last = (plan.split_b or 1) * (plan.m_cnt or 1) * (plan.n_cnt or 1) % ctx.cores
        if last:
            return f"; the last round gives work to {last} of {ctx.cores} cores"
    return ""


def _why_mte2(ctx: Context, plan: Plan) -> tuple[str, str]:
    loads = loads_of(ctx, plan)
    if loads is None:
        raise InternalError(f"MTE2 is the bottleneck of {plan.branch}, which loads nothing into L1")
    kind = loads.largest
    if kind == "hbm":
        return "hbm", "; HBM moves every byte once, that is the bound"
    if kind == "port":
        return "port", "; the MTE2 port of the busiest core is the bound" + _idle(ctx, plan)
    if kind == "floor":
        buffers = "1 L1 buffer leaves" if plan.l1_buffers == 1 else f"{plan.l1_buffers} L1 buffers leave"
        return "floor", f"; {buffers} it waiting for memory latency at every L1 step"
    operands = (("A", loads.reads_a), ("B", loads.reads_b))
    again = {side: (reads.passed - reads.once) / loads.passed for side, reads in operands}
    side = "A" if again["A"] > again["B"] else "B"
    if again[side] >= 0.1:
        return f"again {side.lower()}", f"; {percent(again[side])} of the reads are re-reads of {side}"
    if (plan.used_core_num or 0) < ctx.saturating:
        return "fixed", f"; {plan.used_core_num} cores do not saturate the memory, it takes {ctx.saturating}"
    rows = ", ".join(f"{row} B of {side}" for side, row in _rows(ctx, plan) if row < ctx.spec.row_efficiency[0][0])
    return ("rows", f"; short rows ({rows}) keep it below the memory's rate") if rows else ("rows", "")


def loads_of(ctx: Context, plan: Plan) -> Loads | None:
    """What MTE2 reads and waits for in a plan; None of a branch without Cube work."""
    return BRANCH_OF[plan.branch].formula(IntAlgebra(), ctx, start(ctx, plan)).loads


def _rows(ctx: Context, plan: Plan) -> Iterator[tuple[str, int]]:
    """Contiguous bytes of a row that an L1 load of A and of B takes."""
    whole = plan.l1_form in ("a", "b", "c", "d")
    streamed = plan.merge_b0 is None and not whole
    for side, along, extent, base in (
        ("A", ctx.trans_a, ctx.m, plan.base_m),
        ("B", not ctx.trans_b, ctx.n, plan.base_n),
    ):
        if along:
            row = min(base or extent, extent) if streamed and plan.full_load != side.lower() else extent
        else:
            steps = plan.step_ka if side == "A" else plan.step_kb
            row = ctx.k if whole or plan.full_load == side.lower() else min(ctx.k, (steps or 1) * (plan.base_k or 1))
        if side == "A" or not ctx.nz_b:
            yield side, row * ctx.s


def _less_read(ctx: Context, old: Plan, new: Plan) -> str:
    """By how much a change cuts the reads, when it does."""
    before, after = loads_of(ctx, old), loads_of(ctx, new)
    if before is None or after is None or after.passed >= 0.95 * before.passed:
        return ""
    return f" ({percent(1 - after.passed / before.passed)} less is read)"


def _what_is_full(evaluation: Evaluation) -> str:
    full = [
        BUFFER_NAMES[c.rule]
        for c in evaluation.checks
        if c.rule in BUFFER_NAMES and c.rule not in ("cap.cores", "cap.workspace_slot") and 8 * c.left > 7 * c.right
    ]
    return f"; full: {', '.join(full)}" if full else ""


# -- words for a change
def _saved(old: Evaluation, new: Evaluation) -> str:
    return percent(1 - new.ticks / old.ticks)


_SHOWN: Final = (
    "base_m", "base_n", "base_k", "step_ka", "step_kb", "l0_buffers", "l0c_buffers", "l1_buffers", "fixpipe_unitflag",
    "tail_m", "tail_n", "grid_k", "iter_l1", "iter_l0", "merge_b0", "b_l1", "used_core_num", "swizzle_w",
)  # fmt: skip


def _difference(old: Plan, new: Plan) -> str:
    """The changed parameters: the first one instead of its old value, the others with it."""
    changed = [name for name in _SHOWN if getattr(old, name) != getattr(new, name)]
    changed = [name for name in changed if name != "used_core_num" or old.branch == "special"]
    first, *others = changed or [name for name in PLAN_FIELDS if getattr(old, name) != getattr(new, name)]
    text = f"{first} {getattr(new, first)} instead of {getattr(old, first)}"
    if others:
        text += f" (with {', '.join(f'{name} {getattr(new, name)}' for name in others)})"
    return text


# -- plans that break rules
def _how_to_repair(ctx: Context, evaluation: Evaluation) -> str:
    """Which rule is in the way, and a change that makes the plan legal."""
    first, plan = evaluation.violations[0], evaluation.plan
    info = rule_info(first.rule)
    text = f"{first.rule}: {first.left} {info.unit} against {first.right} {info.unit} ({info.text})"
    if info.kind in ("entry", "policy") or not evaluation.stages.get("total"):
        return text
    values = start(ctx, plan)
    if make_room(ctx, plan.branch, values) is None:
        return text
    legal = evaluate_values(ctx, BRANCH_OF[plan.branch], values)
    if not legal.feasible or all(getattr(legal.plan, name) == getattr(plan, name) for name in _SHOWN):
        return text
    return f"{text}; {_difference(plan, legal.plan)} is legal, {ctx.us(legal.ticks):.3f} us"
