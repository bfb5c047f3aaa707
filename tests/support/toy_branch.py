"""A branch of its own, as somebody who adds one would write it: nothing outside of this file knows its name.

Blocks of ``base_m x base_n`` are dealt to the cores. Whatever the tile, A is read twice and B once (``iterate_order`` 0)
or the other way round, as if the cores passed their parts on. Both operands have one depth in L1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tileproof.models.algebra import Algebra
from tileproof.models.branches import registered
from tileproof.models.branches.base import NARROW, Branch, Counts, Facts, Structure, Wide, l2_policy, once
from tileproof.models.branches.cube import (
    base_fields,
    best_l0c,
    chosen,
    cube_entry,
    cube_fields,
    l0_rules,
    l1_width,
    step_decision,
    tile_decisions,
    tile_of,
    tile_values,
)
from tileproof.models.context import ATOM, Context
from tileproof.models.fields import BUFFERS, TILE
from tileproof.models.latency import (
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
from tileproof.models.plan import Plan
from tileproof.models.rules import RULES, RuleInfo

NAME = "panel"


class Panel(Branch):
    """Blocks dealt to the cores, the one operand read twice, the other once."""

    name = NAME
    facts = Facts(likely=3, beam=(("um", "un"), ("uk", "l1_buffers")))

    def entry(self, alg: Algebra, ctx: Context) -> None:
        cube_entry(alg, ctx)
        alg.rule("entry.no_bias", int(ctx.case.bias is not None), "<=", 0)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        result = []
        for l0_buffers in (2, 1):
            step = step_decision(ctx, "step_k", ctx.ak // ctx.atom_k, wide)
            order = wide.decision("iterate_order", 0, 1)
            free = (*tile_decisions(ctx, ctx.k, l0_buffers, wide), step, wide.l1_buffers(), order)
            result += [Structure({"l0_buffers": l0_buffers, **l0c}, free, ("um", "un")) for l0c in best_l0c(complete)]
        return result

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        um, un, step, order = v["um"], v["un"], v["step_k"], v["iterate_order"]
        tile = tile_of(alg, ctx, v)
        uk, rows, columns = tile.uk, tile.rows, tile.columns
        blocks = tile.count(alg) * ctx.batch
        rounds, used = alg.ceil_div(blocks, ctx.cores), alg.min_of(blocks, ctx.cores)
        l0_rules(alg, ctx, v, um, un, uk)
        alg.rule("cover.panel_order", order, "<=", 1)
        if ctx.profile == "v0.4":
            block = alg.mul(rows, columns) * (ATOM * ATOM * ctx.so)
            alg.rule("policy.panel_block", block, ">=", ctx.spec.policy_tile_bytes)

        extent, unit = ctx.ak // ctx.atom_k, ATOM * ctx.atom_k * ctx.s
        steps = alg.ceil_div(extent, uk)
        alg.rule("step.ka_max", step, "<=", ctx.spec.max_step_k)
        if not v.get("free_steps"):
            alg.within(step, "<=", steps)
        depth = alg.capped(alg.mul(step, uk), ctx.spec.l1_bytes // unit, um + un)
        held = alg.mul(l1_width(alg, ctx, "a", um) + l1_width(alg, ctx, "b", un), depth)
        alg.rule("cap.l1", alg.mul(v["l1_buffers"], held) * unit, "<=", ctx.spec.l1_bytes)
        cut = alg.min_of(depth, extent)

        reads_a = Reads(rows_a(ctx, depth, rows), ctx.unique_a, ctx.unique_a, order * -1 + 2)
        reads_b = Reads(rows_b(ctx, depth, columns), ctx.unique_b, ctx.unique_b, order + 1)
        area = alg.mul(rows, columns)
        heads, sides = alg.mul(rounds, steps), alg.mul(rounds, rows + columns)
        pipes = Pipes(
            mmad=mmad_cost(alg, ctx, alg.mul(rounds, area), heads, v["l0_buffers"], ctx.fractals_k),
            mte1=mte1_cost(alg, ctx, sides * ctx.k, heads),
            fixpipe=alg.worst([drain_cost(alg, ctx, rounds, alg.mul(rounds, area)), ctx.unaligned_ticks]),
            drain=drain_cost(alg, ctx, 1, area),
            fill1=first_fill(alg, ctx, [(unit, alg.mul(rows + columns, cut))], used),
            fill0=first_load(alg, ctx, rows + columns, ctx.k),
            loads=Loads(
                reads_a,
                reads_b,
                shared=occupied(alg, ctx, reads_a.cost(alg, ctx) + reads_b.cost(alg, ctx), used),
                port=port_cost(alg, ctx, [(ATOM * ctx.k * ctx.s, sides)]),
                hbm=hbm_cost(alg, ctx, ctx.unique_a + ctx.unique_b),
            ),
            steps=alg.mul(rounds, alg.ceil_div(extent, depth)),
        )
        counts = {
            "m_cnt": lambda: tile.m_cnt,
            "n_cnt": lambda: tile.n_cnt,
            "used_core_num": lambda: used,
            "hbm_units": lambda: (order * -1 + 2) * (ctx.batch_a * ctx.m) + (order + 1) * (ctx.batch_b * ctx.n),
            "k_l1": lambda: alg.min_of(cut * ctx.atom_k, ctx.k),
        }
        return Outcome(overlap(alg, ctx, pipes, v), counts, pipes.loads)

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        step_k, order = chosen(v, "step_k"), chosen(v, "iterate_order")
        return {
            "split_b": ctx.batch,
            "m_cnt": counts["m_cnt"],
            "n_cnt": counts["n_cnt"],
            "core_map": "grid",
            **base_fields(ctx, v),
            **cube_fields(alg, v, counts, "none", once, once, step_k, step_k),
            "iterate_order": v["iterate_order"],
            **l2_policy(alg, ctx, lambda: order() * -1 + 2, lambda: order() + 1),
            "workspace_bytes": 0,
        }

    def values(self, ctx: Context, plan: Plan) -> dict[str, Any]:
        return {**tile_values(ctx, plan), "step_k": plan.step_ka, "iterate_order": plan.iterate_order}

    def deciding(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        return (*TILE, *BUFFERS, "step_ka", "iterate_order")

    def own_words(self, plan: Plan) -> str:
        return f"order {plan.iterate_order}"


#: Its rows of the table of rules.
_RULES: dict[str, RuleInfo] = {
    "cover.panel_order": RuleInfo(id="cover.panel_order", text="iterate_order <= 1: M first or N first"),
    "policy.panel_block": RuleInfo(
        id="policy.panel_block", unit="B", text="a block of C is at least 16 KB", profile="v0.4"
    ),
}


@contextmanager
def with_panel() -> Iterator[Panel]:
    """The package with one more branch and two more rules, as if they had been written into it."""
    branch = Panel()
    RULES.update(_RULES)
    try:
        with registered(branch):
            yield branch
    finally:
        for rule in _RULES:
            del RULES[rule]
