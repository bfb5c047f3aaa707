"""IterBatch: batches one after another on each core.

Design section 6.3. Structures: what stays in L1 (``l1_form``, see :mod:`.iter_forms`) and the buffers.

a  one batch resident                    b  ``iter_l1`` batches resident
c  one operand whole, one batch a core   d  the same with several batches a core, half of L1
e  both streamed along K                 f  standard tiles with re-reads inside the core
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..algebra import Algebra, Value
from ..context import ACC_BYTES, ATOM, Context
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
    hbm_cost,
    mmad_cost,
    mte1_cost,
    occupied,
    overlap,
    port_cost,
)
from ..plan import Plan
from .base import NARROW, Branch, Counts, Facts, Structure, Wide, l2_policy, once
from .cube import (
    Tile,
    base_fields,
    batched_entry,
    best_l0c,
    bias_rule,
    cube_fields,
    l0_rules,
    source_steps,
    tile_decisions,
    tile_of,
    tile_values,
)
from .iter_forms import FORMS, Fill, L1Form


@dataclass
class _Deal:
    """Groups of ``iter_l1`` batches dealt to the cores: ``turns`` and batches of the busiest core, ``used`` cores."""

    turns: Value
    b_core: Value
    used: Value


class IterBatch(Branch):
    """The branch that gives whole batches to cores."""

    name = "iter_batch"
    facts = Facts(
        beam=(("um", "un"), ("uk", "l1_buffers", "iter_l1"), ("step_ka", "step_kb", "step_part", "iter_l0")),
        moves=(*Facts.moves, ("l1_form", "full_load"), ("full_load",)),
    )

    def entry(self, alg: Algebra, ctx: Context) -> None:
        batched_entry(alg, ctx)
        if ctx.profile == "v0.4" and ctx.k >= 2 and ctx.m * ctx.n >= 1:
            alg.rule("policy.iter_batches", ctx.batch, ">=", ctx.cores)
            alg.rule("policy.iter_class", _bound_class(ctx), ">=", 1)
        if ctx.profile == "source":
            alg.rule("policy.source_iter_batches", ctx.batch, ">=", ctx.cores + 1)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        l0c_choices = best_l0c(complete, double_only=ctx.profile == "source")
        return [
            Structure({**part.constants, "l0_buffers": l0_buffers, **l0c}, part.decisions, part.axes, part.outer)
            for l0_buffers in (2, 1)
            for form in FORMS.values()
            for part in form.structures(ctx, tile_decisions(ctx, ctx.k, l0_buffers, wide), wide, complete=complete)
            for l0c in l0c_choices
        ]

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        form, deal = FORMS[v["l1_form"]], self._deal(alg, ctx, v)
        tile = tile_of(alg, ctx, v)
        tiles = tile.count(alg)

        l0_rules(alg, ctx, v, tile.um, tile.un, tile.uk, v["iter_l0"])
        bias_rule(alg, ctx, tile.un)
        self._batch_rules(alg, ctx, v, form)
        fill = form.fill(alg, ctx, v, tile, deal.b_core)
        alg.rule("cap.l1", fill.held + tile.un * (ATOM * ctx.bias_l1_bytes), "<=", fill.budget)
        self._policy(alg, ctx, v, form, deal.b_core)

        l1_steps = alg.mul(deal.turns if form.grouped else deal.b_core, fill.steps)
        rounds, block = alg.mul(deal.b_core, tiles), alg.mul(tile.rows, tile.columns)
        drains = alg.mul(alg.mul(alg.ceil_div(v["iter_l1"], v["iter_l0"]), deal.turns), tiles)
        steps = alg.ceil_div(ctx.ak // ctx.atom_k, tile.uk) if fill.loop is None else fill.loop.steps
        heads = alg.mul(rounds, steps)
        reads_a, reads_b = self._reads(ctx, form, fill, tile)
        port = self._port(alg, ctx, form, tile, deal.b_core, rounds)
        sides = alg.mul(rounds, tile.rows + tile.columns)
        shared, hbm = self._shared(alg, ctx, form, reads_a, reads_b)
        pipes = Pipes(
            mmad=mmad_cost(alg, ctx, alg.mul(rounds, block), heads, v["l0_buffers"], ctx.fractals_k),
            mte1=mte1_cost(alg, ctx, sides * ctx.k, heads),
            fixpipe=alg.worst([drain_cost(alg, ctx, drains, alg.mul(rounds, block)), ctx.unaligned_ticks]),
            drain=drain_cost(alg, ctx, 1, alg.mul(v["iter_l0"], block)),
            fill1=first_fill(alg, ctx, fill.first, deal.used),
            fill0=first_load(alg, ctx, tile.rows + tile.columns, ctx.k),
            loads=Loads(reads_a, reads_b, occupied(alg, ctx, shared, deal.used), port, hbm),
            steps=l1_steps,
        )
        counts = self._counts(alg, ctx, form, fill, tile, deal, steps)
        return Outcome(overlap(alg, ctx, pipes, v), counts, pipes.loads)

    @staticmethod
    def _counts(
        alg: Algebra, ctx: Context, form: L1Form, fill: Fill, tile: Tile, deal: _Deal, steps: Value
    ) -> dict[str, Callable[[], Value]]:
        units_a, units_b, loop = ctx.batch_a * ctx.m * ctx.cores, ctx.batch_b * ctx.n * ctx.cores, fill.loop

        def hbm_units() -> Value:
            return tile.n_cnt * units_a + tile.m_cnt * units_b if _misses(ctx, form) else units_a + units_b

        def k_l1() -> Value:
            return ctx.k if loop is None else alg.min_of(alg.max_of(loop.cut_a, loop.cut_b) * ctx.atom_k, ctx.k)

        return {
            "m_cnt": lambda: tile.m_cnt,
            "n_cnt": lambda: tile.n_cnt,
            "used_core_num": lambda: deal.used,
            "b_core": lambda: deal.b_core,
            "steps": lambda: steps,
            "hbm_units": hbm_units,
            "k_l1": k_l1,
        }

    # -- what is tiled
    @staticmethod
    def _deal(alg: Algebra, ctx: Context, v: Values) -> _Deal:
        groups = alg.ceil_div(ctx.batch, v["iter_l1"])
        turns = alg.ceil_div(groups, ctx.cores)
        return _Deal(turns, alg.mul(v["iter_l1"], turns), alg.min_of(groups, ctx.cores))

    # -- which rules hold
    @staticmethod
    def _batch_rules(alg: Algebra, ctx: Context, v: Values, form: L1Form) -> None:
        """How many batches L1 and L0 may hold in this form."""
        iter_l1, iter_l0 = v["iter_l1"], v["iter_l0"]
        alg.rule("cover.iter_l1", iter_l1, "<=", ctx.batch)
        if not form.grouped:
            alg.rule("cover.iter_one", iter_l1, "<=", 1)
        alg.rule("cover.form_side", int((v["full_load"] != "none") == form.sided), "==", 1)
        alg.rule("cover.iter_l0", iter_l0, "<=", iter_l1)
        if not (isinstance(iter_l0, int) and iter_l0 == 1):
            several = alg.min_of(iter_l0, 2) - 1
            alg.rule("cover.whole_m", v["um"], ">=", several * (ctx.am // ATOM))
            alg.rule("cover.whole_n", v["un"], ">=", several * (ctx.an // ATOM))
            alg.rule("cover.whole_k", v["uk"], ">=", several * (ctx.ak // ctx.atom_k))

    # -- what MTE2 loads
    @staticmethod
    def _reads(ctx: Context, form: L1Form, fill: Fill, tile: Tile) -> tuple[Reads, Reads]:
        """Reads of A and of B: once, or again for every column (row) of blocks."""
        passes_a, passes_b = (tile.n_cnt, tile.m_cnt) if form.rereads else (1, 1)
        return (
            Reads(fill.rows_a, ctx.unique_a, ctx.unique_a, passes_a),
            Reads(fill.rows_b, ctx.unique_b, ctx.unique_b, passes_b),
        )

    @staticmethod
    def _port(alg: Algebra, ctx: Context, form: L1Form, tile: Tile, b_core: Value, rounds: Value) -> Value:
        line = ATOM * ctx.k * ctx.s
        if form.rereads:
            return port_cost(alg, ctx, [(line, alg.mul(rounds, tile.rows + tile.columns))])
        return port_cost(alg, ctx, [(line, b_core * (ctx.am // ATOM + ctx.an // ATOM))])

    @staticmethod
    def _shared(alg: Algebra, ctx: Context, form: L1Form, reads_a: Reads, reads_b: Reads) -> tuple[Value, Value]:
        """Costs of the reads at the shared bandwidth and of what must cross HBM."""
        if not _misses(ctx, form):
            shared = reads_a.cost(alg, ctx) + reads_b.cost(alg, ctx)
            return shared, hbm_cost(alg, ctx, ctx.unique_a + ctx.unique_b)
        all_from_hbm, per_unique = Fraction(1), ctx.per_unique_byte
        shared = reads_a.missing_cost(alg, ctx, all_from_hbm) + reads_b.missing_cost(alg, ctx, all_from_hbm)
        rates = ctx.rates(("all misses",), lambda: (ctx.unique_a * per_unique, ctx.unique_b * per_unique))
        return shared, alg.ticks(rates, (reads_a.count, reads_b.count)) + hbm_cost(alg, ctx, 0)

    # -- what the profiles ask for
    @staticmethod
    def _policy(alg: Algebra, ctx: Context, v: Values, form: L1Form, b_core: Value) -> None:
        spec = ctx.spec
        if ctx.profile == "v0.4":
            share = spec.policy_balance_share if _bound_class(ctx) == 3 else Fraction(1)
            busy = b_core * (ctx.cores * share.numerator)
            alg.rule("policy.iter_balance", busy, "<=", ctx.batch * share.denominator)
            if _bound_class(ctx) == 3:
                alg.rule("policy.iter_forms", int(form.rereads), "<=", 0)
        if ctx.profile != "source":
            return
        source_steps(alg, ctx, v, "")
        alg.rule("policy.source_iter_form", int(form.name == "b"), ">=", 1)
        alg.rule("policy.source_l0c_buffers", v["l0c_buffers"], "==", 2)
        in_half = (
            2 * ctx.am * ctx.ak * ctx.s <= spec.l0a_bytes
            and 2 * ctx.an * ctx.ak * ctx.s <= spec.l0b_bytes
            and 2 * ctx.am * ctx.an * ACC_BYTES <= spec.l0c_bytes
        )
        if not in_half:
            share = spec.policy_balance_share
            busy = b_core * (ctx.cores * share.numerator)
            alg.rule("policy.source_iter_balance", busy, "<=", ctx.batch * share.denominator)

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        form, side, m_cnt, n_cnt = FORMS[v["l1_form"]], v["full_load"], counts["m_cnt"], counts["n_cnt"]
        step_m, step_n = form.step(v, counts, "a"), form.step(v, counts, "b")
        step_ka, step_kb = form.step_k(v, counts, "a"), form.step_k(v, counts, "b")
        return {
            "split_b": counts["used_core_num"],
            "m_cnt": m_cnt,
            "n_cnt": n_cnt,
            "grid_k": 1,
            "core_map": "batch",
            "b_core": counts["b_core"],
            "iter_l1": v["iter_l1"],
            "iter_l0": v["iter_l0"],
            "single_core_m": ctx.m,
            "single_core_n": ctx.n,
            "single_core_k": ctx.k,
            "l1_form": form.name,
            "full_load": side,
            **base_fields(ctx, v),
            **cube_fields(alg, v, counts, side, step_m, step_n, step_ka, step_kb),
            **l2_policy(alg, ctx, n_cnt if form.rereads else once, m_cnt if form.rereads else once),
            "workspace_bytes": 0,
        }

    def values(self, ctx: Context, plan: Plan) -> dict[str, Any]:
        side = plan.full_load or "none"
        return {
            **tile_values(ctx, plan),
            "l1_form": plan.l1_form,
            "full_load": side,
            "iter_l1": plan.iter_l1,
            "iter_l0": plan.iter_l0,
            "step_part": plan.step_n if side == "a" else plan.step_m,
            "step_ka": plan.step_ka,
            "step_kb": plan.step_kb,
        }

    def deciding(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        always = (*TILE, *BUFFERS, "l1_form", "full_load", "iter_l1", "iter_l0")
        return (*always, *(self.field_of(name, given) for name in _decided(given)))

    def forced(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return FORMS[given["l1_form"]].forced(given)

    def optional(self, given: Mapping[str, Any]) -> frozenset[str]:
        return frozenset(name for form in FORMS.values() for name in form.decided).difference(_decided(given))

    def field_of(self, decision: str, values: Mapping[str, Any]) -> str:
        if decision == "step_part":
            return "step_n" if values.get("full_load") == "a" else "step_m"
        return super().field_of(decision, values)

    def own_words(self, plan: Plan) -> str:
        return f"form {plan.l1_form}, {plan.b_core} batches a core, {plan.iter_l1} in L1, {plan.iter_l0} in L0"


def _decided(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Steps that the L1 form of a plan leaves to choose."""
    form = given.get("l1_form")
    return FORMS[form].decided if form in FORMS else ()


def _misses(ctx: Context, form: L1Form) -> bool:
    """Whether every pass comes from HBM: a form that reads again shares nothing between cores.

    Its re-reads hit L2 only while one batch of every core fits.
    """
    working_set = min(ctx.batch, ctx.cores) * (ctx.m + ctx.n) * ctx.k * ctx.s
    return form.rereads and working_set > ctx.spec.l2_bytes


def _bound_class(ctx: Context) -> int:
    """Class of the v0.4 entry conditions: 1 compute-bound, 2 output kept in L2, 3 memory-bound, 0 none of them."""
    spec, m, n, k = ctx.spec, ctx.m, ctx.n, ctx.k
    balance = spec.balance_flop_per_element(ctx.case.dtype, ctx.s)
    peak = 2 * ctx.cores * spec.mac_per_cycle(ctx.case.dtype)
    if Fraction(2 * m * n * k, m * k + k * n + m * n) >= balance:
        return 1
    if Fraction(2 * m * n, m + n) < balance:
        return 3
    write_balance = Fraction(peak * ctx.so) / spec.l2_write_bytes_per_cycle
    return 2 if 2 * k >= write_balance and m * n * ctx.so <= spec.l2_bytes else 0


BRANCH = IterBatch()
