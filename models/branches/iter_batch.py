"""IterBatch: batches one after another on each core.

Design section 6.3. Structures: what stays in L1 (``l1_form``) and the buffers.

a  one batch resident                    b  ``iter_l1`` batches resident
c  one operand whole, one batch a core   d  the same with several batches a core, half of L1
e  both streamed along K                 f  standard tiles with re-reads inside the core
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from ..algebra import Algebra, Value
from ..context import ACC_BYTES, ATOM, Context
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
    rows_a,
    rows_b,
    whole_rows_a,
    whole_rows_b,
)
from ..plan import BranchName, Plan
from .base import (
    NARROW,
    Branch,
    Counts,
    Decision,
    KLoop,
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
    once,
    source_steps,
    step_decision,
    tile_decisions,
    tile_values,
)

_WIDE = 2**31
_Form = tuple[dict[str, Any], tuple[Decision, ...], tuple[str, ...], tuple[str, ...]]


@dataclass
class _Load:
    """How one form fills L1: bytes held (without bias), L1 steps of a batch, first step, and the K loop if streamed."""

    held: Value
    budget: int
    steps: Value
    first: list[tuple[int, Value]]
    rows_a: Rows
    rows_b: Rows
    loop: KLoop | None = None


class IterBatch(Branch):
    """The branch that gives whole batches to cores."""

    name: ClassVar[BranchName] = "iter_batch"

    def entry(self, alg: Algebra, ctx: Context) -> None:
        alg.rule("entry.k_at_least_2", ctx.k, ">=", 2)
        alg.rule("entry.output_not_empty", ctx.batch * ctx.m * ctx.n, ">=", 1)
        alg.rule("entry.equal_batch", int(ctx.equal_batch), "==", 1)
        if ctx.profile == "v0.4" and ctx.k >= 2 and ctx.m * ctx.n >= 1:
            alg.rule("policy.iter_batches", ctx.batch, ">=", ctx.cores)
            alg.rule("policy.iter_class", _bound_class(ctx), ">=", 1)
        if ctx.profile == "source":
            alg.rule("policy.source_iter_batches", ctx.batch, ">=", ctx.cores + 1)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        return [
            Structure({**fixed, "l0_buffers": l0_buffers, **l0c}, free, axes, outer)
            for l0_buffers in (2, 1)
            for fixed, free, axes, outer in self._forms(ctx, l0_buffers, wide, complete=complete)
            for l0c in best_l0c(complete, double_only=ctx.profile == "source")
        ]

    @staticmethod
    def _forms(ctx: Context, l0_buffers: int, wide: Wide, *, complete: bool) -> list[_Form]:
        """(constants, decisions, axes, outer) of every L1 form."""
        tile = tile_decisions(ctx, ctx.k, l0_buffers, wide)
        uk = tile[2]
        whole = {"um": ctx.am // ATOM, "un": ctx.an // ATOM, "uk": ctx.ak // ctx.atom_k}
        l1 = wide.l1_buffers()
        steps = tuple(step_decision(ctx, f"step_k{x}", whole["uk"], wide) for x in "ab")
        batch_bytes = (ctx.am + ctx.an) * ctx.ak * ctx.s
        iter_l1 = wide.decision("iter_l1", 1, ctx.batch, ctx.spec.l1_bytes // batch_bytes)
        iter_l0 = wide.decision("iter_l0", 1, iter_l1.hi, ctx.spec.l0c_bytes // (ctx.am * ctx.an * ACC_BYTES))
        one = {"iter_l1": 1, "iter_l0": 1, "full_load": "none"}
        group = {"l1_form": "b", "full_load": "none"}
        forms: list[_Form] = [({**one, "l1_form": "a", "l1_buffers": 1}, tile, ("um", "un"), ())]
        if complete:
            forms.append((group, (iter_l1, iter_l0, *tile, l1), ("um", "un"), ("iter_l1",)))
        else:
            forms.append(({**group, **whole}, (iter_l1, iter_l0, l1), ("iter_l1", "iter_l0"), ()))
            forms.append(({**group, "iter_l0": 1}, (iter_l1, *tile, l1), ("um", "un"), ("iter_l1",)))
        for form in "cd":
            for side, extent in (("a", whole["un"]), ("b", whole["um"])):
                free = (*tile, step_decision(ctx, "step_part", extent, wide), l1)
                forms.append(({**one, "l1_form": form, "full_load": side}, free, ("um", "un"), ()))
        if complete and wide.free:
            forms.append(({**one, "l1_form": "e"}, (*tile, *steps, l1), ("um", "un"), ()))
        else:
            fixed_block = {"um": whole["um"], "un": whole["un"]}
            forms.append(({**one, **fixed_block, "l1_form": "e"}, (uk, *steps, l1), ("uk", "step_ka"), ()))
        forms.append(({**one, "l1_form": "f"}, (*tile, *steps, l1), ("um", "un"), ()))
        return forms

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        form, iter_l1, iter_l0, um, un = v["l1_form"], v["iter_l1"], v["iter_l0"], v["um"], v["un"]
        turns = alg.ceil_div(alg.ceil_div(ctx.batch, iter_l1), ctx.cores)
        b_core = alg.mul(iter_l1, turns)
        used = alg.min_of(alg.ceil_div(ctx.batch, iter_l1), ctx.cores)
        most_m, most_n, most_k = ctx.am // ATOM, ctx.an // ATOM, ctx.ak // ctx.atom_k
        uk = most_uk(alg, ctx, v, um, un, v["uk"])
        rows, columns = alg.min_of(um, most_m), alg.min_of(un, most_n)
        m_cnt, n_cnt = alg.ceil_div(most_m, um), alg.ceil_div(most_n, un)
        tiles = alg.mul(m_cnt, n_cnt)

        l0_rules(alg, ctx, v, um, un, uk, iter_l0)
        bias_rule(alg, ctx, un)
        alg.rule("cover.iter_l1", iter_l1, "<=", ctx.batch)
        if form != "b":
            alg.rule("cover.iter_one", iter_l1, "<=", 1)
        alg.rule("cover.form_side", int((v["full_load"] != "none") == (form in "cd")), "==", 1)
        alg.rule("cover.iter_l0", iter_l0, "<=", iter_l1)
        if not (isinstance(iter_l0, int) and iter_l0 == 1):
            several = alg.min_of(iter_l0, 2) - 1
            alg.rule("cover.whole_m", um, ">=", several * most_m)
            alg.rule("cover.whole_n", un, ">=", several * most_n)
            alg.rule("cover.whole_k", v["uk"], ">=", several * most_k)
        load = self._load(alg, ctx, v, uk, rows, columns, m_cnt, n_cnt, b_core)
        alg.rule("cap.l1", load.held + un * (ATOM * ctx.bias_l1_bytes), "<=", load.budget)
        self._policy(alg, ctx, v, b_core)

        batch_steps = alg.mul(turns if form == "b" else b_core, load.steps)
        rounds = alg.mul(b_core, tiles)
        area = alg.mul(rows, columns)
        groups = alg.mul(alg.mul(alg.ceil_div(iter_l1, iter_l0), turns), tiles)
        steps = alg.ceil_div(most_k, uk) if load.loop is None else load.loop.steps
        heads = alg.mul(rounds, steps)
        line = ATOM * ctx.k * ctx.s
        if form == "f":
            sides = alg.mul(rounds, rows + columns)
            reads_a = Reads(load.rows_a, ctx.unique_a, ctx.unique_a, n_cnt)
            reads_b = Reads(load.rows_b, ctx.unique_b, ctx.unique_b, m_cnt)
            port = port_cost(alg, ctx, [(line, sides)])
        else:
            reads_a = Reads(load.rows_a, ctx.unique_a, ctx.unique_a, 1)
            reads_b = Reads(load.rows_b, ctx.unique_b, ctx.unique_b, 1)
            port = port_cost(alg, ctx, [(line, b_core * (most_m + most_n))])
            sides = alg.mul(rounds, rows + columns)
        # Form f shares nothing between cores: its re-reads hit L2 only while one batch of every core fits.
        working_set = min(ctx.batch, ctx.cores) * (ctx.m + ctx.n) * ctx.k * ctx.s
        misses = form == "f" and working_set > ctx.spec.l2_bytes
        if misses:
            all_from_hbm = Fraction(1)
            shared = reads_a.missing_cost(alg, ctx, all_from_hbm) + reads_b.missing_cost(alg, ctx, all_from_hbm)
            per_unique = ctx.per_unique_byte
            rates = ctx.rates(("all misses",), lambda: (ctx.unique_a * per_unique, ctx.unique_b * per_unique))
            hbm = alg.ticks(rates, (n_cnt, m_cnt)) + hbm_cost(alg, ctx, 0)
        else:
            shared = reads_a.cost(alg, ctx) + reads_b.cost(alg, ctx)
            hbm = hbm_cost(alg, ctx, ctx.unique_a + ctx.unique_b)
        pipes = Pipes(
            mmad=mmad_cost(alg, ctx, alg.mul(rounds, area), heads, v["l0_buffers"], ctx.fractals_k),
            mte1=mte1_cost(alg, ctx, sides * ctx.k, heads),
            fixpipe=alg.worst([drain_cost(alg, ctx, groups, alg.mul(rounds, area)), ctx.unaligned_ticks]),
            drain=drain_cost(alg, ctx, 1, alg.mul(iter_l0, area)),
            fill1=first_fill(alg, ctx, load.first, used),
            fill0=first_load(alg, ctx, rows + columns, ctx.k),
            loads=Loads(reads_a, reads_b, occupied(alg, ctx, shared, used), port, hbm),
            steps=batch_steps,
        )
        units = (ctx.batch_a * ctx.m * ctx.cores, ctx.batch_b * ctx.n * ctx.cores)
        loop = load.loop
        counts = {
            "m_cnt": lambda: m_cnt,
            "n_cnt": lambda: n_cnt,
            "used_core_num": lambda: used,
            "b_core": lambda: b_core,
            "steps": lambda: steps,
            "hbm_units": lambda: n_cnt * units[0] + m_cnt * units[1] if misses else sum(units),
            "k_l1": lambda: (
                ctx.k if loop is None else alg.min_of(alg.max_of(loop.cut_a, loop.cut_b) * ctx.atom_k, ctx.k)
            ),
        }
        return Outcome(overlap(alg, ctx, pipes, v), counts, pipes.loads)

    @staticmethod
    def _load(
        alg: Algebra, ctx: Context, v: Values, uk: Value, rows: Value, columns: Value, m_cnt: Value, n_cnt: Value,
        b_core: Value,
    ) -> _Load:  # fmt: skip
        form, side, l1_buffers, l1_bytes = v["l1_form"], v["full_load"], v["l1_buffers"], ctx.spec.l1_bytes
        most_m, most_n = ctx.am // ATOM, ctx.an // ATOM
        wide_m, wide_n = l1_width(alg, ctx, "a", most_m), l1_width(alg, ctx, "b", most_n)
        deep = ATOM * ctx.ak * ctx.s
        if form in "ab":
            if form == "a":
                alg.rule("entry.form_one_batch", b_core, "<=", 1)
            group = v["iter_l1"] * (most_m + most_n)
            held = alg.mul(l1_buffers, v["iter_l1"]) * ((wide_m + wide_n) * deep)
            return _Load(held, l1_bytes, 1, [(deep, group)], whole_rows_a(ctx), whole_rows_b(ctx))
        if form in "cd":
            if form == "c":
                alg.rule("entry.form_one_batch", b_core, "<=", 1)
            else:
                alg.rule("entry.form_more_batches", b_core, ">=", 2)
            whole, most, tile, cnt = (
                (most_m, most_n, v["un"], n_cnt) if side == "a" else (most_n, most_m, v["um"], m_cnt)
            )
            alg.rule("step.part_max", v["step_part"], "<=", ctx.spec.max_step_k)
            alg.within(v["step_part"], "<=", cnt)
            length = alg.mul(v["step_part"], tile)
            part = alg.min_of(length, most)
            first = [(deep, part + whole)]
            rows_of_a, rows_of_b = whole_rows_a(ctx), whole_rows_b(ctx)
            if side == "a":
                rows_of_b = rows_b(ctx, _WIDE, part)
            else:
                rows_of_a = rows_a(ctx, _WIDE, part)
            if ctx.profile == "v0.4":
                alg.rule("policy.iter_tile_bytes", part * deep, ">=", ctx.spec.policy_tile_bytes)
                cut = ctx.trans_a if side == "b" else not ctx.trans_b
                if cut and not (side == "a" and ctx.nz_b):
                    full = ctx.n if side == "a" else ctx.m
                    least = min(ctx.spec.policy_row_bytes, full * ctx.s)
                    alg.rule("policy.iter_row_bytes", part * (ATOM * ctx.s), ">=", least)
            streamed = l1_width(alg, ctx, "b" if side == "a" else "a", part)
            held = alg.mul(l1_buffers, streamed) * deep + (wide_m if side == "a" else wide_n) * deep
            budget = l1_bytes if form == "c" else l1_bytes // 2
            return _Load(held, budget, alg.ceil_div(most, length), first, rows_of_a, rows_of_b)
        unit = ATOM * ctx.atom_k * ctx.s
        loop = k_loop(alg, ctx, v, uk, ctx.k, v["um"], v["un"])
        tile_m, tile_n = l1_width(alg, ctx, "a", v["um"]), l1_width(alg, ctx, "b", v["un"])
        held = alg.mul(l1_buffers, alg.mul(tile_m, loop.depth_a) + alg.mul(tile_n, loop.depth_b)) * unit
        first = [(unit, alg.mul(rows, loop.cut_a) + alg.mul(columns, loop.cut_b))]
        if form == "e":
            alg.rule("entry.form_whole_block", alg.mul(m_cnt, n_cnt), "<=", 1)
            if ctx.profile == "v0.4":
                cuts = ((rows, loop.cut_a, ctx.trans_a), (columns, loop.cut_b, not ctx.trans_b or ctx.nz_b))
                for width, cut, along in cuts:
                    alg.rule("policy.iter_tile_bytes", alg.mul(width, cut) * unit, ">=", ctx.spec.policy_tile_bytes)
                    if not along:
                        least = min(ctx.spec.policy_row_bytes, ctx.k * ctx.s)
                        alg.rule("policy.iter_row_bytes", cut * (ctx.atom_k * ctx.s), ">=", least)
            deep_a, deep_b = rows_a(ctx, loop.depth_a, _WIDE), rows_b(ctx, loop.depth_b, _WIDE)
            return _Load(held, l1_bytes, loop.l1, first, deep_a, deep_b, loop)
        alg.rule("entry.form_several_blocks", alg.mul(m_cnt, n_cnt), ">=", 2)
        steps = alg.mul(alg.mul(m_cnt, n_cnt), loop.l1)
        tile_a, tile_b = rows_a(ctx, loop.depth_a, rows), rows_b(ctx, loop.depth_b, columns)
        return _Load(held, l1_bytes, steps, first, tile_a, tile_b, loop)

    @staticmethod
    def _policy(alg: Algebra, ctx: Context, v: Values, b_core: Value) -> None:
        spec, form = ctx.spec, v["l1_form"]
        if ctx.profile == "v0.4":
            share = spec.policy_balance_share if _bound_class(ctx) == 3 else Fraction(1)
            busy = b_core * (ctx.cores * share.numerator)
            alg.rule("policy.iter_balance", busy, "<=", ctx.batch * share.denominator)
            if _bound_class(ctx) == 3:
                alg.rule("policy.iter_forms", int(form == "f"), "<=", 0)
        if ctx.profile != "source":
            return
        source_steps(alg, ctx, v, "")
        alg.rule("policy.source_iter_form", int(form == "b"), ">=", 1)
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
        form, side, m_cnt, n_cnt = v["l1_form"], v["full_load"], counts["m_cnt"], counts["n_cnt"]
        streamed = form in "ef"

        def step(name: str) -> Callable[[], Value]:
            """L0 tiles of one operand along M (N) in an L1 part: all of them when it is whole."""
            if streamed:
                return once
            if form in "cd" and side != name:
                return lambda: v["step_part"]
            return m_cnt if name == "a" else n_cnt

        def step_k(name: str) -> Callable[[], Value]:
            return (lambda: v[f"step_k{name}"]) if streamed else counts["steps"]

        def depth(name: str) -> Callable[[], Value]:
            buffers = 1 if side == name else v["l1_buffers"]
            return lambda: alg.mul(alg.mul(step(name)(), step_k(name)()), buffers)

        return {
            "used_core_num": counts["used_core_num"],
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
            "k_l1": counts["k_l1"],
            "l1_form": form,
            "full_load": side,
            "base_m": v["um"] * ATOM,
            "base_n": v["un"] * ATOM,
            "base_k": v["uk"] * ctx.atom_k,
            "step_m": step("a"),
            "step_n": step("b"),
            "step_ka": step_k("a"),
            "step_kb": step_k("b"),
            "depth_a1": depth("a"),
            "depth_b1": depth("b"),
            **buffer_fields(v),
            "iterate_order": 0,
            **l2_policy(alg, ctx, n_cnt if form == "f" else once, m_cnt if form == "f" else once),
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
