"""The L1 forms of IterBatch (design section 6.3): what of a batch stays in L1, one object a form.

A form brings its part of the search space, its rules, and how its loads fill L1. A new form is one more object in
``FORMS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ..algebra import Algebra, Value
from ..context import ACC_BYTES, ATOM, Context
from ..latency import WHOLE, Rows, Values, rows_a, rows_b, whole_rows_a, whole_rows_b
from .base import Counts, Decision, Structure, Wide, once
from .cube import KLoop, Tile, chosen, l1_width, step_decision, streamed_loop

#: What every form but b keeps: one batch at a time, no operand whole.
_ONE: Final = {"iter_l1": 1, "iter_l0": 1, "full_load": "none"}

TileDecisions = tuple[Decision, Decision, Decision]


@dataclass
class Fill:
    """How a form fills L1: ``held`` bytes (without bias) of a ``budget``, ``steps`` of a batch (form b: of a group).

    ``first`` is the first step as (bytes, count), ``loop`` the loop along K when both operands are streamed.
    """

    held: Value
    budget: int
    steps: Value
    first: list[tuple[int, Value]]
    rows_a: Rows
    rows_b: Rows
    loop: KLoop | None = None


class L1Form(ABC):
    """One form: its structures, its rules and how it fills L1."""

    #: Steps that a plan of this form decides itself; all others follow from its tile.
    decided: ClassVar[tuple[str, ...]] = ()
    #: Whether several batches may stay in L1 together.
    grouped: ClassVar[bool] = False
    #: Whether ``full_load`` names the operand that stays whole.
    sided: ClassVar[bool] = False
    #: Whether A and B are read again for other blocks of the same batch.
    rereads: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self.name = name

    def forced(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Plan fields that the form leaves a single value (in words where it leaves two)."""
        forced: dict[str, Any] = {} if self.grouped else {"iter_l1": 1, "iter_l0": 1}
        if not self.sided:
            forced["full_load"] = "none"
        elif given["full_load"] == "none":
            forced["full_load"] = "a or b"
        return forced

    @abstractmethod
    def structures(self, ctx: Context, tile: TileDecisions, wide: Wide, *, complete: bool) -> list[Structure]:
        """The part of the search space that this form takes; the L0 buffers are added later."""

    @abstractmethod
    def fill(self, alg: Algebra, ctx: Context, v: Values, tile: Tile, b_core: Value) -> Fill:
        """Post the rules of the form and tell how it fills L1."""

    def step(self, v: Values, counts: Counts, name: str) -> Callable[[], Value]:
        """L0 tiles of operand ``name`` along M (N) in an L1 part: all of them when it is whole."""
        return counts["m_cnt"] if name == "a" else counts["n_cnt"]

    def step_k(self, v: Values, counts: Counts, name: str) -> Callable[[], Value]:
        """L0 tiles of operand ``name`` along K in an L1 part: all of them unless the plan decides."""
        return chosen(v, f"step_k{name}") if f"step_k{name}" in self.decided else counts["steps"]


