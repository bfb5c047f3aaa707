"""MergeBatch: ``merge_b0`` batches form one block-diagonal product; only the diagonal blocks are written.

Design section 6.4. Structures: the buffers; the number of merged batches is an outer decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..algebra import Algebra, Value
from ..context import ACC_BYTES, ATOM, Context, ceil_to
from ..fields import BUFFERS
from ..latency import (
    WHOLE,
    Loads,
    Outcome,
    Pipes,
    Reads,
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
    rows_a,
    rows_b,
)
from ..plan import Plan
from .base import NARROW, Branch, Counts, Facts, Structure, Wide, l2_policy, once
from .cube import (
    batched_entry,
    best_l0c,
    chosen,
    cube_fields,
    l0_rules,
    l1_width,
    most_uk,
    source_steps,
    step_decision,
    tile_values,
)


@dataclass
class _Product:
    """The merged product: ``rows x columns`` atoms of ``groups`` one after another, on each of ``used`` cores."""

    rows: Value
    columns: Value
    groups: Value
    used: int


@dataclass
class _InL1:
    """What L1 holds: ``depth`` atoms along K (``cut`` at K) of ``rows`` atoms of A and B; L0 and L1 steps along K."""

    steps: Value
    depth: Value
    cut: Value
    rows: Value
    l1: Value
    k_l1: Value


class MergeBatch(Branch):
    """The branch that trades wasted products for larger tiles."""

    name = "merge_batch"
    facts = Facts(beam=(("uk", "l1_buffers", "b_l1"), ("step_k",)))

    def entry(self, alg: Algebra, ctx: Context) -> None:
        spec = ctx.spec
        batched_entry(alg, ctx)
        alg.rule("entry.no_bias", int(ctx.case.bias is not None), "<=", 0)
        alg.rule("entry.merge_dtype", int(ctx.case.dtype != "fp32"), ">=", 1)
        if ctx.profile == "v0.4":
            moved = _b_core(ctx) * (ctx.m + ctx.n) * ctx.k * ctx.s
            alg.rule("policy.merge_batches", ctx.batch, ">=", spec.policy_merge_batches_per_core * ctx.cores)
            alg.rule("policy.merge_core_bytes", moved, ">=", spec.policy_bytes_per_core)
        if ctx.profile == "source":
            least = max(ctx.c0, ATOM) if ctx.trans_a or not ctx.trans_b else ctx.c0
            rows = 4 * ctx.am if ctx.trans_a and ctx.m > 1 else ceil_to(4 * ctx.m, ATOM)
            alg.rule("policy.source_merge_batches", ctx.batch, ">=", spec.policy_merge_batches_per_core * ctx.cores)
            alg.rule("policy.source_merge_k", ceil_to(ctx.k, ctx.c0), ">=", spec.source_merge_min_k)
            alg.rule("policy.source_merge_m", ctx.m, "<=", ctx.n)
            alg.rule("policy.source_merge_l0a", 2 * rows * least * ctx.s, "<=", spec.l0a_bytes)
            alg.rule("policy.source_merge_l0b", 2 * 4 * ctx.an * least * ctx.s, "<=", spec.l0b_bytes)
            alg.rule("policy.source_merge_l0c", 2 * rows * 4 * ctx.an * ACC_BYTES, "<=", spec.l0c_bytes)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        spec = ctx.spec
        column = max(1, ctx.an) * ctx.atom_k * ctx.s
        most = max(2, ctx.batch) if wide.free else _b_core(ctx)
        uk = wide.decision("uk", 1, ctx.ak // ctx.atom_k)
        free = (
            wide.decision("merge_b0", 1 if wide.free else 2, most, spec.l0b_bytes // column),
            uk,
            wide.decision("b_l1", 1 if wide.free else 2, most, spec.l1_bytes // column),
            step_decision(ctx, "step_k", ctx.ak // ctx.atom_k, wide),
            wide.l1_buffers(),
        )
        return [
            Structure({"l0_buffers": l0_buffers, **l0c}, free, ("uk", "b_l1"), ("merge_b0",))
            for l0_buffers in (2, 1)
            for l0c in best_l0c(complete, double_only=ctx.profile == "source")
        ]

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        product = self._product(alg, ctx, v)
        rows, columns, groups, used = product.rows, product.columns, product.groups, product.used
        held = self._in_l1(alg, ctx, v, product)
        self._policy(alg, ctx, v, held.k_l1)

        reads_a = Reads(rows_a(ctx, held.depth, WHOLE), ctx.unique_a, ctx.unique_a, 1)
        reads_b = Reads(rows_b(ctx, held.depth, WHOLE), ctx.unique_b, ctx.unique_b, 1)
        sides, heads = alg.mul(groups, rows + columns), alg.mul(groups, held.steps)
        area = alg.mul(groups, alg.mul(rows, columns))
        written = v["merge_b0"] * ((ctx.am // ATOM) * (ctx.an // ATOM))
        pipes = Pipes(
            mmad=mmad_cost(alg, ctx, area, heads, v["l0_buffers"], ctx.fractals_k),
            mte1=mte1_cost(alg, ctx, sides * ctx.k, heads),
            fixpipe=alg.worst([drain_cost(alg, ctx, groups, alg.mul(groups, written)), ctx.unaligned_ticks]),
            drain=drain_cost(alg, ctx, 1, written),
            fill1=first_fill(alg, ctx, [(ATOM * ctx.atom_k * ctx.s, alg.mul(held.rows, held.cut))], used),
            fill0=first_load(alg, ctx, rows + columns, ctx.k),
            loads=Loads(
                reads_a,
                reads_b,
                occupied(alg, ctx, reads_a.cost(alg, ctx) + reads_b.cost(alg, ctx), used),
                port_cost(alg, ctx, [(ATOM * ctx.k * ctx.s, sides)]),
                hbm_cost(alg, ctx, ctx.unique_a + ctx.unique_b),
            ),
            steps=alg.mul(alg.ceil_div(_b_core(ctx), v["b_l1"]), held.l1),
        )
        counts = {
            "used_core_num": lambda: used,
            "hbm_units": lambda: (ctx.batch_a * ctx.m + ctx.batch_b * ctx.n) * ctx.cores,
            "um": lambda: rows,
            "un": lambda: v["merge_b0"],
            "k_l1": lambda: held.k_l1,
        }
        return Outcome(overlap(alg, ctx, pipes, v), counts, pipes.loads)

    # -- what is tiled
    @staticmethod
    def _product(alg: Algebra, ctx: Context, v: Values) -> _Product:
        merged, b_l1, b_core = v["merge_b0"], v["b_l1"], _b_core(ctx)
        rows, columns = _rows(alg, ctx, merged), merged * (ctx.an // ATOM)
        groups = alg.ceil_div(b_core, merged)
        alg.rule("cover.merge_b0_least", merged, ">=", 2)
        alg.rule("cover.merge_b0", merged, "<=", b_core)
        alg.rule("cover.b_l1", b_l1, ">=", merged)
        alg.rule("cover.b_l1_most", b_l1, "<=", b_core)
        return _Product(rows, columns, groups, -(-ctx.batch // b_core))

    # -- which rules hold
    @staticmethod
    def _in_l1(alg: Algebra, ctx: Context, v: Values, product: _Product) -> _InL1:
        spec, b_l1, step = ctx.spec, v["b_l1"], v["step_k"]
        uk = most_uk(alg, ctx, v, product.rows, product.columns, v["uk"])
        l0_rules(alg, ctx, v, product.rows, product.columns, uk)
        extent = ctx.ak // ctx.atom_k
        steps = alg.ceil_div(extent, uk)
        alg.rule("step.ka_max", step, "<=", spec.max_step_k)
        if not v.get("free_steps"):
            alg.within(step, "<=", steps)
        unit = ATOM * ctx.atom_k * ctx.s
        rows = _rows(alg, ctx, b_l1) + b_l1 * (ctx.an // ATOM)
        depth = alg.capped(alg.mul(step, uk), spec.l1_bytes // unit, rows)
        cut = alg.min_of(depth, extent)
        l1 = alg.ceil_div(extent, depth)
        held = _rows(alg, ctx, b_l1, l1=True) + b_l1 * l1_width(alg, ctx, "b", ctx.an // ATOM)
        alg.rule("cap.l1", alg.mul(v["l1_buffers"], alg.mul(held, depth)) * unit, "<=", spec.l1_bytes)
        return _InL1(steps, depth, cut, rows, l1, alg.min_of(cut * ctx.atom_k, ctx.k))

    # -- what the profiles ask for
    @staticmethod
    def _policy(alg: Algebra, ctx: Context, v: Values, k_l1: Value) -> None:
        spec, merged, b_l1 = ctx.spec, v["merge_b0"], v["b_l1"]
        if ctx.profile == "v0.4":
            balance = spec.balance_flop_per_element(ctx.case.dtype, ctx.s) * (ctx.m + ctx.n)
            # merge_b0 * 2MN < balance, over integers.
            below = -(-balance.numerator // balance.denominator) - 1
            alg.rule("policy.merge_memory_bound", merged * (2 * ctx.m * ctx.n), "<=", below)
            alg.rule("policy.merge_k_bytes", k_l1 * ctx.s, ">=", spec.policy_k_bytes)
            more = alg.mul(merged + 1, k_l1) * ((ctx.m + ctx.n) * ctx.s)
            alg.rule("policy.merge_l1_batches", more, "<=", spec.l1_bytes)
            widest = alg.max_of(b_l1 * ctx.m, ctx.n)
            alg.rule("policy.merge_tile_bytes", alg.mul(widest, k_l1) * ctx.s, ">=", spec.policy_tile_bytes)
        if ctx.profile == "source":
            source_steps(alg, ctx, {**v, "step_ka": v["step_k"]}, "a")
            alg.rule("policy.source_merge_l1", b_l1, "==", merged)
            alg.rule("policy.source_l0c_buffers", v["l0c_buffers"], "==", 2)

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        step_k = chosen(v, "step_k")
        return {
            "split_b": counts["used_core_num"],
            "m_cnt": 1,
            "n_cnt": 1,
            "grid_k": 1,
            "core_map": "batch",
            "b_core": _b_core(ctx),
            "merge_b0": v["merge_b0"],
            "single_core_m": ctx.m,
            "single_core_n": ctx.n,
            "single_core_k": ctx.k,
            "b_l1": v["b_l1"],
            "full_load": "none",
            "base_m": lambda: counts["um"]() * ATOM,
            "base_n": v["merge_b0"] * ctx.an,
            "base_k": v["uk"] * ctx.atom_k,
            **cube_fields(alg, v, counts, "none", once, once, step_k, step_k),
            **l2_policy(alg, ctx, once, once),
            "workspace_bytes": 0,
        }

    def values(self, ctx: Context, plan: Plan) -> dict[str, Any]:
        tile = tile_values(ctx, plan)
        return {
            **{name: value for name, value in tile.items() if name not in ("um", "un")},  # they follow from merge_b0
            "merge_b0": plan.merge_b0,
            "b_l1": plan.b_l1,
            "step_k": plan.step_ka,
        }

    def deciding(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        return ("merge_b0", "b_l1", "base_k", "step_ka", *BUFFERS)

    def own_words(self, plan: Plan) -> str:
        return f"merge {plan.merge_b0} of {plan.b_core} batches a core, {plan.b_l1} in L1"


def _b_core(ctx: Context) -> int:
    return -(-ctx.batch // ctx.cores)


def _rows(alg: Algebra, ctx: Context, batches: Value, *, l1: bool = False) -> Value:
    """Atoms of rows that ``batches`` matrices of A take in L0, or in L1: packed, unless transposed."""
    if ctx.trans_a:
        return batches * (l1_width(alg, ctx, "a", ctx.am // ATOM) if l1 else ctx.am // ATOM)
    return alg.ceil_div(batches * ctx.m, ATOM)


BRANCH = MergeBatch()
