"""A branch whose cost is the largest regret over several chips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ...models.algebra import Algebra, Value
from ...models.branches import Branch
from ...models.branches.base import Around
from ...models.context import Context
from ...models.latency import Outcome, Values


class _Quiet:
    """An interpreter that posts no rules: those of a plan are posted once, they do not depend on the constants."""

    def __init__(self, inner: Algebra) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        """Nothing."""

    def rule_cost(self, rule_id: str, cost: Value, operator: str, limit: int) -> None:
        """Nothing."""

    def rule_divides(self, rule_id: str, x: Value, y: Value) -> None:
        """Nothing."""

    def within(self, left: Value, operator: str, right: Value) -> None:
        """Nothing."""


class RegretBranch(Around):
    """The inner branch with the total ``max over corners of (T - least T of the corner)``, up to a constant.

    The contexts share one tick. The constant is the largest of the least times: it keeps the total at or above the time
    of the slowest corner, as the CP interpreter asks of a total (no stage may be larger).
    """

    def __init__(self, inner: Branch, contexts: Sequence[Context], least: Sequence[int]) -> None:
        super().__init__(inner)
        self.contexts = tuple(contexts)
        self.offsets = tuple(max(least) - ticks for ticks in least)

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        outcomes = [
            self.inner.formula(cast(Algebra, alg if index == 0 else _Quiet(alg)), context, v)
            for index, context in enumerate(self.contexts)
        ]
        totals = [o.stages.total + offset for o, offset in zip(outcomes, self.offsets, strict=True)]
        outcomes[0].stages.total = alg.worst(totals)
        return outcomes[0]
