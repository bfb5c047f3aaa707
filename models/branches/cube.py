"""The formulas that the Cube branches share: entry rules, the L0 tile, what L0 and L1 hold, the loop along K."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..algebra import Algebra, Value
from ..context import ACC_BYTES, ATOM, Context
from ..fields import BUFFERS
from ..latency import Values
from ..plan import Plan
from .base import Counts, Decision, Wide


def cube_entry(alg: Algebra, ctx: Context) -> None:
    """Entry rules of every branch that computes on the Cube."""
    alg.rule("entry.k_at_least_2", ctx.k, ">=", 2)
    alg.rule("entry.output_not_empty", ctx.batch * ctx.m * ctx.n, ">=", 1)


def batched_entry(alg: Algebra, ctx: Context) -> None:
    """Entry rules of a Cube branch that gives every batch its own A and B."""
    cube_entry(alg, ctx)
    alg.rule("entry.equal_batch", int(ctx.equal_batch), "==", 1)


def best_l0c(complete: bool, *, double_only: bool = False) -> list[dict[str, int]]:
    """(l0c_buffers, fixpipe_unitflag) to try.

    A double L0C and a single one with unit flag take the same time, and a single one without the flag is never faster;
    so one buffer with the flag stands for all three, and a plan gets two buffers afterwards where they fit.
    """
    double = {"l0c_buffers": 2, "fixpipe_unitflag": 0}
    if double_only and not complete:
        return [double]
    flagged = {"l0c_buffers": 1, "fixpipe_unitflag": 1}
    return [double, flagged, {"l0c_buffers": 1, "fixpipe_unitflag": 0}] if complete else [flagged]


def l0_rules(alg: Algebra, ctx: Context, v: Values, um: Value, un: Value, uk: Value, batches: Value = 1) -> None:
    """L0A, L0B and L0C hold their tiles: ``um``, ``un``, ``uk`` atoms, ``batches`` of them, times the buffers."""
    spec = ctx.spec
    unit = ATOM * ctx.atom_k * ctx.s * v["l0_buffers"]
    alg.rule("cap.l0a", alg.mul(batches, alg.mul(um, uk)) * unit, "<=", spec.l0a_bytes)
    alg.rule("cap.l0b", alg.mul(batches, alg.mul(un, uk)) * unit, "<=", spec.l0b_bytes)
    l0c = ATOM * ATOM * ACC_BYTES * v["l0c_buffers"]
    alg.rule("cap.l0c", alg.mul(batches, alg.mul(um, un)) * l0c, "<=", spec.l0c_bytes)
    if v["fixpipe_unitflag"]:
        alg.rule("buffer.unitflag", v["l0c_buffers"], "<=", 1)


def l1_width(alg: Algebra, ctx: Context, side: str, atoms: Value) -> Value:
    """Atoms of rows of A (columns of B) as L1 holds them.

    An operand that is contiguous along M (N) is stored in fractals C0 wide, so 8-bit data is padded to 32 there (vendor
    table 2, the transposed L1 footprint).
    """
    along = ctx.trans_a if side == "a" else not ctx.trans_b
    wide = ctx.c0 // ATOM
    return alg.ceil_div(atoms, wide) * wide if along and wide > 1 else atoms


def bias_rule(alg: Algebra, ctx: Context, un: Value) -> None:
    """The bias table holds two rows of ``base_n`` accumulators."""
    if ctx.case.bias:
        alg.rule("cap.bias_table", un * (2 * ATOM * ACC_BYTES), "<=", ctx.spec.bias_table_bytes)


def most_uk(alg: Algebra, ctx: Context, v: Values, um: Value, un: Value, uk: Value) -> Value:
    """``uk`` as the L0 rules bound it (a hint)."""
    unit = ATOM * ctx.atom_k * ctx.s * v["l0_buffers"]
    uk = alg.capped(uk, ctx.spec.l0a_bytes // unit, um)
    return alg.capped(uk, ctx.spec.l0b_bytes // unit, un)


@dataclass
class Tile:
    """The L0 tile, in atoms: ``um``, ``un``, ``uk`` (as the L0 rules bound it), and how often it stands in M and N.

    ``rows`` and ``columns`` are what of it lies in the padded matrix.
    """

    um: Value
    un: Value
    uk: Value
    rows: Value
    columns: Value
    m_cnt: Value
    n_cnt: Value

    def count(self, alg: Algebra) -> Value:
        """Tiles of the matrix."""
        return alg.mul(self.m_cnt, self.n_cnt)


def tile_of(alg: Algebra, ctx: Context, v: Values, m: Value | None = None, n: Value | None = None) -> Tile:
    """The L0 tile of a plan in a matrix of ``m x n`` atoms (default: the whole one)."""
    um, un, most_m, most_n = v["um"], v["un"], ctx.am // ATOM, ctx.an // ATOM
    uk = most_uk(alg, ctx, v, um, un, v["uk"])
    rows, columns = alg.min_of(um, most_m), alg.min_of(un, most_n)
    m_cnt = alg.ceil_div(most_m if m is None else m, um)
    return Tile(um, un, uk, rows, columns, m_cnt, alg.ceil_div(most_n if n is None else n, un))


@dataclass
class KLoop:
    """The loop along K of one block: L0 ``steps``, L1 ``depth_*`` (atoms, uncut), ``cut_*`` (at most K), L1 steps."""

    steps: Value
    depth_a: Value
    depth_b: Value
    cut_a: Value
    cut_b: Value
    l1: Value


def k_loop(alg: Algebra, ctx: Context, v: Values, uk: Value, k: Value, um: Value, un: Value) -> KLoop:
    """K loop with both operands streamed, and its rules.

    ``k`` is the K extent of one core in elements, ``um`` and ``un`` the tile in L1 in atoms (for the hints that follow
    from the L1 capacity).
    """
    extent = alg.ceil_div(k, ctx.atom_k)
    ska, skb = v["step_ka"], v["step_kb"]
    steps = alg.ceil_div(extent, uk)
    alg.rule("step.ka_max", ska, "<=", ctx.spec.max_step_k)
    alg.rule("step.kb_max", skb, "<=", ctx.spec.max_step_k)
    if not v.get("free_steps"):
        # A deeper part than K holds nothing more: legal, but never better.
        alg.within(ska, "<=", steps)
        alg.within(skb, "<=", steps)
    budget = ctx.spec.l1_bytes // (ATOM * ctx.atom_k * ctx.s)
    depth_a = alg.capped(alg.mul(ska, uk), budget - un, um)
    depth_b = alg.capped(alg.mul(skb, uk), budget - um, un)
    l1_a, l1_b = alg.ceil_div(extent, depth_a), alg.ceil_div(extent, depth_b)
    alg.rule_divides("step.k_divide", l1_a, l1_b)
    l1 = alg.floored(alg.max_of(l1_a, l1_b), alg.mul(um + un, extent), budget)
    return KLoop(steps, depth_a, depth_b, alg.min_of(depth_a, extent), alg.min_of(depth_b, extent), l1)


def streamed_loop(alg: Algebra, ctx: Context, v: Values, tile: Tile, k: Value) -> tuple[KLoop, Value]:
    """K loop over ``k`` elements with parts of A and B one L0 tile wide, and the bytes that all their buffers hold."""
    loop = k_loop(alg, ctx, v, tile.uk, k, tile.um, tile.un)
    wide_m, wide_n = l1_width(alg, ctx, "a", tile.um), l1_width(alg, ctx, "b", tile.un)
    parts = alg.mul(wide_m, loop.depth_a) + alg.mul(wide_n, loop.depth_b)
    return loop, alg.mul(v["l1_buffers"], parts) * (ATOM * ctx.atom_k * ctx.s)


def resident_loop(alg: Algebra, ctx: Context, v: Values, uk: Value, side: str) -> KLoop:
    """K loop with one operand (``side``) whole in L1: only the other one is streamed along K."""
    extent = ctx.ak // ctx.atom_k
    steps = alg.ceil_div(extent, uk)
    name = "step_kb" if side == "a" else "step_ka"
    rule = "kb" if side == "a" else "ka"
    alg.rule(f"step.{rule}_max", v[name], "<=", ctx.spec.max_step_k)
    if not v.get("free_steps"):
        alg.within(v[name], "<=", steps)
    depth = alg.mul(v[name], uk)
    l1 = alg.ceil_div(extent, depth)
    cut = alg.min_of(depth, extent)
    if side == "a":
        return KLoop(steps, extent, depth, extent, cut, l1)
    return KLoop(steps, depth, extent, cut, extent, l1)


def source_steps(alg: Algebra, ctx: Context, v: Values, streamed: str, l1_buffers: tuple[int, ...] = (2, 2)) -> None:
    """What the shipped code fixes: ping-pong everywhere, equal steps of at most four. ``streamed`` = operands."""
    if ctx.profile != "source":
        return
    alg.rule("policy.source_l0_buffers", v["l0_buffers"], "==", 2)
    alg.rule("policy.source_l1_buffers", v["l1_buffers"], ">=", l1_buffers[0])
    alg.rule("policy.source_l1_buffers", v["l1_buffers"], "<=", l1_buffers[-1])
    limit = ctx.spec.source_max_step_k
    for side in streamed:
        alg.rule("policy.source_step_k", v[f"step_k{side}"], "<=", limit)
    if streamed == "ab":
        alg.rule("policy.source_step_equal", v["step_ka"], "==", v["step_kb"])


def tile_decisions(ctx: Context, k: int, l0_buffers: int, wide: Wide) -> tuple[Decision, Decision, Decision]:
    """base_m, base_n and base_k in atoms: up to the padded extents of the matrix (of a K slice of ``k`` elements).

    Larger tiles than L0A and L0B hold at the least depth are left out; cap.l0a and cap.l0b forbid them anyway.
    """
    unit = ATOM * ctx.atom_k * ctx.s * l0_buffers
    most_m, most_n = ctx.spec.l0a_bytes // unit, ctx.spec.l0b_bytes // unit
    return (
        wide.decision("um", 1, ctx.am // ATOM, most_m),
        wide.decision("un", 1, ctx.an // ATOM, most_n),
        wide.decision("uk", 1, -(-k // ctx.atom_k), min(most_m, most_n)),
    )


def step_decision(ctx: Context, name: str, most: int, wide: Wide) -> Decision:
    """A step of an L1 part, in L0 tiles: at most ``most`` (no empty tile) and the issue queue's depth."""
    return wide.decision(name, 1, min(most, 2 * ctx.spec.max_step_k), ctx.spec.max_step_k)


