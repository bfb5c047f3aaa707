"""The algebra in which every rule and every latency term is written once.

A formula is a plain function over an :class:`Algebra`. Interpreters give it its meaning:

* :class:`IntAlgebra` evaluates one plan with Python integers (checker, evaluator);
* :class:`ArrayAlgebra` evaluates many plans at once with NumPy int64 arrays (enumerator, heuristic);
* :class:`~tileproof.models.intervals.IntervalAlgebra` bounds a formula over boxes of plans;
* ``CpAlgebra`` (in ``solver``) turns it into an OR-Tools CP-SAT model.

Two sorts of values occur. *Counts* are exact non-negative integers built with ``+``, ``-``, ``*`` by a constant and the
methods below. *Costs* are ticks; they may only be added and maximised, because the CP interpreter keeps them one-sided
(``cost >= term``), which is exact only while the objective grows with every cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..hardware.errors import InternalError
from .rules import OPERATORS

#: Any value of an interpreter: a Python int, a NumPy array, an interval or a linear expression.
Value = Any
#: A condition of an interpreter; plain ``bool`` when it is decided by constants.
Cond = Any

_MIN_COEFFICIENT = 2**18
_MAX_COEFFICIENT = 2**32
_MAX_DENOMINATOR = 2**22
#: Bound that every intermediate int64 value must respect.
INT64_SAFE = 2**62


class Rates(NamedTuple):
    """Ticks per unit of several counts, as integers over one power-of-two denominator."""

    denominator: int
    coefficients: tuple[int, ...]

    @classmethod
    def of(cls, rates: Iterable[Fraction | int]) -> Rates:
        """Fold exact rates.

        The denominator is the smallest that leaves every coefficient exact or rounded by less than 2^-19 of itself,
        unless the largest coefficient would then pass 2^32 (the row check of the CP interpreter) or the denominator
        2^22. It depends on the rates alone, so every interpreter works with the same integers.
        """
        # Plain integers: arithmetic of Fraction would take most of the time of evaluating a plan of a new case.
        exact = [rate.as_integer_ratio() for rate in rates]
        denominator = 1
        for above, below in exact:
            # Each coefficient needs its own power of two; a dyadic rate needs no more than its denominator.
            if above:
                own = 1
                while own * above < _MIN_COEFFICIENT * below and below != own:
                    own *= 2
                denominator = max(denominator, own)
        while denominator > 1 and (
            denominator > _MAX_DENOMINATOR
            or any(above * denominator > _MAX_COEFFICIENT * below for above, below in exact)
        ):
            denominator //= 2
        return cls(denominator, tuple(_rounded(above * denominator, below) for above, below in exact))


def _rounded(numerator: int, denominator: int) -> int:
    """Nearest integer to a quotient, ties to even."""
    quotient, rest = divmod(numerator, denominator)
    return quotient + int(2 * rest > denominator or (2 * rest == denominator and quotient % 2 == 1))


class Piece(NamedTuple):
    """One class of a step function: it holds for counts up to ``upper`` (and above the previous piece)."""

    upper: int
    rates: Rates


class Algebra(ABC):
    """What a formula may do with its values."""

    # -- counts ------------------------------------------------------------------------------------------------
    @abstractmethod
    def mul(self, x: Value, y: Value) -> Value:
        """Product of two counts."""

    @abstractmethod
    def ceil_div(self, x: Value, y: Value) -> Value:
        """``ceil(x / y)`` for counts with ``y >= 1``."""

    @abstractmethod
    def max_of(self, x: Value, y: Value) -> Value:
        """Exact maximum of two counts."""

    @abstractmethod
    def min_of(self, x: Value, y: Value) -> Value:
        """Exact minimum of two counts."""

    @abstractmethod
    def at_most(self, x: Value, limit: int) -> Cond:
        """Condition ``x <= limit``."""

    @abstractmethod
    def choose(self, cond: Cond, yes: Value, no: Value) -> Value:
        """The count ``yes`` where the condition holds, ``no`` elsewhere."""

    @abstractmethod
    def argmin(self, options: Sequence[Value]) -> Value:
        """Selector of the smallest count; ties go to the first one listed.

        The result is only meant for :meth:`pick`.
        """

    @abstractmethod
    def pick(self, selector: Value, costs: Sequence[Callable[[], Value]], unless: Cond = False) -> Value:
        """Cost of the selected option of :meth:`argmin`; it does not count where ``unless`` holds."""

    @abstractmethod
    def pick_count(self, selector: Value, counts: Sequence[Value]) -> Value:
        """Count of the selected option of :meth:`argmin`."""

    # -- costs -------------------------------------------------------------------------------------------------
    @abstractmethod
    def ticks(self, rates: Rates, counts: Sequence[Value]) -> Value:
        """Cost ``ceil(sum rate * count)``."""

    @abstractmethod
    def classes(self, x: Value, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        """Cost at the rates of the piece that ``x`` falls into (ascending ``upper``, the last one covers the rest)."""

    @abstractmethod
    def share(self, cost: Value, whole: int, part: Value) -> Value:
        """Cost ``ceil(cost * whole / part)`` for a count ``1 <= part <= whole``."""

    @abstractmethod
    def worst(self, costs: Sequence[Value]) -> Value:
        """Largest of the costs."""

    @abstractmethod
    def either(self, cond: Cond, yes: Sequence[Value], no: Sequence[Value]) -> Value:
        """Largest cost of ``yes`` where the condition holds, of ``no`` elsewhere."""

    def rule_cost(self, rule_id: str, cost: Value, operator: str, limit: int) -> None:
        """Post a comparison of a cost with a constant under its rule id."""
        self.rule(rule_id, cost, operator, limit)

    def aligned(self, rule_id: str, value: Value, atom: int) -> Value:
        """A field that is a whole number of atoms; an interpreter that explains makes it free but for the rule."""
        return value

    def optional(self) -> AbstractContextManager[None]:
        """Costs built inside may be larger than the total (they do not always count)."""
        return nullcontext()

    # -- rules -------------------------------------------------------------------------------------------------
    @abstractmethod
    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        """Post the comparison ``left operator right`` (``<=``, ``>=`` or ``==``) under its rule id."""

    @abstractmethod
    def rule_divides(self, rule_id: str, x: Value, y: Value) -> None:
        """Post "one of the two counts is a multiple of the other"."""

    def within(self, left: Value, operator: str, right: Value) -> None:
        """Leave the points that break the comparison out of the search: they are legal but dominated."""
        self.rule("", left, operator, right)

    def known(self, x: Value, lo: int, hi: int) -> Value:
        """``x``, whose definition keeps it within ``lo..hi`` although the bounds of its parts do not show it."""
        return x

    # -- hints (never change a value that obeys the rules) --------------------------------------------------------
    def capped(self, x: Value, numerator: Value, denominator: Value) -> Value:
        """``x``, which the rules keep at or below ``numerator // denominator``."""
        return x

    def floored(self, x: Value, numerator: Value, denominator: Value) -> Value:
        """``x``, which the rules keep at or above ``ceil(numerator / denominator)``."""
        return x


