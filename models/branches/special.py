"""Special: K = 0 (zeros or bias) and K = 1 (outer product) on the vector cores.

Design section 6.1. One structure; the time depends on the number of vector cores alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..algebra import Algebra
from ..case import BYTES
from ..context import Context
from ..latency import Outcome, Stages, Values, hbm_cost
from ..plan import Plan
from .base import NARROW, Branch, Counts, Decision, Facts, Structure, Wide, l2_policy, once

_UB_ALIGN = 32


class Special(Branch):
    """The branch without Cube work."""

    name = "special"
    facts = Facts(
        no_formula=frozenset({"entry.k_at_most_1"}),
        likely=2,
        aligned=(),
        zero=frozenset({"used", "rows", "runs"}),
        beam=(("ub_buffers", "rows", "runs"),),
        moves=(),
    )

    def entry(self, alg: Algebra, ctx: Context) -> None:
        alg.rule("entry.k_at_most_1", ctx.k if ctx.batch * ctx.m * ctx.n else 0, "<=", 1)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        if not ctx.batch * ctx.m * ctx.n:
            return [Structure({"used": 0, "rows": 0, "runs": 0, "ub_buffers": 1}, (), ())]
        spec = ctx.spec
        lines = spec.ub_bytes // _UB_ALIGN
        buffers = tuple(sorted({1, 2, wide.reach.get("ub_buffers", 1)}))
        free = (
            wide.decision("used", 1, 2 * spec.aiv_cores, min(spec.aiv_cores, _units(ctx))),
            wide.decision("rows", 1, ctx.m, lines),
            wide.decision("runs", 1, -(-ctx.n * ctx.so // spec.vector_unit_bytes), lines),
            Decision("ub_buffers", 1, buffers[-1], buffers),
        )
        return [Structure({}, free, ("used",))]

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        spec, used, rows, runs = ctx.spec, v["used"], v["rows"], v["runs"]
        counts = {
            "used_core_num": lambda: used,
            "hbm_units": lambda: 0,
            "um": lambda: rows,
            "un": lambda: alg.min_of(runs * (spec.vector_unit_bytes // ctx.so), ctx.n),
        }
        if not ctx.batch * ctx.m * ctx.n:
            return Outcome(Stages(total=0), counts)
        alg.rule("cap.cores", used, "<=", spec.aiv_cores)
        alg.rule("cover.vector_units", used, "<=", _units(ctx))
        width = alg.min_of(runs * (spec.vector_unit_bytes // _UB_ALIGN), -(-ctx.n * ctx.so // _UB_ALIGN))
        held = alg.mul(rows, width) * _UB_ALIGN
        if ctx.k:
            inputs = alg.ceil_div(rows * ctx.s, _UB_ALIGN) + runs * (
                spec.vector_unit_bytes // ctx.so * ctx.s // _UB_ALIGN
            )
            held = held + inputs * _UB_ALIGN
        if ctx.case.bias:
            held = held + runs * (spec.vector_unit_bytes // ctx.so * BYTES[ctx.case.bias])
        alg.rule("cap.ub", alg.mul(v["ub_buffers"], held), "<=", spec.ub_bytes)
        bias = ctx.n * BYTES[ctx.case.bias] * (ctx.batch if ctx.bias_batch else 1) if ctx.case.bias else 0
        read = bias + (ctx.unique_a + ctx.unique_b if ctx.k else 0)
        per_written = ctx.ticks_per_cycle / spec.l2_write_bytes_per_cycle
        writes = ctx.rates(("vector writes",), lambda: (ctx.output_total * per_written,))
        moved = alg.worst([hbm_cost(alg, ctx, read), alg.ticks(writes, (1,))])
        vector = alg.share(moved, spec.saturating_aiv_cores, alg.min_of(used, spec.saturating_aiv_cores))
        return Outcome(Stages(total=vector + ctx.head_ticks, head=ctx.head_ticks, vector=vector), counts)

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        return {
            "used_core_num": counts["used_core_num"],
            "split_b": ctx.batch,
            "core_map": "vector",
            "base_m": counts["um"],
            "base_n": counts["un"],
            "ub_buffers": v["ub_buffers"],
            **l2_policy(alg, ctx, once, once),
            "workspace_bytes": 0,
        }

    def values(self, ctx: Context, plan: Plan) -> dict[str, Any]:
        run = ctx.spec.vector_unit_bytes // ctx.so
        return {
            "used": plan.used_core_num,
            "rows": plan.base_m,
            "runs": -(-(plan.base_n or 0) // run),
            "ub_buffers": plan.ub_buffers,
        }

    def deciding(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        return ("used_core_num", "base_m", "base_n", "ub_buffers")

    def words(self, plan: Plan) -> str:
        return f"{plan.used_core_num} vector cores, tile {plan.base_m}x{plan.base_n}, UB x{plan.ub_buffers}"


def _units(ctx: Context) -> int:
    return ctx.batch * ctx.m * -(-ctx.n * ctx.so // ctx.spec.vector_unit_bytes)


BRANCH = Special()
