"""Linear expressions with bounds, and with a table where they depend on one decision alone."""

from __future__ import annotations

from typing import Any

from tileproof.models.algebra import Value


class Linear:
    """``sum coefficient * column + constant`` with its bounds.

    ``of`` and ``table`` are set when the value depends on one decision: its name, and the value for each of its values.
    """

    __slots__ = ("constant", "hi", "lo", "of", "table", "terms")

    def __init__(
        self,
        terms: dict[int, float],
        constant: float,
        ends: tuple[float, float],
        of: str = "",
        table: tuple[float, ...] = (),
    ) -> None:
        self.terms = terms
        self.constant = constant
        self.lo, self.hi = ends
        self.of = of
        self.table = table

    def __add__(self, other: Value) -> Linear:
        if not isinstance(other, Linear):
            table = tuple(t + other for t in self.table)
            return Linear(self.terms, self.constant + other, (self.lo + other, self.hi + other), self.of, table)
        terms = dict(self.terms)
        for column, coefficient in other.terms.items():
            terms[column] = terms.get(column, 0) + coefficient
        constant = self.constant + other.constant
        if self.of and self.of == other.of:
            table = tuple(a + b for a, b in zip(self.table, other.table, strict=True))
            return Linear(terms, constant, (min(table), max(table)), self.of, table)
        return Linear(terms, constant, (self.lo + other.lo, self.hi + other.hi))

    __radd__ = __add__

    def __mul__(self, factor: float) -> Linear:
        ends = (min(self.lo * factor, self.hi * factor), max(self.lo * factor, self.hi * factor))
        terms = {column: coefficient * factor for column, coefficient in self.terms.items()}
        return Linear(terms, self.constant * factor, ends, self.of, tuple(t * factor for t in self.table))

    __rmul__ = __mul__

    def __sub__(self, other: Value) -> Linear:
        return self + other * -1

    def __rsub__(self, other: float) -> Linear:
        return self * -1 + other

    @property
    def key(self) -> tuple[Any, ...]:
        """Identity of the expression."""
        return (tuple(sorted(self.terms.items())), self.constant)


def key_of(x: Value) -> Any:
    """Identity of a value."""
    return x.key if isinstance(x, Linear) else x


def low(x: Value) -> float:
    """Least value."""
    return x.lo if isinstance(x, Linear) else x


def high(x: Value) -> float:
    """Largest value."""
    return x.hi if isinstance(x, Linear) else x
