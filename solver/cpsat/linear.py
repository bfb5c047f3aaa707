"""Counts and costs of a CP-SAT model as linear expressions that know their bounds."""

from __future__ import annotations

from typing import Any

from ...models.algebra import Value


class Lin:
    """Linear expression over model variables with its bounds: ``sum coefficient * variable + constant``."""

    __slots__ = ("constant", "hi", "lo", "terms")

    def __init__(self, terms: dict[int, int], constant: int, lo: int, hi: int) -> None:
        self.terms = terms
        self.constant = constant
        self.lo = lo
        self.hi = hi

    def __add__(self, other: Value) -> Lin:
        if not isinstance(other, Lin):
            return Lin(self.terms, self.constant + other, self.lo + other, self.hi + other)
        terms = dict(self.terms)
        for index, coefficient in other.terms.items():
            total = terms.get(index, 0) + coefficient
            if total:
                terms[index] = total
            else:
                del terms[index]
        return Lin(terms, self.constant + other.constant, self.lo + other.lo, self.hi + other.hi)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Lin:
        if factor == 0:
            return Lin({}, 0, 0, 0)
        ends = (self.lo * factor, self.hi * factor)
        return Lin({i: c * factor for i, c in self.terms.items()}, self.constant * factor, min(ends), max(ends))

    __rmul__ = __mul__

    def __sub__(self, other: Value) -> Lin:
        return self + (other * -1 if isinstance(other, Lin) else -int(other))

    def __rsub__(self, other: int) -> Lin:
        return self * -1 + other

    def key(self) -> tuple[Any, ...]:
        """Identity of the expression, for reuse of derived variables."""
        return (tuple(sorted(self.terms.items())), self.constant)


def low(x: Value) -> int:
    """Least value of a count or cost."""
    return x.lo if isinstance(x, Lin) else x


def high(x: Value) -> int:
    """Largest value of a count or cost."""
    return x.hi if isinstance(x, Lin) else x


def key_of(x: Value) -> Any:
    """Identity of a count or cost, for reuse of derived variables."""
    return x.key() if isinstance(x, Lin) else x
