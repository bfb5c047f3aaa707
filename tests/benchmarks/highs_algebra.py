"""The algebra as a mixed-integer linear model for HiGHS.

A decision is one-hot (a binary for each value), so every function of one decision is linear and exact. Products expand
one factor: over its binaries when it depends on one decision (the other factor is split among them, the tightest linear
form), over its bits otherwise. Divisions multiply the quotient back; minima, conditions and selections are big-M with
the bounds of the intervals. Costs are ticks without the rounding to whole ones, bounded from below only (the plan is
evaluated exactly afterwards); their columns are in microseconds. No hint, bound or cut of the package is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import highspy
import numpy as np
from linear import Linear, high, key_of, low

from tileproof.models.algebra import Algebra, Cond, Piece, Rates, Value
from tileproof.models.branches.base import Decision

_INF = highspy.kHighsInf
#: Largest coefficient of a row, as a power of two.
_ROW_BITS = 10


def _ceil_quotient(x: float, y: float) -> float:
    return -(-x // y)


class HighsAlgebra(Algebra):
    """Collects columns and rows of one model; ``tick_us`` is the length of a tick in microseconds."""

    def __init__(self, tick_us: float) -> None:
        self.tick_us = tick_us
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.integer: list[bool] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []
        self.total: Linear | None = None
        self._domains: dict[str, tuple[int, ...]] = {}
        self._binaries: dict[str, list[Linear]] = {}
        self._cache: dict[Any, Any] = {}
        self._chosen: Linear | None = None

    # -- columns and rows
    def column(self, lo: float, hi: float, *, integer: bool = False) -> Linear:
        """A new column."""
        self.lower.append(lo)
        self.upper.append(hi)
        self.integer.append(integer)
        return Linear({len(self.lower) - 1: 1}, 0, (lo, hi))

    def cost(self, lo: float, hi: float) -> Linear:
        """A new cost in ticks."""
        return self.column(lo * self.tick_us, hi * self.tick_us) * (1 / self.tick_us)

    def binary(self) -> Linear:
        """A new binary."""
        return self.column(0, 1, integer=True)

    def row(self, x: Value, lo: float | None, hi: float | None, when: Sequence[Value] = ()) -> None:
        """``lo <= x <= hi`` where all of the 0/1 expressions ``when`` are 1."""
        if not isinstance(x, Linear):
            x = Linear({}, x, (x, x))
        if lo is not None and x.lo < lo:
            self._row(x + sum(((1 - w) * (lo - x.lo) for w in when), start=0), lo, _INF)
        if hi is not None and x.hi > hi:
            self._row(x - sum(((1 - w) * (x.hi - hi) for w in when), start=0), -_INF, hi)

    def _row(self, x: Linear, lo: float, hi: float) -> None:
        # Coefficients of a row reach from 1 to 2^32 and more; tolerances are absolute, so long rows are scaled down.
        largest = max(map(abs, x.terms.values()), default=1)
        scale = 2.0 ** -max(0, int(largest).bit_length() - _ROW_BITS)
        terms = {column: coefficient * scale for column, coefficient in x.terms.items() if coefficient}
        self.rows.append((terms, (lo - x.constant) * scale, (hi - x.constant) * scale))

    def model(self) -> highspy.HighsLp:
        """The model with its objective."""
        assert self.total is not None
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.lower), len(self.rows)
        cost = np.zeros(len(self.lower))
        for column, coefficient in self.total.terms.items():
            cost[column] = coefficient * self.tick_us
        lp.col_cost_, lp.offset_ = cost, self.total.constant * self.tick_us
        lp.col_lower_, lp.col_upper_ = np.array(self.lower), np.array(self.upper)
        lp.row_lower_ = np.array([lo for _, lo, _ in self.rows])
        lp.row_upper_ = np.array([hi for _, _, hi in self.rows])
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[integer] for integer in self.integer]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(terms) for terms, _, _ in self.rows)])
        lp.a_matrix_.index_ = np.array([column for terms, _, _ in self.rows for column in terms])
        lp.a_matrix_.value_ = np.array([c for terms, _, _ in self.rows for c in terms.values()], dtype=float)
        return lp

    @staticmethod
    def integer_value(x: Value, columns: Sequence[float]) -> int:
        """Value of an integer expression in a solution."""
        if not isinstance(x, Linear):
            return int(x)
        return round(sum(c * columns[i] for i, c in x.terms.items()) + x.constant)

    # -- the model around the formula
    def decision(self, decision: Decision) -> Linear:
        """A free integer, one-hot."""
        domain = tuple(decision.domain())
        self._domains[decision.name] = domain
        self._binaries[decision.name] = self.exactly_one(len(domain))
        return self._tabulated(decision.name, domain)

    def exactly_one(self, count: int) -> list[Linear]:
        """Binaries of which one is 1."""
        binaries = [self.binary() for _ in range(count)]
        self._row(sum(binaries, start=Linear({}, 0, (0, 0))), 1, 1)
        return binaries

    @contextmanager
    def where(self, chosen: Linear) -> Iterator[None]:
        """Rules and totals of the block hold where the binary is 1."""
        self._chosen = chosen
        yield
        self._chosen = None

    def minimise(self, totals: Sequence[Value], chosen: Sequence[Linear]) -> None:
        """The objective: the total of the chosen structure."""
        self.total = self.cost(min(map(low, totals)), max(map(high, totals)))
        for total, literal in zip(totals, chosen, strict=True):
            self.row(self.total - total, 0, None, [literal])

    # -- functions of one decision
    def _tabulated(self, of: str, table: Sequence[float]) -> Value:
        if min(table) == max(table):
            return table[0]
        terms = {column: t for b, t in zip(self._binaries[of], table, strict=True) if t for column in b.terms}
        return Linear(terms, 0, (min(table), max(table)), of, tuple(table))

    def _tables(self, function: Callable[..., float], x: Value, y: Value) -> Value | None:
        """The function where both values are constants or depend on the same decision, else None."""
        names = {v.of for v in (x, y) if isinstance(v, Linear)}
        if not names:
            return function(x, y)
        if len(names) > 1 or "" in names:
            return None
        (of,) = names
        size = len(self._domains[of])
        left, right = (v.table if isinstance(v, Linear) else (v,) * size for v in (x, y))
        return self._tabulated(of, [function(a, b) for a, b in zip(left, right, strict=True)])

    # -- counts
    def _split(self, of: str, y: Linear) -> list[Linear]:
        """``binary * y`` for every value of a decision; together they are ``y``."""
        key = ("split", of, y.key)
        if key not in self._cache:
            parts = []
            for binary in self._binaries[of]:
                part = self.column(min(0, y.lo), max(0, y.hi))
                self._row(part - binary * y.hi, -_INF, 0)
                self._row(part - binary * y.lo, 0, _INF)
                parts.append(part)
            self._row(sum(parts, start=y * -1), 0, 0)
            self._cache[key] = parts
        return self._cache[key]

    def _bits(self, x: Linear) -> list[Linear]:
        """Binaries of ``x - x.lo``, least bit first."""
        key = ("bits", x.key)
        if key not in self._cache:
            bits = [self.binary() for _ in range(int(x.hi - x.lo).bit_length())]
            self._row(sum((bit * 2**i for i, bit in enumerate(bits)), start=x * -1 + x.lo), 0, 0)
            self._cache[key] = bits
        return self._cache[key]

    def _gated(self, bit: Linear, y: Linear) -> Linear:
        """``bit * y``."""
        key = ("gated", bit.key, y.key)
        if key not in self._cache:
            part = self.column(min(0, y.lo), max(0, y.hi))
            self._row(part - bit * y.hi, -_INF, 0)
            self._row(part - bit * y.lo, 0, _INF)
            self._row(part - y + (1 - bit) * y.lo, -_INF, 0)
            self._row(part - y + (1 - bit) * y.hi, 0, _INF)
            self._cache[key] = part
        return self._cache[key]

    def _product(self, x: Linear, y: Linear) -> Linear:
        """``x * y`` with ``x`` expanded; ``y`` may be a cost."""
        if x.of:
            parts = zip(x.table, self._split(x.of, y), strict=True)
            product = sum((part * t for t, part in parts), start=Linear({}, 0, (0, 0)))
        else:
            product = sum((self._gated(bit, y) * 2**i for i, bit in enumerate(self._bits(x))), start=y * x.lo)
        return Linear(product.terms, product.constant, (x.lo * y.lo, x.hi * y.hi))

    def mul(self, x: Value, y: Value) -> Value:
        if not isinstance(x, Linear) or not isinstance(y, Linear):
            return x * y
        table = self._tables(lambda a, b: a * b, x, y)
        if table is not None:
            return table

        def effort(v: Linear) -> tuple[bool, float]:
            return (not v.of, v.hi - v.lo)

        return self._product(*sorted((x, y), key=effort))

    def ceil_div(self, x: Value, y: Value) -> Value:
        table = self._tables(_ceil_quotient, x, y)
        if table is not None:
            return table
        lo, hi = _ceil_quotient(low(x), high(y)), _ceil_quotient(high(x), low(y))
        if lo == hi:
            return lo
        key = ("div", key_of(x), key_of(y))
        if key not in self._cache:
            quotient = self.column(lo, hi, integer=True)
            rest = self.mul(quotient, y) - x
            self.row(rest, 0, None)
            self.row(rest - y, None, -1)
            self._cache[key] = quotient
        return self._cache[key]

    def _extreme(self, x: Value, y: Value, pick: Callable[..., float]) -> Value:
        if high(x) <= low(y) or high(y) <= low(x):
            return min(x, y, key=high) if pick is min else max(x, y, key=high)
        table = self._tables(pick, x, y)
        if table is not None:
            return table
        key = (pick.__name__, key_of(x), key_of(y))
        if key not in self._cache:
            result = self.column(pick(low(x), low(y)), pick(high(x), high(y)))
            first = self.binary()
            for value, literal in ((x, first), (y, 1 - first)):
                inside = result - value
                self.row(inside, None if pick is min else 0, 0 if pick is min else None)
                self.row(inside, 0, 0, [literal])
            self._cache[key] = result
        return self._cache[key]

    def max_of(self, x: Value, y: Value) -> Value:
        return self._extreme(x, y, max)

    def min_of(self, x: Value, y: Value) -> Value:
        return self._extreme(x, y, min)

    def at_most(self, x: Value, limit: int) -> Cond:
        if high(x) <= limit or low(x) > limit:
            return bool(high(x) <= limit)
        if x.of:
            return self._tabulated(x.of, [int(t <= limit) for t in x.table])
        key = ("le", x.key, limit)
        if key not in self._cache:
            literal = self.binary()
            self.row(x, None, limit, [literal])
            self.row(x, limit + 1, None, [1 - literal])
            self._cache[key] = literal
        return self._cache[key]

    def choose(self, cond: Cond, yes: Value, no: Value) -> Value:
        if isinstance(cond, bool):
            return yes if cond else no
        result = self.column(min(low(yes), low(no)), max(high(yes), high(no)))
        self.row(result - yes, 0, 0, [cond])
        self.row(result - no, 0, 0, [1 - cond])
        return result

    def argmin(self, options: Sequence[Value]) -> Value:
        literals = self.exactly_one(len(options))
        for i, literal in enumerate(literals):
            for j, other in enumerate(options):
                if j != i:
                    self.row(options[i] - other, None, -1 if j < i else 0, [literal])
        return literals

    def pick(self, selector: Value, costs: Sequence[Callable[[], Value]], unless: Cond = False) -> Value:
        built = [cost() for cost in costs]
        result = self.cost(min(map(low, built)), max(map(high, built)))
        for literal, cost in zip(selector, built, strict=True):
            self.row(result - cost, 0, None, [literal])
        return result

    def pick_count(self, selector: Value, counts: Sequence[Value]) -> Value:
        return sum(self.mul(literal, count) for literal, count in zip(selector, counts, strict=True))

    def known(self, x: Value, lo: int, hi: int) -> Value:
        if not isinstance(x, Linear) or (x.lo >= lo and x.hi <= hi):
            return x
        key = ("known", x.key)
        if key not in self._cache:
            self._cache[key] = self.column(lo, hi)
            self._row(self._cache[key] - x, 0, 0)
        return self._cache[key]

    # -- costs
    def ticks(self, rates: Rates, counts: Sequence[Value]) -> Value:
        return sum(count * (c / rates.denominator) for c, count in zip(rates.coefficients, counts, strict=True))

    def classes(self, x: Value, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        uppers = [*(piece.upper for piece in pieces[:-1]), _INF]
        if not isinstance(x, Linear):
            return self.ticks(next(p for p, upper in zip(pieces, uppers, strict=True) if x <= upper).rates, counts)
        if not x.of:
            return self._classes(x, pieces, counts)
        chosen = [next(p.rates for p, upper in zip(pieces, uppers, strict=True) if t <= upper) for t in x.table]
        total: Value = 0
        for position, count in enumerate(counts):
            rates = [r.coefficients[position] / r.denominator for r in chosen]
            total = total + self.mul(self._tabulated(x.of, rates), count)
        return total

    def _classes(self, x: Linear, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        """The same where ``x`` depends on several decisions: a binary for each class."""
        literals = self.exactly_one(len(pieces))
        costs = [self.ticks(piece.rates, counts) for piece in pieces]
        result = self.cost(min(map(low, costs)), max(map(high, costs)))
        for literal, cost in zip(literals, costs, strict=True):
            self.row(result - cost, 0, None, [literal])
        for (below, above), upper in zip(pairwise(literals), (p.upper for p in pieces[:-1]), strict=True):
            self.row(x, None, upper, [below])
            self.row(x, upper + 1, None, [above])
        return result

    def share(self, cost: Value, whole: int, part: Value) -> Value:
        if not isinstance(part, Linear):
            return cost * (whole / part)
        if part.of:
            return self.mul(self._tabulated(part.of, [whole / t for t in part.table]), cost)
        result = self.cost(low(cost) * whole / part.hi, high(cost) * whole / part.lo)
        self.row(self._product(part, result) - cost * whole, 0, None)
        return result

    def worst(self, costs: Sequence[Value]) -> Value:
        result = self.cost(max(map(low, costs)), max(map(high, costs)))
        for cost in costs:
            self.row(result - cost, 0, None)
        return result

    def either(self, cond: Cond, yes: Sequence[Value], no: Sequence[Value]) -> Value:
        if isinstance(cond, bool):
            return self.worst(yes if cond else no)
        ends = [max(map(end, costs)) for costs in (yes, no) for end in (low, high)]
        result = self.cost(min(ends), max(ends))
        for costs, literal in ((yes, cond), (no, 1 - cond)):
            for cost in costs:
                self.row(result - cost, 0, None, [literal])
        return result

    # -- rules
    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        assert self._chosen is not None
        lo, hi = (None if operator == "<=" else 0), (None if operator == ">=" else 0)
        self.row(left - right, lo, hi, [self._chosen])

    def rule_divides(self, rule_id: str, x: Value, y: Value) -> None:
        assert self._chosen is not None
        key = ("divides", key_of(x), key_of(y))
        if key not in self._cache:
            large, small = self.max_of(x, y), self.min_of(x, y)
            factor = self.column(1, max(1, high(large) // low(small)), integer=True)
            self._cache[key] = self.mul(factor, small) - large
        self.row(self._cache[key], 0, 0, [self._chosen])

    def within(self, left: Value, operator: str, right: Value) -> None:
        return
