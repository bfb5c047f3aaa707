"""ASW_Basic: blocks of ``base_m x base_n`` over all batches, dealt to the cores in a sliding window; K is not cut.

Design section 6.5. Structures: ``full_load`` (operand kept whole in L1), buffers, and whether the blocks of a last
round that is not full are cut into ``tail_m x tail_n`` pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..algebra import Algebra, Value
from ..context import ATOM, FIRST_LOAD_BYTES, Context
from ..latency import (
    Loads,
    Outcome,
    Pipes,
    Reads,
    Values,
    drain_cost,
    first_fill,
    first_load,
    mmad_cost,
    mte1_cost,
    occupied,
    overlap,
    port_cost,
    rows_a,
    rows_b,
    whole_rows_a,
    whole_rows_b,
)
from ..plan import BranchName, Plan
from ..window import window_traffic
from .base import (
    NARROW,
    Branch,
    Counts,
    Structure,
    Wide,
    Word,
    best_l0c,
    bias_rule,
    buffer_fields,
    k_loop,
    l0_rules,
    l1_width,
    l2_policy,
    most_uk,
    once,
    resident_loop,
    source_steps,
    step_decision,
    tile_decisions,
    tile_values,
)


@dataclass
class _Tail:
    """The last round: ``full`` rounds of whole blocks before it, then pieces of ``rows x columns`` atoms.

    ``extra_a`` (``extra_b``) count the atoms of rows (columns) that cut blocks read again.
    """

    full: Value
    rows: Value
    columns: Value
    extra_a: Value = 0
    extra_b: Value = 0


class AswBasic(Branch):
    """The general branch without a K split."""

    name: ClassVar[BranchName] = "asw_basic"

    def entry(self, alg: Algebra, ctx: Context) -> None:
        alg.rule("entry.k_at_least_2", ctx.k, ">=", 2)
        alg.rule("entry.output_not_empty", ctx.batch * ctx.m * ctx.n, ">=", 1)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        result = []
        for full_load in ("none", "a", "b"):
            batch = {"none": 1, "a": ctx.batch_a, "b": ctx.batch_b}[full_load]
            if batch > 1 and not wide.free:
                continue
            for l0_buffers in (2, 1):
                tile = um, un, _ = tile_decisions(ctx, ctx.k, l0_buffers, wide)
                streamed = [x for x in "ab" if x != full_load]
                steps = (step_decision(ctx, f"step_k{x}", ctx.ak // ctx.atom_k, wide) for x in streamed)
                free = (*tile, *steps, wide.l1_buffers())
                tails = (
                    wide.decision("tail_m", 1, min(um.hi, ctx.cores)),
                    wide.decision("tail_n", 1, min(un.hi, ctx.cores)),
                )
                for l0c in best_l0c(complete):
                    fixed = {"full_load": full_load, "l0_buffers": l0_buffers, **l0c}
                    if not complete:
                        result.append(Structure({**fixed, "tail_m": 1, "tail_n": 1}, free, ("um", "un")))
                    if complete or ctx.batch * (ctx.am // ATOM) * (ctx.an // ATOM) > ctx.cores:
                        result.append(Structure(fixed, (*free, *tails), ("um", "un")))
        return result

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        side, um, un = v["full_load"], v["um"], v["un"]
        uk = most_uk(alg, ctx, v, um, un, v["uk"])
        rows, columns = alg.min_of(um, ctx.am // ATOM), alg.min_of(un, ctx.an // ATOM)
        m_cnt, n_cnt = alg.ceil_div(ctx.am // ATOM, um), alg.ceil_div(ctx.an // ATOM, un)
        blocks = alg.mul(m_cnt, n_cnt) * ctx.batch
        rounds = alg.ceil_div(blocks, ctx.cores)
        used = alg.min_of(blocks, ctx.cores)

        l0_rules(alg, ctx, v, um, un, uk)
        bias_rule(alg, ctx, un)
        unit = ATOM * ctx.atom_k * ctx.s
        if side != "none":
            alg.rule("entry.full_load_batch", ctx.batch_a if side == "a" else ctx.batch_b, "==", 1)
        wide_m, wide_n = l1_width(alg, ctx, "a", um), l1_width(alg, ctx, "b", un)
        whole = {"none": 0, "a": ctx.am, "b": ctx.an}[side]
        resident = whole * ctx.ak * ctx.s
        held_whole = l1_width(alg, ctx, side, whole // ATOM) * (ATOM * ctx.ak * ctx.s)
        loop = k_loop(alg, ctx, v, uk, ctx.k, um, un) if side == "none" else resident_loop(alg, ctx, v, uk, side)
        part_a = alg.mul(wide_m, loop.depth_a) if side != "a" else 0
        part_b = alg.mul(wide_n, loop.depth_b) if side != "b" else 0
        held = alg.mul(v["l1_buffers"], part_a + part_b) * unit
        alg.rule("cap.l1", held + un * (ATOM * ctx.bias_l1_bytes) + held_whole, "<=", ctx.spec.l1_bytes)
        self._policy(alg, ctx, v, part_a, part_b, unit)

        window = v.get("swizzle_w")
        if window is not None:
            alg.rule("cover.swizzle", ctx.cores % window, "==", 0)
            if ctx.profile != "none":
                rule = "policy.window" if ctx.profile == "v0.4" else "policy.source_window"
                alg.rule(rule, window, "==", ctx.default_window)
        tail = self._tail(alg, ctx, v, um, un, rows, columns, blocks, rounds)
        area = alg.mul(tail.full, alg.mul(rows, columns)) + alg.mul(tail.rows, tail.columns)
        all_rows, all_columns = alg.mul(tail.full, rows) + tail.rows, alg.mul(tail.full, columns) + tail.columns
        reads_a = self._reads_a(ctx, side, loop.depth_a, rows, n_cnt, used, tail)
        reads_b = self._reads_b(ctx, side, loop.depth_b, columns, m_cnt, used, tail)
        traffic = window_traffic(alg, ctx, self._window(ctx, v), (um, un), reads_a, reads_b, side)
        line = ATOM * ctx.k * ctx.s
        port: list[tuple[int, Value]] = [(line, all_rows + all_columns)]
        first: list[tuple[int, Value]] = [(unit, alg.mul(rows, loop.cut_a) + alg.mul(columns, loop.cut_b))]
        if side == "a":
            port = [(ctx.am * ctx.k * ctx.s, 1), (line, all_columns)]
            first = [(resident, 1), (unit, alg.mul(columns, loop.cut_b))]
        elif side == "b":
            port = [(ctx.an * ctx.k * ctx.s, 1), (line, all_rows)]
            first = [(resident, 1), (unit, alg.mul(rows, loop.cut_a))]
        steps = alg.mul(rounds, loop.l1)
        heads = alg.mul(rounds, loop.steps)
        pipes = Pipes(
            mmad=mmad_cost(alg, ctx, area, heads, v["l0_buffers"], ctx.fractals_k),
            mte1=mte1_cost(alg, ctx, (all_rows + all_columns) * ctx.k, heads),
            fixpipe=alg.worst([drain_cost(alg, ctx, rounds, area), ctx.unaligned_ticks]),
            drain=drain_cost(alg, ctx, 1, alg.mul(tail.rows, tail.columns)),
            fill1=first_fill(alg, ctx, first, used),
            fill0=first_load(alg, ctx, rows + columns, ctx.k),
            loads=Loads(
                reads_a, reads_b, occupied(alg, ctx, traffic.shared, used), port_cost(alg, ctx, port), traffic.hbm
            ),
            steps=steps,
            floor_steps=None if side == "none" else steps + 1,
        )
        deepest = alg.max_of if side == "none" else None
        counts = {
            "m_cnt": lambda: m_cnt,
            "n_cnt": lambda: n_cnt,
            "used_core_num": lambda: used,
            "hbm_units": traffic.hbm_units,
            "swizzle_w": traffic.window,
            "steps": lambda: loop.steps,
            "k_l1": lambda: alg.min_of(
                (deepest(loop.cut_a, loop.cut_b) if deepest else ctx.ak // ctx.atom_k) * ctx.atom_k, ctx.k
            ),
        }
        return Outcome(overlap(alg, ctx, pipes, v), counts, pipes.loads)

    @staticmethod
    def _window(ctx: Context, v: Values) -> int | None:
        if v.get("swizzle_w") is not None:
            return int(v["swizzle_w"])
        return None if ctx.profile == "none" else ctx.default_window

    @staticmethod
    def _tail(
        alg: Algebra, ctx: Context, v: Values, um: Value, un: Value, rows: Value, columns: Value, blocks: Value,
        rounds: Value,
    ) -> _Tail:  # fmt: skip
        tail_m, tail_n = v["tail_m"], v["tail_n"]
        if isinstance(tail_m, int) and isinstance(tail_n, int) and tail_m == tail_n == 1:
            return _Tail(rounds - 1, rows, columns)
        pieces = alg.mul(tail_m, tail_n)
        last = alg.known(blocks - (rounds - 1) * ctx.cores, 1, ctx.cores)
        alg.rule("cover.tail_m", tail_m, "<=", um)
        alg.rule("cover.tail_n", tail_n, "<=", un)
        alg.rule("cover.tail_round", alg.min_of(pieces, 2), "<=", rounds)
        alg.rule("cover.tail_cores", alg.mul(pieces, last), "<=", ctx.cores)
        if ctx.profile == "source" and ctx.batch > 1:
            alg.rule("policy.source_tail", pieces, "<=", 1)
        again_m, again_n = alg.mul(last, rows), alg.mul(last, columns)
        return _Tail(
            rounds - 1,
            alg.floored(alg.ceil_div(rows, tail_m), alg.mul(last, rows), ctx.cores),
            alg.floored(alg.ceil_div(columns, tail_n), alg.mul(last, columns), ctx.cores),
            alg.mul(again_m, tail_n - 1),
            alg.mul(again_n, tail_m - 1),
        )

    @staticmethod
    def _reads_a(ctx: Context, side: str, depth: Value, rows: Value, n_cnt: Value, used: Value, tail: _Tail) -> Reads:
        if side == "a":
            return Reads(whole_rows_a(ctx), ctx.unique_a, ctx.m * ctx.k * ctx.s, used)
        extra = (ATOM * ctx.k * ctx.s, tail.extra_a)
        return Reads(rows_a(ctx, depth, rows), ctx.unique_a, ctx.batch * ctx.m * ctx.k * ctx.s, n_cnt, extra)

    @staticmethod
    def _reads_b(
        ctx: Context, side: str, depth: Value, columns: Value, m_cnt: Value, used: Value, tail: _Tail
    ) -> Reads:
        if side == "b":
            return Reads(whole_rows_b(ctx), ctx.unique_b, ctx.k * ctx.n * ctx.s, used)
        extra = (ATOM * ctx.k * ctx.s, tail.extra_b)
        return Reads(rows_b(ctx, depth, columns), ctx.unique_b, ctx.batch * ctx.k * ctx.n * ctx.s, m_cnt, extra)

    @staticmethod
    def _policy(alg: Algebra, ctx: Context, v: Values, part_a: Value, part_b: Value, unit: int) -> None:
        side, spec = v["full_load"], ctx.spec
        if ctx.profile == "v0.4":
            share = spec.policy_l1_operand_share_inverse * unit
            for part, name in ((part_a, "a"), (part_b, "b")):
                if side != name:
                    alg.rule("policy.asw_l1_share", part * share, "<=", spec.l1_bytes)
        if ctx.profile != "source":
            return
        source_steps(alg, ctx, v, {"none": "ab", "a": "b", "b": "a"}[side], (2, 4))
        if side != "none":
            wide, whole, other = (ctx.m, ctx.am, ctx.an) if side == "a" else (ctx.n, ctx.an, ctx.am)
            side_batch, true = (ctx.batch_b, ctx.n) if side == "a" else (ctx.batch_a, ctx.m)
            enough = (
                side_batch * ctx.ak * other * ctx.s >= spec.l1_bytes * ctx.cores
                or side_batch * -(-true // spec.source_block) >= 4 * ctx.cores
            )
            allowed = wide <= spec.source_block and not ctx.bias_batch and enough
            alg.rule("policy.source_full_load", int(allowed), ">=", 1)
            alg.rule("policy.source_full_load_l1", 2 * whole * ctx.ak * ctx.s, "<=", spec.l1_bytes)
        elif not ctx.equal_batch:
            for rule, value, extent in (("m", v["um"], ctx.am), ("n", v["un"], ctx.an)):
                alg.rule(f"policy.source_fixed_{rule}", value * ATOM, "==", min(spec.source_block, extent))
            depth = max(FIRST_LOAD_BYTES // ctx.s, ctx.atom_k)
            alg.rule("policy.source_fixed_k", v["uk"] * ctx.atom_k, "==", min(depth, ctx.ak))

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        side = v["full_load"]
        m_cnt, n_cnt, steps = counts["m_cnt"], counts["n_cnt"], counts["steps"]
        step_m, step_n = (m_cnt if side == "a" else once), (n_cnt if side == "b" else once)
        step_ka = steps if side == "a" else (lambda: v["step_ka"])
        step_kb = steps if side == "b" else (lambda: v["step_kb"])

        def depth(step: Callable[[], Value], step_k: Callable[[], Value], name: str) -> Callable[[], Value]:
            buffers = 1 if side == name else v["l1_buffers"]
            return lambda: alg.mul(alg.mul(step(), step_k()), buffers)

        def tail_code() -> Value:
            return alg.min_of(v["tail_m"], 2) - 1 + (alg.min_of(v["tail_n"], 2) - 1) * 2

        return {
            "used_core_num": counts["used_core_num"],
            "split_b": ctx.batch,
            "m_cnt": m_cnt,
            "n_cnt": n_cnt,
            "grid_k": 1,
            "core_map": "window",
            "single_core_m": lambda: alg.min_of(v["um"] * ATOM, ctx.m),
            "single_core_n": lambda: alg.min_of(v["un"] * ATOM, ctx.n),
            "single_core_k": ctx.k,
            "k_l1": counts["k_l1"],
            "full_load": side,
            "base_m": v["um"] * ATOM,
            "base_n": v["un"] * ATOM,
            "base_k": v["uk"] * ctx.atom_k,
            "step_m": step_m,
            "step_n": step_n,
            "step_ka": step_ka,
            "step_kb": step_kb,
            "depth_a1": depth(step_m, step_ka, "a"),
            "depth_b1": depth(step_n, step_kb, "b"),
            **buffer_fields(v),
            "iterate_order": 0,
            "swizzle_w": counts["swizzle_w"],
            "tail_m": v["tail_m"],
            "tail_n": v["tail_n"],
            "tail_strategy": Word(("A0", "A1a", "A1b", "B"), tail_code),
            **l2_policy(alg, ctx, once if side == "a" else n_cnt, once if side == "b" else m_cnt),
            "workspace_bytes": 0,
        }

    def values(self, ctx: Context, plan: Plan) -> dict[str, Any]:
        return {
            **tile_values(ctx, plan),
            "full_load": plan.full_load or "none",
            "step_ka": plan.step_ka,
            "step_kb": plan.step_kb,
            "tail_m": plan.tail_m or 1,
            "tail_n": plan.tail_n or 1,
            "swizzle_w": plan.swizzle_w,
        }
