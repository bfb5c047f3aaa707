"""ASW_Basic: blocks of ``base_m x base_n`` over all batches, dealt to the cores in a sliding window; K is not cut.

Design section 6.5. Structures: ``full_load`` (operand kept whole in L1), buffers, and whether the blocks of a last
round that is not full are cut into ``tail_m x tail_n`` pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..algebra import Algebra, Value
from ..context import ATOM, FIRST_LOAD_BYTES, Context
from ..fields import BUFFERS, TILE
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
from ..plan import Plan
from ..window import window_traffic
from .base import NARROW, Asked, Branch, Counts, Facts, Structure, Wide, Word, l2_policy, once
from .cube import (
    KLoop,
    Tile,
    base_fields,
    best_l0c,
    bias_rule,
    chosen,
    cube_entry,
    cube_fields,
    k_loop,
    l0_rules,
    l1_width,
    resident_loop,
    source_steps,
    step_decision,
    tile_decisions,
    tile_of,
    tile_values,
)


@dataclass
class _Deal:
    """Blocks over all batches, dealt to the cores: ``rounds`` of the busiest core, ``used`` cores."""

    blocks: Value
    rounds: Value
    used: Value


@dataclass
class _InL1:
    """The loop along K, and what one buffer of a streamed operand holds, in atoms x atoms (0 of a resident one)."""

    loop: KLoop
    part_a: Value
    part_b: Value


@dataclass
class _Work:
    """What the busiest core works on, in atoms: ``area``, ``rows`` and ``columns`` of all its blocks together.

    Whole blocks come first, then the last round's pieces of ``last`` atoms x atoms. ``again_a`` (``again_b``) are the
    rows (columns) that cut blocks read again.
    """

    area: Value
    rows: Value
    columns: Value
    last: Value
    again_a: Value
    again_b: Value


class AswBasic(Branch):
    """The general branch without a K split."""

    name = "asw_basic"
    facts = Facts(
        likely=1,
        either=("swizzle_w",),
        beam=(*Facts.beam, ("tail_m", "tail_n")),
        sparse=frozenset({"tail_m", "tail_n"}),
        moves=(*Facts.moves, ("full_load",)),
    )

    def entry(self, alg: Algebra, ctx: Context) -> None:
        cube_entry(alg, ctx)

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
        side, tile = v["full_load"], tile_of(alg, ctx, v)
        deal = self._deal(alg, ctx, tile)

        l0_rules(alg, ctx, v, tile.um, tile.un, tile.uk)
        bias_rule(alg, ctx, tile.un)
        held = self._in_l1(alg, ctx, v, tile)
        self._policy(alg, ctx, v, held)
        self._window_rules(alg, ctx, v)
        work = self._last_round(alg, ctx, v, tile, deal)

        loop, used = held.loop, deal.used
        reads_a, reads_b = self._reads(ctx, side, tile, used, loop, work)
        traffic = window_traffic(alg, ctx, self._window(ctx, v), (tile.um, tile.un), reads_a, reads_b, side)
        port, first = self._loaded(alg, ctx, side, tile, loop, work)
        steps, heads = alg.mul(deal.rounds, loop.l1), alg.mul(deal.rounds, loop.steps)
        pipes = Pipes(
            mmad=mmad_cost(alg, ctx, work.area, heads, v["l0_buffers"], ctx.fractals_k),
            mte1=mte1_cost(alg, ctx, (work.rows + work.columns) * ctx.k, heads),
            fixpipe=alg.worst([drain_cost(alg, ctx, deal.rounds, work.area), ctx.unaligned_ticks]),
            drain=drain_cost(alg, ctx, 1, work.last),
            fill1=first_fill(alg, ctx, first, used),
            fill0=first_load(alg, ctx, tile.rows + tile.columns, ctx.k),
            loads=Loads(
                reads_a, reads_b, occupied(alg, ctx, traffic.shared, used), port_cost(alg, ctx, port), traffic.hbm
            ),
            steps=steps,
            floor_steps=None if side == "none" else steps + 1,
        )

        def k_l1() -> Value:
            deepest = alg.max_of(loop.cut_a, loop.cut_b) if side == "none" else ctx.ak // ctx.atom_k
            return alg.min_of(deepest * ctx.atom_k, ctx.k)

        counts = {
            "m_cnt": lambda: tile.m_cnt,
            "n_cnt": lambda: tile.n_cnt,
            "used_core_num": lambda: used,
            "hbm_units": traffic.hbm_units,
            "swizzle_w": traffic.window,
            "steps": lambda: loop.steps,
            "k_l1": k_l1,
        }
        return Outcome(overlap(alg, ctx, pipes, v), counts, pipes.loads)

    # -- what is tiled
    @staticmethod
    def _deal(alg: Algebra, ctx: Context, tile: Tile) -> _Deal:
        blocks = tile.count(alg) * ctx.batch
        return _Deal(blocks, alg.ceil_div(blocks, ctx.cores), alg.min_of(blocks, ctx.cores))

    @staticmethod
    def _last_round(alg: Algebra, ctx: Context, v: Values, tile: Tile, deal: _Deal) -> _Work:
        """The blocks of the busiest core, those of the last round cut into ``tail_m x tail_n`` pieces."""
        tail_m, tail_n = v["tail_m"], v["tail_n"]
        rows, columns, again = tile.rows, tile.columns, (0, 0)
        if not (isinstance(tail_m, int) and isinstance(tail_n, int) and tail_m == tail_n == 1):
            pieces = alg.mul(tail_m, tail_n)
            blocks = alg.known(deal.blocks - (deal.rounds - 1) * ctx.cores, 1, ctx.cores)
            alg.rule("cover.tail_m", tail_m, "<=", tile.um)
            alg.rule("cover.tail_n", tail_n, "<=", tile.un)
            alg.rule("cover.tail_round", alg.min_of(pieces, 2), "<=", deal.rounds)
            alg.rule("cover.tail_cores", alg.mul(pieces, blocks), "<=", ctx.cores)
            if ctx.profile == "source" and ctx.batch > 1:
                alg.rule("policy.source_tail", pieces, "<=", 1)
            last_rows, last_columns = alg.mul(blocks, rows), alg.mul(blocks, columns)
            rows = alg.floored(alg.ceil_div(rows, tail_m), last_rows, ctx.cores)
            columns = alg.floored(alg.ceil_div(columns, tail_n), last_columns, ctx.cores)
            again = (alg.mul(last_rows, tail_n - 1), alg.mul(last_columns, tail_m - 1))
        full = deal.rounds - 1
        before = alg.mul(full, alg.mul(tile.rows, tile.columns))
        last = alg.mul(rows, columns)
        all_rows, all_columns = alg.mul(full, tile.rows) + rows, alg.mul(full, tile.columns) + columns
        return _Work(before + last, all_rows, all_columns, last, *again)

    # -- which rules hold
    @staticmethod
    def _in_l1(alg: Algebra, ctx: Context, v: Values, tile: Tile) -> _InL1:
        side = v["full_load"]
        if side != "none":
            alg.rule("entry.full_load_batch", ctx.batch_a if side == "a" else ctx.batch_b, "==", 1)
        wide_m, wide_n = l1_width(alg, ctx, "a", tile.um), l1_width(alg, ctx, "b", tile.un)
        whole = {"none": 0, "a": ctx.am, "b": ctx.an}[side]
        held_whole = l1_width(alg, ctx, side, whole // ATOM) * (ATOM * ctx.ak * ctx.s)
        if side == "none":
            loop = k_loop(alg, ctx, v, tile.uk, ctx.k, tile.um, tile.un)
        else:
            loop = resident_loop(alg, ctx, v, tile.uk, side)
        part_a = alg.mul(wide_m, loop.depth_a) if side != "a" else 0
        part_b = alg.mul(wide_n, loop.depth_b) if side != "b" else 0
        held = alg.mul(v["l1_buffers"], part_a + part_b) * (ATOM * ctx.atom_k * ctx.s)
        alg.rule("cap.l1", held + tile.un * (ATOM * ctx.bias_l1_bytes) + held_whole, "<=", ctx.spec.l1_bytes)
        return _InL1(loop, part_a, part_b)

    @staticmethod
    def _window_rules(alg: Algebra, ctx: Context, v: Values) -> None:
        window = v.get("swizzle_w")
        if window is None:
            return
        alg.rule("cover.swizzle", ctx.cores % window, "==", 0)
        if ctx.profile != "none":
            rule = "policy.window" if ctx.profile == "v0.4" else "policy.source_window"
            alg.rule(rule, window, "==", ctx.default_window)

    # -- what MTE2 loads
    @staticmethod
    def _window(ctx: Context, v: Values) -> int | None:
        if v.get("swizzle_w") is not None:
            return int(v["swizzle_w"])
        return None if ctx.profile == "none" else ctx.default_window

    @staticmethod
    def _reads(ctx: Context, side: str, tile: Tile, used: Value, loop: KLoop, work: _Work) -> tuple[Reads, Reads]:
        """Reads of A and of B: a resident operand once a core, a streamed one once a row (column) of blocks."""
        line, bytes_a, bytes_b = ATOM * ctx.k * ctx.s, ctx.m * ctx.k * ctx.s, ctx.k * ctx.n * ctx.s
        if side == "a":
            reads_a = Reads(whole_rows_a(ctx), ctx.unique_a, bytes_a, used)
        else:
            rows = rows_a(ctx, loop.depth_a, tile.rows)
            reads_a = Reads(rows, ctx.unique_a, ctx.batch * bytes_a, tile.n_cnt, (line, work.again_a))
        if side == "b":
            reads_b = Reads(whole_rows_b(ctx), ctx.unique_b, bytes_b, used)
        else:
            rows = rows_b(ctx, loop.depth_b, tile.columns)
            reads_b = Reads(rows, ctx.unique_b, ctx.batch * bytes_b, tile.m_cnt, (line, work.again_b))
        return reads_a, reads_b

    @staticmethod
    def _loaded(
        alg: Algebra, ctx: Context, side: str, tile: Tile, loop: KLoop, work: _Work
    ) -> tuple[list[tuple[int, Value]], list[tuple[int, Value]]]:
        """What the busiest core loads, in all and in its first L1 step: (bytes, count)."""
        line, deep, unit = ATOM * ctx.k * ctx.s, ctx.ak * ctx.s, ATOM * ctx.atom_k * ctx.s
        if side == "a":
            all_of_a, first_of_b = (ctx.am * ctx.k * ctx.s, 1), (unit, alg.mul(tile.columns, loop.cut_b))
            return [all_of_a, (line, work.columns)], [(ctx.am * deep, 1), first_of_b]
        if side == "b":
            all_of_b, first_of_a = (ctx.an * ctx.k * ctx.s, 1), (unit, alg.mul(tile.rows, loop.cut_a))
            return [all_of_b, (line, work.rows)], [(ctx.an * deep, 1), first_of_a]
        first = alg.mul(tile.rows, loop.cut_a) + alg.mul(tile.columns, loop.cut_b)
        return [(line, work.rows + work.columns)], [(unit, first)]

    # -- what the profiles ask for
    @staticmethod
    def _policy(alg: Algebra, ctx: Context, v: Values, held: _InL1) -> None:
        side, spec = v["full_load"], ctx.spec
        if ctx.profile == "v0.4":
            share = spec.policy_l1_operand_share_inverse * (ATOM * ctx.atom_k * ctx.s)
            for part, name in ((held.part_a, "a"), (held.part_b, "b")):
                if side != name:
                    alg.rule("policy.asw_l1_share", part * share, "<=", spec.l1_bytes)
        if ctx.profile != "source":
            return
        source_steps(alg, ctx, v, {"none": "ab", "a": "b", "b": "a"}[side], (2, 4))
        if side != "none":
            AswBasic._source_full_load(alg, ctx, side)
        elif not ctx.equal_batch:
            for rule, value, extent in (("m", v["um"], ctx.am), ("n", v["un"], ctx.an)):
                alg.rule(f"policy.source_fixed_{rule}", value * ATOM, "==", min(spec.source_block, extent))
            depth = max(FIRST_LOAD_BYTES // ctx.s, ctx.atom_k)
            alg.rule("policy.source_fixed_k", v["uk"] * ctx.atom_k, "==", min(depth, ctx.ak))

    @staticmethod
    def _source_full_load(alg: Algebra, ctx: Context, side: str) -> None:
        spec = ctx.spec
        wide, whole, other = (ctx.m, ctx.am, ctx.an) if side == "a" else (ctx.n, ctx.an, ctx.am)
        side_batch, true = (ctx.batch_b, ctx.n) if side == "a" else (ctx.batch_a, ctx.m)
        enough = (
            side_batch * ctx.ak * other * ctx.s >= spec.l1_bytes * ctx.cores
            or side_batch * -(-true // spec.source_block) >= 4 * ctx.cores
        )
        allowed = wide <= spec.source_block and not ctx.bias_batch and enough
        alg.rule("policy.source_full_load", int(allowed), ">=", 1)
        alg.rule("policy.source_full_load_l1", 2 * whole * ctx.ak * ctx.s, "<=", spec.l1_bytes)

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        side, m_cnt, n_cnt, steps = v["full_load"], counts["m_cnt"], counts["n_cnt"], counts["steps"]
        step_m, step_n = (m_cnt if side == "a" else once), (n_cnt if side == "b" else once)
        step_ka = steps if side == "a" else chosen(v, "step_ka")
        step_kb = steps if side == "b" else chosen(v, "step_kb")

        def tail_code() -> Value:
            return alg.min_of(v["tail_m"], 2) - 1 + (alg.min_of(v["tail_n"], 2) - 1) * 2

        return {
            "split_b": ctx.batch,
            "m_cnt": m_cnt,
            "n_cnt": n_cnt,
            "grid_k": 1,
            "core_map": "window",
            "single_core_m": lambda: alg.min_of(v["um"] * ATOM, ctx.m),
            "single_core_n": lambda: alg.min_of(v["un"] * ATOM, ctx.n),
            "single_core_k": ctx.k,
            "full_load": side,
            **base_fields(ctx, v),
            **cube_fields(alg, v, counts, side, step_m, step_n, step_ka, step_kb),
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

    def deciding(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        streamed = (f"step_k{side}" for side in "ab" if side != given.get("full_load"))
        return (*TILE, *BUFFERS, "full_load", "tail_m", "tail_n", *streamed)

    def optional(self, given: Mapping[str, Any]) -> frozenset[str]:
        return super().optional(given) | {f"step_k{given.get('full_load')}"}

    def variants(self, ctx: Context, asked: Mapping[str, Asked]) -> list[dict[str, int]]:
        """The window may be any divisor of C and what is pinned."""
        if "swizzle_w" not in asked:
            return [{}]
        windows = {*ctx.windows, max(asked["swizzle_w"].exact or 1, 1)}
        return [{"swizzle_w": window} for window in sorted(windows, reverse=True)]


BRANCH = AswBasic()