@dataclass(frozen=True)
class RuleCheck:
    """Both sides of one rule for one plan."""

    rule: str
    left: int
    operator: str
    right: int

    @property
    def holds(self) -> bool:
        """Whether the comparison is true."""
        return bool(OPERATORS[self.operator](self.left, self.right))


class IntAlgebra(Algebra):
    """Exact evaluation of one plan with Python integers; collects every rule in ``checks``."""

    def __init__(self) -> None:
        self.checks: list[RuleCheck] = []

    def mul(self, x: Value, y: Value) -> Value:
        return x * y

    def ceil_div(self, x: Value, y: Value) -> Value:
        return -(-x // y)

    def max_of(self, x: Value, y: Value) -> Value:
        return max(x, y)

    def min_of(self, x: Value, y: Value) -> Value:
        return min(x, y)

    def at_most(self, x: Value, limit: int) -> Cond:
        return x <= limit

    def choose(self, cond: Cond, yes: Value, no: Value) -> Value:
        return yes if cond else no

    def argmin(self, options: Sequence[Value]) -> Value:
        return options.index(min(options))

    def pick(self, selector: Value, costs: Sequence[Callable[[], Value]], unless: Cond = False) -> Value:
        return costs[selector]()

    def pick_count(self, selector: Value, counts: Sequence[Value]) -> Value:
        return counts[selector]

    def ticks(self, rates: Rates, counts: Sequence[Value]) -> Value:
        total = 0
        for coefficient, count in zip(rates.coefficients, counts, strict=True):
            total += coefficient * count
        return -(-total // rates.denominator)

    def classes(self, x: Value, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        for piece in pieces[:-1]:
            if x <= piece.upper:
                return self.ticks(piece.rates, counts)
        return self.ticks(pieces[-1].rates, counts)

    def share(self, cost: Value, whole: int, part: Value) -> Value:
        return -(-cost * whole // part)

    def worst(self, costs: Sequence[Value]) -> Value:
        return max(costs)

    def either(self, cond: Cond, yes: Sequence[Value], no: Sequence[Value]) -> Value:
        return max(yes) if cond else max(no)

    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        self.checks.append(RuleCheck(rule_id, left, operator, right))

    def within(self, left: Value, operator: str, right: Value) -> None:
        return

    def rule_divides(self, rule_id: str, x: Value, y: Value) -> None:
        small, large = min(x, y), max(x, y)
        self.checks.append(RuleCheck(rule_id, large % small, "==", 0))


def lower(x: Value, y: Value) -> Value:
    """Elementwise minimum that keeps Python ints (they do not wrap) as long as it can."""
    return min(x, y) if isinstance(x, int) and isinstance(y, int) else np.minimum(x, y)


def upper(x: Value, y: Value) -> Value:
    """Elementwise maximum that keeps Python ints as long as it can."""
    return max(x, y) if isinstance(x, int) and isinstance(y, int) else np.maximum(x, y)


def _peak(x: Value) -> int:
    if isinstance(x, np.ndarray):
        return int(x.max()) if x.size else 0
    return int(x)


class ArrayAlgebra(Algebra):
    """Evaluation of many plans at once; values are ints or equally long int64 arrays.

    ``mask`` tells which plans obey every rule posted so far. With ``only`` set, rules whose id does not start with one
    of its prefixes are skipped. NumPy wraps silently, so products are checked and an :class:`InternalError` is raised
    before a value can pass 2^62.
    """

    def __init__(self, size: int, only: tuple[str, ...] | None = None, keep: bool = False) -> None:
        self.mask: np.ndarray[Any, np.dtype[np.bool_]] = np.ones(size, dtype=bool)
        self.by_rule: dict[str, Value] = {}
        self._only = only
        self._keep = keep

    @staticmethod
    def _guard(x: int, y: int) -> None:
        if x * y >= INT64_SAFE:
            raise InternalError(f"array evaluation would pass 2^62: {x} * {y}")

    def mul(self, x: Value, y: Value) -> Value:
        self._guard(_peak(x), _peak(y))
        return x * y

    def ceil_div(self, x: Value, y: Value) -> Value:
        return -(-x // y)

    def max_of(self, x: Value, y: Value) -> Value:
        return upper(x, y)

    def min_of(self, x: Value, y: Value) -> Value:
        return lower(x, y)

    def at_most(self, x: Value, limit: int) -> Cond:
        holds = x <= limit
        if isinstance(holds, np.ndarray) and (holds.all() or not holds.any()):
            return bool(holds.all())
        return holds

    def choose(self, cond: Cond, yes: Value, no: Value) -> Value:
        if isinstance(cond, bool):
            return yes if cond else no
        return np.where(cond, yes, no)

    def argmin(self, options: Sequence[Value]) -> Value:
        return np.stack([np.broadcast_to(value, self.mask.shape) for value in options]).argmin(axis=0)

    def pick(self, selector: Value, costs: Sequence[Callable[[], Value]], unless: Cond = False) -> Value:
        return self.pick_count(selector, [cost() for cost in costs])

    def pick_count(self, selector: Value, counts: Sequence[Value]) -> Value:
        return np.choose(selector, [np.broadcast_to(count, self.mask.shape) for count in counts])

    def ticks(self, rates: Rates, counts: Sequence[Value]) -> Value:
        total: Value = 0
        bound = 0
        for coefficient, count in zip(rates.coefficients, counts, strict=True):
            bound += coefficient * _peak(count)
            self._guard(bound, 1)
            total = total + coefficient * count
        return -(-total // rates.denominator) if rates.denominator > 1 else total

    def classes(self, x: Value, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        result = self.ticks(pieces[-1].rates, counts)
        for piece in reversed(pieces[:-1]):
            result = np.where(x <= piece.upper, self.ticks(piece.rates, counts), result)
        return result

    def share(self, cost: Value, whole: int, part: Value) -> Value:
        self._guard(_peak(cost), whole)
        return -(-cost * whole // part)

    def worst(self, costs: Sequence[Value]) -> Value:
        return reduce(upper, costs)

    def either(self, cond: Cond, yes: Sequence[Value], no: Sequence[Value]) -> Value:
        if isinstance(cond, bool):
            return self.worst(yes if cond else no)
        return np.where(cond, self.worst(yes), self.worst(no))

    def _post(self, rule_id: str, holds: Value) -> None:
        if self._only is None or rule_id.startswith(self._only):
            self.mask &= holds
            if self._keep:
                self.by_rule[rule_id] = self.by_rule.get(rule_id, True) & np.broadcast_to(holds, self.mask.shape)

    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        self._post(rule_id, OPERATORS[operator](left, right))

    def rule_divides(self, rule_id: str, x: Value, y: Value) -> None:
        self._post(rule_id, np.maximum(x, y) % np.minimum(x, y) == 0)
