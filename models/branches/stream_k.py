"""StreamK: K is cut across cores, fp32 partial sums meet in an L2 workspace and the vector cores add them.

Design section 6.6. How the work is cut is a form, an object of its own with its search space, its rules and its
pipes: :class:`Slices` is the one there is. Structures: the buffers; the grid is an outer decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ..algebra import Algebra, Value
from ..context import ACC_BYTES, ATOM, Context, ceil_to
from ..fields import BUFFERS, TILE
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
from ..plan import Plan
from .base import NARROW, Asked, Branch, Counts, Facts, Structure, Wide, l2_policy, once
from .cube import (
    KLoop,
    Tile,
    base_fields,
    batched_entry,
    best_l0c,
    bias_rule,
    chosen,
    cube_fields,
    l0_rules,
    source_steps,
    step_decision,
    streamed_loop,
    tile_decisions,
    tile_of,
    tile_values,
)

_MOST_SLICES = 64


@dataclass
class _Slice:
    """One slice of the grid: batches, atoms of M and of N, elements of K. ``used`` cores have one."""

    b: Value
    m: Value
    n: Value
    k: Value
    used: Value


@dataclass
class _Work:
    """What a core works on: ``rounds`` blocks, of ``area`` atoms x atoms and of ``sides`` atoms in all."""

    rounds: Value
    area: Value
    sides: Value


class Slices:
    """Form ``slices``: a grid cuts B, M, N and K, every core takes one slice and does its blocks one after another."""

    def structures(self, ctx: Context, *, complete: bool, wide: Wide) -> list[Structure]:
        """The part of the search space that this form takes."""
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
        """Post the rules of a plan and return its stages and counts."""
        part = self._slice(alg, ctx, v)
        self._grid_rules(alg, ctx, v, part)
        slot = self._workspace_rules(alg, ctx, part)

        tile = self._tile(alg, ctx, v, part)
        l0_rules(alg, ctx, v, tile.um, tile.un, tile.uk)
        bias_rule(alg, ctx, tile.un)
        loop = self._in_l1(alg, ctx, v, tile, part)
        self._policy(alg, ctx, v, tile)

        work = self._work(alg, ctx, tile, part, slot)
        # Per-core terms take the slice as it is in place of K and of K padded.
        cut_a, cut_b = (alg.min_of(depth * ctx.atom_k, part.k) for depth in (loop.depth_a, loop.depth_b))
        fractals = alg.ceil_div(part.k, ctx.spec.fractal_k(ctx.case.dtype)) * ctx.spec.fractal_cycles
        heads = alg.mul(work.rounds, loop.steps)
        m_cnt, n_cnt = alg.mul(v["grid_m"], tile.m_cnt), alg.mul(v["grid_n"], tile.n_cnt)
        reads_a, reads_b = self._reads(alg, ctx, tile, loop, part, m_cnt, n_cnt)
        shared = reads_a.cost(alg, ctx) + reads_b.cost(alg, ctx)
        reduced = self._reduced(alg, ctx, v["grid_k"], slot)
        line = ATOM * ctx.s
        pipes = Pipes(
            mmad=mmad_cost(alg, ctx, work.area, heads, v["l0_buffers"], fractals),
            mte1=mte1_cost(alg, ctx, alg.mul(work.sides, part.k), heads),
            fixpipe=drain_cost(alg, ctx, work.rounds, work.area),
            drain=drain_cost(alg, ctx, 1, alg.mul(tile.rows, tile.columns)),
            fill1=first_fill(alg, ctx, [(line, alg.mul(tile.rows, cut_a) + alg.mul(tile.columns, cut_b))], part.used),
            fill0=first_load(alg, ctx, tile.rows + tile.columns, part.k),
            loads=Loads(
                reads_a,
                reads_b,
                occupied(alg, ctx, shared, part.used),
                port_cost(alg, ctx, [(line, alg.mul(work.sides, part.k))]),
                hbm_cost(alg, ctx, ctx.unique_a + ctx.unique_b),
            ),
            steps=alg.mul(work.rounds, loop.l1),
            reduce=self._reduce_cost(alg, ctx, reduced),
        )
        counts = {
            "m_cnt": lambda: m_cnt,
            "n_cnt": lambda: n_cnt,
            "used_core_num": lambda: part.used,
            "hbm_units": lambda: (ctx.batch_a * ctx.m + ctx.batch_b * ctx.n) * ctx.cores,
            "single_b": lambda: part.b,
            "single_m": lambda: part.m,
            "single_n": lambda: part.n,
            "single_k": lambda: part.k,
            "k_l1": lambda: alg.max_of(cut_a, cut_b),
        }
        return Outcome(overlap(alg, ctx, pipes, v), counts, pipes.loads)

    # -- what is tiled
    @staticmethod
    def _slice(alg: Algebra, ctx: Context, v: Values) -> _Slice:
        """Extents of a slice: those that the plan gives, or what the grid leaves, in whole atoms."""
        m, n, k = v.get("single_m"), v.get("single_n"), v.get("single_core_k")
        if k is None:
            k = alg.ceil_div(-(-ctx.k // ATOM), v["grid_k"]) * ATOM
        b = alg.ceil_div(ctx.batch, v["grid_b"])
        if m is None:
            m = alg.ceil_div(ctx.am // ATOM, v["grid_m"])
        if n is None:
            n = alg.ceil_div(ctx.an // ATOM, v["grid_n"])
        used = alg.mul(alg.mul(alg.mul(v["grid_b"], v["grid_m"]), v["grid_n"]), v["grid_k"])
        return _Slice(b, m, n, k, used)

    @staticmethod
    def _tile(alg: Algebra, ctx: Context, v: Values, part: _Slice) -> Tile:
        # A tile larger than the slice is legal, but never better.
        if not v.get("free_m"):
            alg.within(v["um"], "<=", part.m)
        if not v.get("free_n"):
            alg.within(v["un"], "<=", part.n)
        return tile_of(alg, ctx, v, part.m, part.n)

    @staticmethod
    def _work(alg: Algebra, ctx: Context, tile: Tile, part: _Slice, slot: Value) -> _Work:
        """Every slice of the core does all its blocks; the design bounds them by whole slices."""
        rounds = alg.mul(part.b, tile.count(alg))
        area = alg.floored(alg.mul(rounds, alg.mul(tile.rows, tile.columns)), slot, 1)
        sides = alg.floored(alg.mul(rounds, tile.rows + tile.columns), alg.mul(part.b, part.m + part.n), 1)
        return _Work(rounds, area, sides)

    # -- which rules hold
    @staticmethod
    def _grid_rules(alg: Algebra, ctx: Context, v: Values, part: _Slice) -> None:
        """The cores suffice, no slice is empty, and the slices cover the case."""
        grid_b, grid_m, grid_n, grid_k = v["grid_b"], v["grid_m"], v["grid_n"], v["grid_k"]
        alg.rule("cover.grid_k", grid_k, ">=", 2)
        alg.rule("cover.grid", part.used, "<=", ctx.cores)
        alg.rule("cover.slice_b", alg.mul(grid_b - 1, part.b), "<=", ctx.batch - 1)
        alg.rule("cover.slice_m", alg.mul(grid_m - 1, part.m) * ATOM, "<=", ctx.m - 1)
        alg.rule("cover.slice_n", alg.mul(grid_n - 1, part.n) * ATOM, "<=", ctx.n - 1)
        alg.rule("cover.slice_k", alg.mul(grid_k - 1, part.k), "<=", ctx.k - 1)
        alg.rule("cover.all_m", alg.mul(grid_m, part.m) * ATOM, ">=", ctx.m)
        alg.rule("cover.all_n", alg.mul(grid_n, part.n) * ATOM, ">=", ctx.n)
        alg.rule("cover.all_k", alg.mul(grid_k, part.k), ">=", ctx.k)

    @staticmethod
    def _workspace_rules(alg: Algebra, ctx: Context, part: _Slice) -> Value:
        """The partial sums of a slice fit their slot; returns their atoms x atoms."""
        slot = alg.mul(part.b, alg.mul(part.m, part.n))
        alg.rule("cap.workspace_slot", slot * (ATOM * ATOM), "<=", ctx.spec.workspace_slot_elements)
        if ctx.nz_b:
            alg.rule("align.nz", alg.ceil_div(part.k, ctx.c0) * ctx.c0, "==", part.k)
        return slot

    @staticmethod
    def _in_l1(alg: Algebra, ctx: Context, v: Values, tile: Tile, part: _Slice) -> KLoop:
        loop, held = streamed_loop(alg, ctx, v, tile, part.k)
        alg.rule("cap.l1", held + tile.un * (ATOM * ctx.bias_l1_bytes), "<=", ctx.spec.l1_bytes)
        return loop

    # -- what MTE2 loads
    @staticmethod
    def _reads(
        alg: Algebra, ctx: Context, tile: Tile, loop: KLoop, part: _Slice, m_cnt: Value, n_cnt: Value
    ) -> tuple[Reads, Reads]:
        """Reads of A, once a column of blocks, and of B, once a row of them."""
        of_a, of_b = (_rows(alg, ctx, depth, part.k) for depth in (loop.depth_a, loop.depth_b))
        if ctx.trans_a:
            of_a = Rows(alg.min_of(tile.rows, part.m), ATOM, ctx.m, ctx.m)
        reads_a = Reads(of_a, ctx.unique_a, ctx.batch * ctx.m * ctx.k * ctx.s, n_cnt)
        if not ctx.trans_b:
            of_b = Rows(alg.min_of(tile.columns, part.n), ATOM, ctx.n, ctx.n)
        reads_b = Reads(replace(of_b, ideal=ctx.nz_b), ctx.unique_b, ctx.batch * ctx.k * ctx.n * ctx.s, m_cnt)
        return reads_a, reads_b

    # -- what the vector cores add up
    @staticmethod
    def _reduced(alg: Algebra, ctx: Context, grid_k: Value, slot: Value) -> Value:
        """Bytes of a slice: each vector core reads grid_k partial sums and writes one output."""
        return alg.ceil_div(alg.mul(slot, grid_k * ACC_BYTES + ctx.so) * (ATOM * ATOM), grid_k)

    @staticmethod
    def _reduce_cost(alg: Algebra, ctx: Context, reduced: Value) -> Value:
        spec = ctx.spec
        per_byte = ctx.ticks_per_cycle * ctx.cores / spec.l2_read_bytes_per_cycle
        rates = ctx.rates(("reduce",), lambda: (spec.reduce_fixed_us * ctx.ticks_per_us, per_byte))
        return alg.ticks(rates, (1, reduced))

    # -- what the profiles ask for
    @staticmethod
    def _policy(alg: Algebra, ctx: Context, v: Values, tile: Tile) -> None:
        if ctx.profile == "v0.4":
            squares = alg.mul(v["grid_k"], v["grid_k"])
            alg.rule("policy.streamk_k", squares * ctx.spec.policy_streamk_k_per_grid2, "<=", ctx.k)
        if ctx.profile != "source":
            return
        source_steps(alg, ctx, v, "ab")
        alg.rule("policy.source_streamk_batch", v["grid_b"], "==", ctx.batch)
        alg.rule("policy.source_streamk_block", tile.count(alg), "<=", 1)
        alg.rule("policy.source_streamk_base_m", tile.um * ATOM, "<=", ctx.spec.source_block)
        alg.rule("policy.source_streamk_base_n", tile.un * ATOM, "<=", ctx.spec.source_block)


def _rows(alg: Algebra, ctx: Context, depth: Value, slice_k: Value) -> Rows:
    """Rows along K of an L1 part: ``depth`` atoms, cut at the slice.

    A slice of the search is a multiple of 16 elements; a plan's own slice may be any number of them.
    """
    if isinstance(slice_k, int) and slice_k % ATOM:
        return Rows(alg.min_of(depth * ctx.atom_k, slice_k), 1, ctx.k, ctx.k)
    lines = slice_k // ATOM if isinstance(slice_k, int) else alg.ceil_div(slice_k, ATOM)
    return Rows(alg.min_of(depth * (ctx.atom_k // ATOM), lines), ATOM, ctx.k, ctx.k)


_FORM: Final = Slices()


class StreamK(Branch):
    """The branch that cuts K across cores."""

    name = "stream_k"
    facts = Facts(
        aligned=(*TILE, "single_core_m", "single_core_n"),
        either=("single_core_m", "single_core_n", "single_core_k"),
        follows={"grid_m": "single_m", "grid_n": "single_n", "grid_k": "single_core_k"},
    )

    def entry(self, alg: Algebra, ctx: Context) -> None:
        spec = ctx.spec
        batched_entry(alg, ctx)
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
        return _FORM.structures(ctx, complete=complete, wide=wide)

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        return _FORM.formula(alg, ctx, v)

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        spec, step_ka, step_kb = ctx.spec, chosen(v, "step_ka"), chosen(v, "step_kb")
        return {
            "split_b": v["grid_b"],
            "m_cnt": counts["m_cnt"],
            "n_cnt": counts["n_cnt"],
            **{name: v[name] for name in ("grid_b", "grid_m", "grid_n", "grid_k")},
            "core_map": "grid",
            "b_core": counts["single_b"],
            "single_core_m": lambda: counts["single_m"]() * ATOM,
            "single_core_n": lambda: counts["single_n"]() * ATOM,
            "single_core_k": counts["single_k"],
            **base_fields(ctx, v),
            **cube_fields(alg, v, counts, "none", once, once, step_ka, step_kb),
            **l2_policy(alg, ctx, counts["n_cnt"], counts["m_cnt"]),
            "workspace_bytes": ctx.cores * spec.workspace_slot_elements * ACC_BYTES + spec.workspace_extra_bytes,
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

    def deciding(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        return ("grid_b", "grid_m", "grid_n", "grid_k", "single_core_k", *TILE, *BUFFERS, "step_ka", "step_kb")

    def variants(self, ctx: Context, asked: Mapping[str, Asked]) -> list[dict[str, int]]:
        """A K slice is a multiple of 16 as derived from the grid, or a value of a pinned range of at most 64."""
        if "single_core_k" not in asked:
            return [{}]
        low, high, exact = asked["single_core_k"]
        listed = range(max(low, 1), high + 1) if high - low < _MOST_SLICES else range(0)
        slices = {*listed, *((exact,) if exact is not None and exact >= 1 else ())}
        return [{}, *({"single_core_k": value} for value in sorted(slices))]

    def own_words(self, plan: Plan) -> str:
        return f"grid (b,m,n,k) {plan.grid_b}x{plan.grid_m}x{plan.grid_n}x{plan.grid_k}"


BRANCH = StreamK()
