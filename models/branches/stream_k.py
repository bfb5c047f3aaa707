"""StreamK: K is cut across cores, fp32 partial sums meet in an L2 workspace and the vector cores add them.

Design section 6.6. Structures: the buffers; the grid is an outer decision.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from ..algebra import Algebra, Value
from ..context import ACC_BYTES, ATOM, Context, ceil_to
from ..latency import (
    Loads,
    Outcome,
    Pipes,
    Reads,
    Rows,
    Values,
    drain_cost,
    first_fill,
    first_load,
    hbm_cost,
    mmad_cost,
    mte1_cost,
    occupied,
    overlap,
    port_cost,
)
from ..plan import BranchName, Plan
from .base import (
    NARROW,
    Branch,
    Counts,
    Structure,
    Wide,
    best_l0c,
    bias_rule,
    buffer_fields,
    k_loop,
    l0_rules,
    l1_width,
    l2_policy,
    most_uk,
    source_steps,
    step_decision,
    tile_decisions,
    tile_values,
)


class StreamK(Branch):
    """The branch that cuts K across cores."""

    name: ClassVar[BranchName] = "stream_k"

    def entry(self, alg: Algebra, ctx: Context) -> None:
        spec = ctx.spec
        alg.rule("entry.k_at_least_2", ctx.k, ">=", 2)
        alg.rule("entry.output_not_empty", ctx.batch * ctx.m * ctx.n, ">=", 1)
        alg.rule("entry.equal_batch", int(ctx.equal_batch), "==", 1)
        alg.rule("entry.vector_pairs", spec.aiv_cores, "==", 2 * spec.aic_cores)
        if ctx.case.dtype == "fp32":
            alg.rule("entry.fp32_k", ctx.k, "<=", spec.fp32_streamk_max_k)
        if ctx.profile == "v0.4":
            blocks = ctx.batch * (ctx.am // ATOM) * (ctx.an // ATOM)
            alg.rule("policy.streamk_parallel", blocks, "<=", ctx.cores - 1)
        if ctx.profile == "source":
            block = spec.source_block_fp32 if ctx.case.dtype == "fp32" else spec.source_block
            least = max(spec.source_streamk_bytes, spec.source_block * ctx.cores)
            alg.rule("policy.source_streamk_k", ceil_to(ctx.k, spec.source_block) * ctx.s, ">=", least)
            blocks = ctx.batch * -(-ctx.m // block) * -(-ctx.n // block)
            alg.rule("policy.source_streamk_blocks", 2 * blocks, "<=", ctx.cores)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        half = ctx.cores // 2
        extents = (ctx.batch, ctx.am // ATOM, ctx.an // ATOM)
        grid = (
            wide.decision("grid_k", 1 if wide.free else 2, ctx.cores),
            *(wide.decision(f"grid_{x}", 1, min(e, ctx.cores), half) for x, e in zip("bmn", extents, strict=True)),
        )
        most_b, most_m, most_n = (d.hi for d in grid[1:])
        listed = tuple(
            (k, b, m, n)
            for k in range(2, ctx.cores + 1)
            for b in range(1, min(most_b, ctx.cores // k) + 1)
            for m in range(1, min(most_m, ctx.cores // (k * b)) + 1)
            for n in range(1, min(most_n, ctx.cores // (k * b * m)) + 1)
        )
        outer = tuple(d.name for d in grid)
        result = []
        for l0_buffers in (2, 1):
            steps = (step_decision(ctx, f"step_k{x}", ctx.ak // ctx.atom_k, wide) for x in "ab")
            free = (*grid, *tile_decisions(ctx, ctx.k, l0_buffers, wide), *steps, wide.l1_buffers())
            for l0c in best_l0c(complete):
                result.append(Structure({"l0_buffers": l0_buffers, **l0c}, free, ("um", "un"), outer, listed))
        return result

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        spec = ctx.spec
        grid_b, grid_m, grid_n, grid_k = v["grid_b"], v["grid_m"], v["grid_n"], v["grid_k"]
        slice_k = v.get("single_core_k")
        if slice_k is None:
            slice_k = alg.ceil_div(-(-ctx.k // ATOM), grid_k) * ATOM
        single_b = alg.ceil_div(ctx.batch, grid_b)
        single_m, single_n = v.get("single_m"), v.get("single_n")
        if single_m is None:
            single_m = alg.ceil_div(ctx.am // ATOM, grid_m)
        if single_n is None:
            single_n = alg.ceil_div(ctx.an // ATOM, grid_n)
        used = alg.mul(alg.mul(alg.mul(grid_b, grid_m), grid_n), grid_k)
        alg.rule("cover.grid_k", grid_k, ">=", 2)
        alg.rule("cover.grid", used, "<=", ctx.cores)
        alg.rule("cover.slice_b", alg.mul(grid_b - 1, single_b), "<=", ctx.batch - 1)
        alg.rule("cover.slice_m", alg.mul(grid_m - 1, single_m) * ATOM, "<=", ctx.m - 1)
        alg.rule("cover.slice_n", alg.mul(grid_n - 1, single_n) * ATOM, "<=", ctx.n - 1)
        alg.rule("cover.slice_k", alg.mul(grid_k - 1, slice_k), "<=", ctx.k - 1)
        alg.rule("cover.all_m", alg.mul(grid_m, single_m) * ATOM, ">=", ctx.m)
        alg.rule("cover.all_n", alg.mul(grid_n, single_n) * ATOM, ">=", ctx.n)
        alg.rule("cover.all_k", alg.mul(grid_k, slice_k), ">=", ctx.k)
        slot = alg.mul(single_b, alg.mul(single_m, single_n))
        alg.rule("cap.workspace_slot", slot * (ATOM * ATOM), "<=", spec.workspace_slot_elements)
        if ctx.nz_b:
            alg.rule("align.nz", alg.ceil_div(slice_k, ctx.c0) * ctx.c0, "==", slice_k)

        um, un = v["um"], v["un"]
        # A tile larger than the slice is legal, but never better.
        if not v.get("free_m"):
            alg.within(um, "<=", single_m)
        if not v.get("free_n"):
            alg.within(un, "<=", single_n)
        uk = most_uk(alg, ctx, v, um, un, v["uk"])
        rows, columns = alg.min_of(um, ctx.am // ATOM), alg.min_of(un, ctx.an // ATOM)
        m_tiles, n_tiles = alg.ceil_div(single_m, um), alg.ceil_div(single_n, un)
        l0_rules(alg, ctx, v, um, un, uk)
        bias_rule(alg, ctx, un)
        loop = k_loop(alg, ctx, v, uk, slice_k, um, un)
        unit = ATOM * ctx.atom_k * ctx.s
        wide_m, wide_n = l1_width(alg, ctx, "a", um), l1_width(alg, ctx, "b", un)
        held = alg.mul(v["l1_buffers"], alg.mul(wide_m, loop.depth_a) + alg.mul(wide_n, loop.depth_b)) * unit
        alg.rule("cap.l1", held + un * (ATOM * ctx.bias_l1_bytes), "<=", spec.l1_bytes)
        self._policy(alg, ctx, v, m_tiles, n_tiles)

        # Every slice of the core does all its blocks; the design bounds them by whole slices.
        tiles = alg.mul(m_tiles, n_tiles)
        rounds = alg.mul(single_b, tiles)
        area = alg.floored(alg.mul(rounds, alg.mul(rows, columns)), slot, 1)
        sides = alg.floored(alg.mul(rounds, rows + columns), alg.mul(single_b, single_m + single_n), 1)
        # Per-core terms take the slice as it is in place of K and of K padded.
        cut_a, cut_b = (alg.min_of(depth * ctx.atom_k, slice_k) for depth in (loop.depth_a, loop.depth_b))
        fractals = alg.ceil_div(slice_k, spec.fractal_k(ctx.case.dtype)) * spec.fractal_cycles
        heads = alg.mul(rounds, loop.steps)
        m_cnt, n_cnt = alg.mul(grid_m, m_tiles), alg.mul(grid_n, n_tiles)
        depth_rows_a, depth_rows_b = (_rows(alg, ctx, depth, slice_k) for depth in (loop.depth_a, loop.depth_b))
        reads_a = Reads(
            Rows(alg.min_of(rows, single_m), ATOM, ctx.m, ctx.m) if ctx.trans_a else depth_rows_a,
            ctx.unique_a, ctx.batch * ctx.m * ctx.k * ctx.s, n_cnt,
        )  # fmt: skip
        reads_b = Reads(
            replace(depth_rows_b, ideal=ctx.nz_b)
            if ctx.trans_b
            else Rows(alg.min_of(columns, single_n), ATOM, ctx.n, ctx.n, ctx.nz_b),
            ctx.unique_b, ctx.batch * ctx.k * ctx.n * ctx.s, m_cnt,
        )  # fmt: skip
        once = ctx.unique_a + ctx.unique_b
        shared = reads_a.cost(alg, ctx) + reads_b.cost(alg, ctx)
        per_byte = ctx.ticks_per_cycle * ctx.cores / spec.l2_read_bytes_per_cycle
        # Each vector core reads grid_k partial sums and writes one output: slot * (4 + so / grid_k) bytes.
        reduced = alg.ceil_div(alg.mul(slot, grid_k * ACC_BYTES + ctx.so) * (ATOM * ATOM), grid_k)
        pipes = Pipes(
            mmad=mmad_cost(alg, ctx, area, heads, v["l0_buffers"], fractals),
            mte1=mte1_cost(alg, ctx, alg.mul(sides, slice_k), heads),
            fixpipe=drain_cost(alg, ctx, rounds, area),
            drain=drain_cost(alg, ctx, 1, alg.mul(rows, columns)),
            fill1=first_fill(alg, ctx, [(ATOM * ctx.s, alg.mul(rows, cut_a) + alg.mul(columns, cut_b))], used),
            fill0=first_load(alg, ctx, rows + columns, slice_k),
            loads=Loads(
                reads_a,
                reads_b,
                occupied(alg, ctx, shared, used),
                port_cost(alg, ctx, [(ATOM * ctx.s, alg.mul(sides, slice_k))]),
                hbm_cost(alg, ctx, once),
            ),
            steps=alg.mul(rounds, loop.l1),
            reduce=alg.ticks(
                ctx.rates(("reduce",), lambda: (spec.reduce_fixed_us * ctx.ticks_per_us, per_byte)), (1, reduced)
            ),
        )
        counts = {
            "m_cnt": lambda: m_cnt,
            "n_cnt": lambda: n_cnt,
            "used_core_num": lambda: used,
            "hbm_units": lambda: (ctx.batch_a * ctx.m + ctx.batch_b * ctx.n) * ctx.cores,
            "single_b": lambda: single_b,
            "single_m": lambda: single_m,
            "single_n": lambda: single_n,
            "single_k": lambda: slice_k,
            "k_l1": lambda: alg.max_of(cut_a, cut_b),
        }
        return Outcome(overlap(alg, ctx, pipes, v), counts, pipes.loads)

    @staticmethod
    def _policy(alg: Algebra, ctx: Context, v: Values, m_tiles: Any, n_tiles: Any) -> None:
        if ctx.profile == "v0.4":
            squares = alg.mul(v["grid_k"], v["grid_k"])
            alg.rule("policy.streamk_k", squares * ctx.spec.policy_streamk_k_per_grid2, "<=", ctx.k)
        if ctx.profile != "source":
            return
        source_steps(alg, ctx, v, "ab")
        alg.rule("policy.source_streamk_batch", v["grid_b"], "==", ctx.batch)
        alg.rule("policy.source_streamk_block", alg.mul(m_tiles, n_tiles), "<=", 1)
        alg.rule("policy.source_streamk_base_m", v["um"] * ATOM, "<=", ctx.spec.source_block)
        alg.rule("policy.source_streamk_base_n", v["un"] * ATOM, "<=", ctx.spec.source_block)

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        spec = ctx.spec
        workspace = ctx.cores * spec.workspace_slot_elements * ACC_BYTES + spec.workspace_extra_bytes
        return {
            "used_core_num": counts["used_core_num"],
            "split_b": v["grid_b"],
            "m_cnt": counts["m_cnt"],
            "n_cnt": counts["n_cnt"],
            **{name: v[name] for name in ("grid_b", "grid_m", "grid_n", "grid_k")},
            "core_map": "grid",
            "b_core": counts["single_b"],
            "single_core_m": lambda: counts["single_m"]() * ATOM,
            "single_core_n": lambda: counts["single_n"]() * ATOM,
            "single_core_k": counts["single_k"],
            "k_l1": counts["k_l1"],
            "base_m": v["um"] * ATOM,
            "base_n": v["un"] * ATOM,
            "base_k": v["uk"] * ctx.atom_k,
            "step_m": 1,
            "step_n": 1,
            "step_ka": v["step_ka"],
            "step_kb": v["step_kb"],
            "depth_a1": lambda: alg.mul(v["step_ka"], v["l1_buffers"]),
            "depth_b1": lambda: alg.mul(v["step_kb"], v["l1_buffers"]),
            **buffer_fields(v),
            "iterate_order": 0,
            **l2_policy(alg, ctx, counts["n_cnt"], counts["m_cnt"]),
            "workspace_bytes": workspace,
        }

    def values(self, ctx: Context, plan: Plan) -> dict[str, Any]:
        return {
            **tile_values(ctx, plan),
            **{name: getattr(plan, name) for name in ("grid_b", "grid_m", "grid_n", "grid_k", "single_core_k")},
            "single_m": None if plan.single_core_m is None else -(-plan.single_core_m // ATOM),
            "single_n": None if plan.single_core_n is None else -(-plan.single_core_n // ATOM),
            "step_ka": plan.step_ka,
            "step_kb": plan.step_kb,
        }


def _rows(alg: Algebra, ctx: Context, depth: Value, slice_k: Value) -> Rows:
    """Rows along K of an L1 part: ``depth`` atoms, cut at the slice.

    A slice of the search is a multiple of 16 elements; a plan's own slice may be any number of them.
    """
    if isinstance(slice_k, int) and slice_k % ATOM:
        return Rows(alg.min_of(depth * ctx.atom_k, slice_k), 1, ctx.k, ctx.k)
    lines = slice_k // ATOM if isinstance(slice_k, int) else alg.ceil_div(slice_k, ATOM)
    return Rows(alg.min_of(depth * (ctx.atom_k // ATOM), lines), ATOM, ctx.k, ctx.k)
