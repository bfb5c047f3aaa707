"""Bounds of a formula over boxes of plans: interval arithmetic on NumPy arrays.

Every count is a pair (least, largest); every cost is a lower bound in ticks. ``alive`` tells which boxes may still hold
a plan that obeys all rules. The result is a valid bound by construction, so the search can drop a box whose bound is no
better than a known plan, and the enumerator can prune without losing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from .algebra import INT64_SAFE, Algebra, Cond, Piece, Rates, Value, lower, upper

_FAR = 2**61


@dataclass(slots=True)
class Interval:
    """Least and largest value of a count; each an int or an int64 array."""

    lo: Any
    hi: Any
    #: NumPy leaves mixed operations to this class.
    __array_ufunc__: ClassVar[None] = None

    def __add__(self, other: Value) -> Interval:
        if isinstance(other, Interval):
            return Interval(self.lo + other.lo, self.hi + other.hi)
        return Interval(self.lo + other, self.hi + other)

    __radd__ = __add__

    def __sub__(self, other: Value) -> Interval:
        if isinstance(other, Interval):
            return Interval(self.lo - other.hi, self.hi - other.lo)
        return Interval(self.lo - other, self.hi - other)

    def __rsub__(self, other: Value) -> Interval:
        return Interval(other - self.hi, other - self.lo)

    def __mul__(self, factor: int) -> Interval:
        return Interval(self.lo * factor, self.hi * factor)

    __rmul__ = __mul__


def _lo(x: Value) -> Any:
    return x.lo if isinstance(x, Interval) else x


def _hi(x: Value) -> Any:
    return x.hi if isinstance(x, Interval) else x


def _make(lo: Any, hi: Any) -> Value:
    """Interval, or the plain value when both ends are the same object or the same int."""
    if lo is hi or (isinstance(lo, int) and isinstance(hi, int) and lo == hi):
        return lo
    return Interval(lo, hi)


def _peak(x: Any) -> int:
    if isinstance(x, np.ndarray):
        return int(x.max()) if x.size else 0
    return int(x)


def _saturated(x: Any, y: Any) -> Any:
    """Product of upper ends, held below int64: an upper end may be far too large, never too small."""
    if isinstance(x, int) and isinstance(y, int):
        return min(x * y, _FAR)
    if _peak(x) * _peak(y) < INT64_SAFE:
        return x * y
    return np.minimum(np.asarray(x, dtype=float) * np.asarray(y, dtype=float), float(_FAR)).astype(np.int64)


def _all(mask: Any) -> bool:
    return bool(mask.all()) if isinstance(mask, np.ndarray) else bool(mask)


def _any(mask: Any) -> bool:
    return bool(mask.any()) if isinstance(mask, np.ndarray) else bool(mask)


@dataclass(frozen=True, slots=True)
class Truth:
    """A condition over boxes: holds for certain, may hold."""

    certain: Any
    possible: Any


class IntervalAlgebra(Algebra):
    """Lower bounds of costs and certain violations of rules over ``size`` boxes."""

    def __init__(self, size: int, only: frozenset[str] | None = None) -> None:
        self.alive: np.ndarray[Any, np.dtype[np.bool_]] = np.ones(size, dtype=bool)
        #: Rules that are in force; None for all. Hints follow from rules, so they are off for a selection.
        self._only = only

    # -- counts
    def mul(self, x: Value, y: Value) -> Value:
        return _make(_lo(x) * _lo(y), _saturated(_hi(x), _hi(y)))

    def ceil_div(self, x: Value, y: Value) -> Value:
        return _make(-(-_lo(x) // _hi(y)), -(-_hi(x) // _lo(y)))

    def max_of(self, x: Value, y: Value) -> Value:
        return _make(upper(_lo(x), _lo(y)), upper(_hi(x), _hi(y)))

    def min_of(self, x: Value, y: Value) -> Value:
        return _make(lower(_lo(x), _lo(y)), lower(_hi(x), _hi(y)))

    def at_most(self, x: Value, limit: int) -> Cond:
        certain, possible = _hi(x) <= limit, _lo(x) <= limit
        if _all(certain):
            return True
        return Truth(certain, possible) if _any(possible) else False

    def choose(self, cond: Cond, yes: Value, no: Value) -> Value:
        if isinstance(cond, bool):
            return yes if cond else no
        certain, possible = (cond.certain, cond.possible) if isinstance(cond, Truth) else (cond, cond)
        lo, hi = lower(_lo(yes), _lo(no)), upper(_hi(yes), _hi(no))
        lo = np.where(certain, _lo(yes), np.where(possible, lo, _lo(no)))
        return Interval(lo, np.where(certain, _hi(yes), np.where(possible, hi, _hi(no))))

    def argmin(self, options: Sequence[Value]) -> Value:
        least_upper = reduce(lower, (_hi(value) for value in options))
        return [_lo(value) <= least_upper for value in options]

    def pick(self, selector: Value, costs: Sequence[Callable[[], Value]], unless: Cond = False) -> Value:
        if len(self.alive) == 1 and len(costs) > 1:
            return 0  # one wide box: working every option out is not worth its time
        result: Any = _FAR
        for possible, cost in zip(selector, costs, strict=True):
            result = np.minimum(result, np.where(possible, cost(), _FAR))
        return result

    def pick_count(self, selector: Value, counts: Sequence[Value]) -> Value:
        lo: Any = _FAR
        hi: Any = 0
        for possible, count in zip(selector, counts, strict=True):
            lo = np.minimum(lo, np.where(possible, _lo(count), _FAR))
            hi = np.maximum(hi, np.where(possible, _hi(count), 0))
        return Interval(lo, hi)

    # -- costs
    def ticks(self, rates: Rates, counts: Sequence[Value]) -> Value:
        total: Any = 0
        for coefficient, count in zip(rates.coefficients, counts, strict=True):
            if coefficient:
                # A wrapped sum would be a false bound; a saturated one is a low, valid one.
                total = lower(total + _saturated(_lo(count), coefficient), _FAR)
        return -(-total // rates.denominator)

    def classes(self, x: Value, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        lo, hi = _lo(x), _hi(x)
        result: Any = None
        previous = 0
        for index, piece in enumerate(pieces):
            possible = (hi > previous) if index == len(pieces) - 1 else ((lo <= piece.upper) & (hi > previous))
            previous = piece.upper
            if _any(possible):
                cost = np.where(possible, self.ticks(piece.rates, counts), _FAR)
                result = cost if result is None else np.minimum(result, cost)
        return 0 if result is None else result

    def share(self, cost: Value, whole: int, part: Value) -> Value:
        return -(-_saturated(cost, whole) // _hi(part))

    def worst(self, costs: Sequence[Value]) -> Value:
        return reduce(upper, costs)

    def either(self, cond: Cond, yes: Sequence[Value], no: Sequence[Value]) -> Value:
        if isinstance(cond, bool):
            return self.worst(yes if cond else no)
        left, right = self.worst(yes), self.worst(no)
        if not isinstance(cond, Truth):
            return np.where(cond, left, right)
        undecided = np.minimum(left, right)
        return np.where(cond.certain, left, np.where(cond.possible, undecided, right))

    # -- rules
    def _ignored(self, rule_id: str) -> bool:
        return self._only is not None and rule_id != "" and rule_id not in self._only

    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        if self._ignored(rule_id):
            return
        if operator in ("<=", "=="):
            self.alive &= _lo(left) <= _hi(right)
        if operator in (">=", "=="):
            self.alive &= _hi(left) >= _lo(right)

    def rule_cost(self, rule_id: str, cost: Value, operator: str, limit: int) -> None:
        # Only a lower bound of the cost is known, so a least value can be refuted by no box.
        if operator == "<=" and not self._ignored(rule_id):
            self.alive &= cost <= limit

    def rule_divides(self, rule_id: str, x: Value, y: Value) -> None:
        if not isinstance(x, Interval) and not isinstance(y, Interval) and not self._ignored(rule_id):
            self.alive &= upper(x, y) % lower(x, y) == 0

    # -- hints
    def known(self, x: Value, lo: int, hi: int) -> Value:
        return Interval(upper(x.lo, lo), lower(x.hi, hi)) if isinstance(x, Interval) else x

    def capped(self, x: Value, numerator: Value, denominator: Value) -> Value:
        if not isinstance(x, Interval) or self._only is not None:
            return x
        limit = _hi(numerator) // upper(_lo(denominator), 1)
        self.alive &= x.lo <= limit
        return Interval(x.lo, upper(lower(x.hi, limit), x.lo))

    def floored(self, x: Value, numerator: Value, denominator: Value) -> Value:
        if not isinstance(x, Interval) or self._only is not None:
            return x
        limit = -(-_lo(numerator) // _hi(denominator))
        self.alive &= x.hi >= limit
        return Interval(lower(upper(x.lo, limit), x.hi), x.hi)


class ReachAlgebra(IntervalAlgebra):
    """Only the rules: which boxes may hold a plan that obeys them all. Costs are not computed."""

    def ticks(self, rates: Rates, counts: Sequence[Value]) -> Value:
        return 0

    def classes(self, x: Value, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        return 0

    def share(self, cost: Value, whole: int, part: Value) -> Value:
        return 0

    def pick(self, selector: Value, costs: Sequence[Callable[[], Value]], unless: Cond = False) -> Value:
        return 0

    def either(self, cond: Cond, yes: Sequence[Value], no: Sequence[Value]) -> Value:
        return 0

    def rule_cost(self, rule_id: str, cost: Value, operator: str, limit: int) -> None:
        return
