"""The CP-SAT interpreter without costs: the rules of a branch alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...models.algebra import Cond, Piece, Rates, Value
from .algebra import CpAlgebra
from .errors import RowOverflow
from .linear import high

Rules = frozenset[str]


class _Beyond:
    """A count too large for a variable. Costs use such counts in huge cases, rules do not."""

    def _same(self, _: Any) -> _Beyond:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same


_BEYOND = _Beyond()


class RulesAlgebra(CpAlgebra):
    """The rules of a branch without its costs (unless a latency is pinned).

    With ``relaxed`` set, the comparisons of that rule are collected instead of posted; ``only`` leaves out all rules
    but those. ``limit`` (rule id, ticks) is a pinned upper bound of the total: costs then matter up to it alone, where
    the rule is in force.
    """

    def __init__(
        self,
        *,
        explain: bool,
        costs: bool,
        relaxed: str | None = None,
        only: Rules | None = None,
        limit: tuple[str, int] | None = None,
    ) -> None:
        super().__init__(None if limit is None else limit[1], explain=explain, exact=costs and limit is None)
        if limit is not None:
            self._when = tuple(self._enforced(limit[0]))
        self._costs = costs
        self._relaxed = relaxed
        self._only = only
        self.collected: list[tuple[Value, str, Value]] = []

    def _saturated(self, rates: Sequence[Rates], counts: Sequence[Value]) -> list[Value]:
        """The counts, each held just above the least one that alone pushes the cost past the ceiling at every rate."""
        if _BEYOND in counts:
            raise RowOverflow("a cost depends on a count of 2^62 or more")
        if self.ceiling is None:
            return list(counts)
        result = []
        for position, count in enumerate(counts):
            columns = [(denominator, coefficients[position]) for denominator, coefficients in rates]
            if all(coefficient for _, coefficient in columns):
                enough = max(self.ceiling * denominator // coefficient for denominator, coefficient in columns) + 1
                count = self.min_of(count, enough)
            result.append(count)
        return result

    def ticks(self, rates: Rates, counts: Sequence[Value]) -> Value:
        return super().ticks(rates, self._saturated((rates,), counts)) if self._costs else 0

    def classes(self, x: Value, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        if not self._costs:
            return 0
        return super().classes(x, pieces, self._saturated([piece.rates for piece in pieces], counts))

    def share(self, cost: Value, whole: int, part: Value) -> Value:
        return super().share(cost, whole, part) if self._costs else 0

    def pick(self, selector: Value, costs: Sequence[Callable[[], Value]], unless: Cond = False) -> Value:
        return super().pick(selector, costs, unless) if self._costs else 0

    def worst(self, costs: Sequence[Value]) -> Value:
        return super().worst(costs) if self._costs else 0

    def either(self, cond: Cond, yes: Sequence[Value], no: Sequence[Value]) -> Value:
        return super().either(cond, yes, no) if self._costs else 0

    def mul(self, x: Value, y: Value) -> Value:
        try:
            return _BEYOND if _BEYOND in (x, y) else super().mul(x, y)
        except RowOverflow:
            return _BEYOND

    def ceil_div(self, x: Value, y: Value) -> Value:
        try:
            return _BEYOND if _BEYOND in (x, y) else super().ceil_div(x, y)
        except RowOverflow:
            return _BEYOND

    def max_of(self, x: Value, y: Value) -> Value:
        return _BEYOND if _BEYOND in (x, y) else super().max_of(x, y)

    def min_of(self, x: Value, y: Value) -> Value:
        return _BEYOND if _BEYOND in (x, y) else super().min_of(x, y)

    def at_most(self, x: Value, limit: int) -> Cond:
        return x is not _BEYOND and super().at_most(x, limit)

    def known(self, x: Value, lo: int, hi: int) -> Value:
        return self.variable(lo, hi, "known") if x is _BEYOND else super().known(x, lo, hi)

    def aligned(self, rule_id: str, value: Value, atom: int) -> Value:
        raw = self.variable(0, max(high(value), 2**21), rule_id)
        self.rule(rule_id, raw, "==", value)
        return raw

    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        if rule_id and rule_id == self._relaxed:
            self.collected.append((left, operator, right))
            return
        if rule_id and self._only is not None and rule_id not in self._only:
            return
        if _BEYOND in (left, right):
            raise RowOverflow(f"rule {rule_id} compares a count of 2^62 or more")
        super().rule(rule_id, left, operator, right)