def tile_values(ctx: Context, plan: Plan) -> dict[str, Any]:
    """Tile and buffers of a plan as the formulas want them; extents are rounded up to whole atoms."""
    return {
        "um": -(-(plan.base_m or 0) // ATOM),
        "un": -(-(plan.base_n or 0) // ATOM),
        "uk": -(-(plan.base_k or 0) // ctx.atom_k),
        "l0_buffers": plan.l0_buffers,
        "l0c_buffers": plan.l0c_buffers,
        "l1_buffers": plan.l1_buffers,
        "fixpipe_unitflag": plan.fixpipe_unitflag or 0,
    }


def cube_fields(
    alg: Algebra,
    v: Values,
    counts: Counts,
    side: str,
    step_m: Callable[[], Value],
    step_n: Callable[[], Value],
    step_ka: Callable[[], Value],
    step_kb: Callable[[], Value],
) -> dict[str, Any]:
    """Plan fields that follow in the same way in every Cube branch: L1 parts and buffers.

    ``step_*`` are the L0 tiles of an L1 part; the operand that stays whole (``side``) has a single buffer.
    """

    def depth(name: str, step: Callable[[], Value], step_k: Callable[[], Value]) -> Callable[[], Value]:
        buffers = 1 if side == name else v["l1_buffers"]
        return lambda: alg.mul(alg.mul(step(), step_k()), buffers)

    return {
        "used_core_num": counts["used_core_num"],
        "k_l1": counts["k_l1"],
        "step_m": step_m,
        "step_n": step_n,
        "step_ka": step_ka,
        "step_kb": step_kb,
        "depth_a1": depth("a", step_m, step_ka),
        "depth_b1": depth("b", step_n, step_kb),
        **{name: v[name] for name in BUFFERS},
        "iterate_order": 0,
    }


def base_fields(ctx: Context, v: Values) -> dict[str, Any]:
    """Plan fields of the L0 tile."""
    return {"base_m": v["um"] * ATOM, "base_n": v["un"] * ATOM, "base_k": v["uk"] * ctx.atom_k}


def chosen(v: Values, name: str) -> Callable[[], Value]:
    """A decision as a count."""
    return lambda: v[name]