class Batches(L1Form):
    """Whole batches in L1: form a keeps a single one, all the work of its core; form b keeps ``iter_l1`` of them."""

    def fill(self, alg: Algebra, ctx: Context, v: Values, tile: Tile, b_core: Value) -> Fill:
        wide_m, wide_n, deep = _whole_widths(alg, ctx)
        if not self.grouped:
            alg.rule("entry.form_one_batch", b_core, "<=", 1)
        first = v["iter_l1"] * (ctx.am // ATOM + ctx.an // ATOM)
        held = alg.mul(v["l1_buffers"], v["iter_l1"]) * ((wide_m + wide_n) * deep)
        return Fill(held, ctx.spec.l1_bytes, 1, [(deep, first)], whole_rows_a(ctx), whole_rows_b(ctx))


class OneBatch(Batches):
    """Form a: the only batch of a core is resident."""

    def structures(self, ctx: Context, tile: TileDecisions, wide: Wide, *, complete: bool) -> list[Structure]:
        return [Structure({**_ONE, "l1_form": self.name, "l1_buffers": 1}, tile, ("um", "un"))]

    def forced(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().forced(given), "l1_buffers": 1}


class Group(Batches):
    """Form b: a group of ``iter_l1`` batches is resident, ``iter_l0`` of them at a time in L0."""

    grouped = True

    def structures(self, ctx: Context, tile: TileDecisions, wide: Wide, *, complete: bool) -> list[Structure]:
        batch_bytes = (ctx.am + ctx.an) * ctx.ak * ctx.s
        iter_l1 = wide.decision("iter_l1", 1, ctx.batch, ctx.spec.l1_bytes // batch_bytes)
        iter_l0 = wide.decision("iter_l0", 1, iter_l1.hi, ctx.spec.l0c_bytes // (ctx.am * ctx.an * ACC_BYTES))
        group, l1 = {"l1_form": self.name, "full_load": "none"}, wide.l1_buffers()
        if complete:
            return [Structure(group, (iter_l1, iter_l0, *tile, l1), ("um", "un"), ("iter_l1",))]
        whole = {"um": ctx.am // ATOM, "un": ctx.an // ATOM, "uk": ctx.ak // ctx.atom_k}
        return [
            Structure({**group, **whole}, (iter_l1, iter_l0, l1), ("iter_l1", "iter_l0")),
            Structure({**group, "iter_l0": 1}, (iter_l1, *tile, l1), ("um", "un"), ("iter_l1",)),
        ]


class OneOperand(L1Form):
    """One operand whole in L1, the other streamed in parts of ``step_part`` tiles along N (M).

    Form c has one batch a core, form d several and half of L1 for each.
    """

    decided = ("step_part",)
    sided = True

    def __init__(self, name: str, *, several: bool) -> None:
        super().__init__(name)
        self.several = several

    def structures(self, ctx: Context, tile: TileDecisions, wide: Wide, *, complete: bool) -> list[Structure]:
        result = []
        for side, extent in (("a", ctx.an // ATOM), ("b", ctx.am // ATOM)):
            free = (*tile, step_decision(ctx, "step_part", extent, wide), wide.l1_buffers())
            result.append(Structure({**_ONE, "l1_form": self.name, "full_load": side}, free, ("um", "un")))
        return result

    def fill(self, alg: Algebra, ctx: Context, v: Values, tile: Tile, b_core: Value) -> Fill:
        wide_m, wide_n, deep = _whole_widths(alg, ctx)
        if self.several:
            alg.rule("entry.form_more_batches", b_core, ">=", 2)
        else:
            alg.rule("entry.form_one_batch", b_core, "<=", 1)
        most_m, most_n = ctx.am // ATOM, ctx.an // ATOM
        if v["full_load"] == "a":
            whole, most, base, cnt = most_m, most_n, v["un"], tile.n_cnt
        else:
            whole, most, base, cnt = most_n, most_m, v["um"], tile.m_cnt
        alg.rule("step.part_max", v["step_part"], "<=", ctx.spec.max_step_k)
        alg.within(v["step_part"], "<=", cnt)
        length = alg.mul(v["step_part"], base)
        part = alg.min_of(length, most)
        self._policy(alg, ctx, v["full_load"], part)
        if v["full_load"] == "a":
            streamed, resident = l1_width(alg, ctx, "b", part), wide_m
            rows = whole_rows_a(ctx), rows_b(ctx, WHOLE, part)
        else:
            streamed, resident = l1_width(alg, ctx, "a", part), wide_n
            rows = rows_a(ctx, WHOLE, part), whole_rows_b(ctx)
        held = alg.mul(v["l1_buffers"], streamed) * deep + resident * deep
        budget = ctx.spec.l1_bytes // 2 if self.several else ctx.spec.l1_bytes
        return Fill(held, budget, alg.ceil_div(most, length), [(deep, part + whole)], *rows)

    @staticmethod
    def _policy(alg: Algebra, ctx: Context, side: str, part: Value) -> None:
        if ctx.profile != "v0.4":
            return
        alg.rule("policy.iter_tile_bytes", part * (ATOM * ctx.ak * ctx.s), ">=", ctx.spec.policy_tile_bytes)
        cut = ctx.trans_a if side == "b" else not ctx.trans_b
        if cut and not (side == "a" and ctx.nz_b):
            full = ctx.n if side == "a" else ctx.m
            least = min(ctx.spec.policy_row_bytes, full * ctx.s)
            alg.rule("policy.iter_row_bytes", part * (ATOM * ctx.s), ">=", least)

    def step(self, v: Values, counts: Counts, name: str) -> Callable[[], Value]:
        return super().step(v, counts, name) if v["full_load"] == name else chosen(v, "step_part")


class Streamed(L1Form):
    """Both operands streamed along K, one L0 tile wide."""

    decided = ("step_ka", "step_kb")

    def fill(self, alg: Algebra, ctx: Context, v: Values, tile: Tile, b_core: Value) -> Fill:
        loop, held = streamed_loop(alg, ctx, v, tile, ctx.k)
        first = alg.mul(tile.rows, loop.cut_a) + alg.mul(tile.columns, loop.cut_b)
        self.rules(alg, ctx, tile, loop)
        unit = ATOM * ctx.atom_k * ctx.s
        steps, rows = self.steps(alg, tile, loop), self.rows(ctx, tile, loop)
        return Fill(held, ctx.spec.l1_bytes, steps, [(unit, first)], *rows, loop)

    @abstractmethod
    def rules(self, alg: Algebra, ctx: Context, tile: Tile, loop: KLoop) -> None:
        """Post the rules of the form."""

    @abstractmethod
    def steps(self, alg: Algebra, tile: Tile, loop: KLoop) -> Value:
        """L1 steps of a batch."""

    @abstractmethod
    def rows(self, ctx: Context, tile: Tile, loop: KLoop) -> tuple[Rows, Rows]:
        """Rows of A and of B in one L1 part."""

    def _free(self, ctx: Context, tile: tuple[Decision, ...], wide: Wide) -> tuple[Decision, ...]:
        steps = (step_decision(ctx, f"step_k{x}", ctx.ak // ctx.atom_k, wide) for x in "ab")
        return (*tile, *steps, wide.l1_buffers())

    def step(self, v: Values, counts: Counts, name: str) -> Callable[[], Value]:
        return once


class WholeBlock(Streamed):
    """Form e: the whole M x N block of a batch stays in L0C."""

    def structures(self, ctx: Context, tile: TileDecisions, wide: Wide, *, complete: bool) -> list[Structure]:
        fixed: dict[str, Any] = {**_ONE, "l1_form": self.name}
        if complete and wide.free:
            return [Structure(fixed, self._free(ctx, tile, wide), ("um", "un"))]
        block = {**_ONE, "um": ctx.am // ATOM, "un": ctx.an // ATOM, "l1_form": self.name}
        return [Structure(block, self._free(ctx, tile[2:], wide), ("uk", "step_ka"))]

    def rules(self, alg: Algebra, ctx: Context, tile: Tile, loop: KLoop) -> None:
        alg.rule("entry.form_whole_block", tile.count(alg), "<=", 1)
        if ctx.profile != "v0.4":
            return
        unit = ATOM * ctx.atom_k * ctx.s
        cuts = ((tile.rows, loop.cut_a, ctx.trans_a), (tile.columns, loop.cut_b, not ctx.trans_b or ctx.nz_b))
        for width, cut, along in cuts:
            alg.rule("policy.iter_tile_bytes", alg.mul(width, cut) * unit, ">=", ctx.spec.policy_tile_bytes)
            if not along:
                least = min(ctx.spec.policy_row_bytes, ctx.k * ctx.s)
                alg.rule("policy.iter_row_bytes", cut * (ctx.atom_k * ctx.s), ">=", least)

    def steps(self, alg: Algebra, tile: Tile, loop: KLoop) -> Value:
        return loop.l1

    def rows(self, ctx: Context, tile: Tile, loop: KLoop) -> tuple[Rows, Rows]:
        return rows_a(ctx, loop.depth_a, WHOLE), rows_b(ctx, loop.depth_b, WHOLE)


class Blocks(Streamed):
    """Form f: several blocks a batch, their rows and columns read again inside the core."""

    rereads = True

    def structures(self, ctx: Context, tile: TileDecisions, wide: Wide, *, complete: bool) -> list[Structure]:
        return [Structure({**_ONE, "l1_form": self.name}, self._free(ctx, tile, wide), ("um", "un"))]

    def rules(self, alg: Algebra, ctx: Context, tile: Tile, loop: KLoop) -> None:
        alg.rule("entry.form_several_blocks", tile.count(alg), ">=", 2)

    def steps(self, alg: Algebra, tile: Tile, loop: KLoop) -> Value:
        return alg.mul(tile.count(alg), loop.l1)

    def rows(self, ctx: Context, tile: Tile, loop: KLoop) -> tuple[Rows, Rows]:
        return rows_a(ctx, loop.depth_a, tile.rows), rows_b(ctx, loop.depth_b, tile.columns)


def _whole_widths(alg: Algebra, ctx: Context) -> tuple[Value, Value, int]:
    """Atoms of rows of A and of columns of B of a whole batch in L1, and bytes of an atom over the whole K."""
    wide_m, wide_n = l1_width(alg, ctx, "a", ctx.am // ATOM), l1_width(alg, ctx, "b", ctx.an // ATOM)
    return wide_m, wide_n, ATOM * ctx.ak * ctx.s


#: The forms by name, in the order in which they are searched.
FORMS: Final[dict[str, L1Form]] = {
    form.name: form
    for form in (
        OneBatch("a"),
        Group("b"),
        OneOperand("c", several=False),
        OneOperand("d", several=True),
        WholeBlock("e"),
        Blocks("f"),
    )
}
