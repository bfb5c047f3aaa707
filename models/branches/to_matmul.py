"""ToMatmul: a batch that only one side has is folded into M (or N), and one matmul remains.

Design section 6.2. The folded matmul is solved by ASW_Basic or StreamK; folding B costs a reorder unless it is stored
transposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ...hardware.errors import InputError
from ..algebra import Algebra
from ..context import Context
from ..latency import Outcome, Values
from ..plan import Plan
from .asw_basic import AswBasic
from .base import NARROW, Branch, Counts, Facts, Structure, Wide
from .cube import cube_entry
from .stream_k import StreamK

_INNER: dict[str, Branch] = {branch.name: branch for branch in (AswBasic(), StreamK())}


class ToMatmul(Branch):
    """The branch that reduces the problem to one matmul."""

    name = "to_matmul"
    facts = Facts(
        no_formula=Facts.no_formula | {"entry.batch_to_fold", "entry.fold_one_side"},
        beam=AswBasic.facts.beam,
        sparse=AswBasic.facts.sparse,
        moves=(*AswBasic.facts.moves, ("inner_branch",)),
        follows=StreamK.facts.follows,
    )

    def entry(self, alg: Algebra, ctx: Context) -> None:
        cube_entry(alg, ctx)
        alg.rule("entry.batch_to_fold", ctx.batch, ">=", 2)
        if ctx.batch >= 2:
            alg.rule("entry.fold_one_side", min(ctx.batch_a, ctx.batch_b), "<=", 1)
        if ctx.batch_b == 1 < ctx.batch:
            alg.rule("entry.fold_layout", int(ctx.trans_a), "<=", 0)
        if min(ctx.batch_a, ctx.batch_b) == 1 < ctx.batch:
            alg.rule("entry.fold_bias", int(ctx.bias_batch), "<=", 0)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        if min(ctx.batch_a, ctx.batch_b) != 1 or ctx.batch < 2:
            return []
        side, folded = _fold(ctx)
        return [
            Structure({**s.constants, "inner_branch": name, "fold": side}, s.decisions, s.axes, s.outer, s.listed)
            for name, inner in _INNER.items()
            for s in inner.structures(folded, complete=complete, wide=wide)
        ]

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        side, folded = _fold(ctx)
        inner = _INNER[v["inner_branch"]]
        inner.entry(alg, folded)
        outcome = inner.formula(alg, folded, v)
        if side == "b" and not ctx.trans_b:
            copy = 2 * ctx.unique_b * ctx.per_hbm_byte / ctx.spec.copy_efficiency
            outcome.stages.reorder = alg.ticks(ctx.rates(("reorder",), lambda: (copy,)), (1,))
            outcome.stages.total = outcome.stages.total + outcome.stages.reorder
        return outcome

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        side, folded = _fold(ctx)
        name = v["inner_branch"]
        return {**_INNER[name].fields(alg, folded, v, counts), "inner_branch": name, "fold": side}

    def values(self, ctx: Context, plan: Plan) -> dict[str, Any]:
        _, folded = _fold(ctx)
        inner = self.solving(vars(plan))
        return {**inner.values(folded, plan), "inner_branch": inner.name}

    def solving(self, given: Mapping[str, Any]) -> Branch:
        name = given.get("inner_branch") or "asw_basic"
        if name not in _INNER:
            raise InputError(f"plan: inner_branch is {name}; allowed: {', '.join(_INNER)}")
        return _INNER[name]

    def deciding(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        return ("inner_branch", *(self.solving(given).deciding(given) if given.get("inner_branch") else ()))

    def optional(self, given: Mapping[str, Any]) -> frozenset[str]:
        return self.solving(given).optional(given)

    def own_words(self, plan: Plan) -> str:
        inner = self.solving(vars(plan)).own_words(plan)
        return f"fold {(plan.fold or '').upper()}, {plan.inner_branch}{', ' if inner else ''}{inner}"


def _fold(ctx: Context) -> tuple[Literal["a", "b"], Context]:
    side: Literal["a", "b"] = "a" if ctx.batch_b == 1 else "b"
    if "folded" not in ctx.memo:
        ctx.memo["folded"] = ctx.folded(side)
    return side, ctx.memo["folded"]


BRANCH = ToMatmul()
