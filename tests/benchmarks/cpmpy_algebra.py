"""The algebra as a plain cpmpy model: native products, divisions, minima and maxima, nothing else.

Every intermediate result is a variable of its own, equal expressions share one. No hint, bound or cut of the package is
used: ``within``, ``capped`` and ``floored`` keep the meaning that one plan gives them, which is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import cpmpy as cp

from tileproof.models.algebra import Algebra, Cond, Piece, Rates, Value
from tileproof.models.branches.base import Decision


def _ends(x: Value) -> tuple[int, int]:
    return (x, x) if isinstance(x, int) else x.get_bounds()


class CpmpyAlgebra(Algebra):
    """Collects the constraints of one model; rules and totals hold only ``where`` a structure is chosen."""

    def __init__(self) -> None:
        self.constraints: list[Any] = []
        self.total: Any = None
        self._named: dict[str, Any] = {}
        self._chosen: Any = None

    # -- the model around the formula
    def decision(self, decision: Decision) -> Any:
        """A free integer."""
        variable = cp.intvar(decision.lo, decision.hi, name=decision.name)
        if decision.values is not None:
            self.constraints.append(cp.InDomain(variable, list(decision.values)))
        return variable

    def exactly_one(self, count: int) -> list[Any]:
        """Literals of which one holds."""
        literals = [cp.boolvar(name=f"structure{i}") for i in range(count)]
        self.constraints.append(cp.sum(literals) == 1)
        return literals

    @contextmanager
    def where(self, chosen: Any) -> Iterator[None]:
        """Rules and totals of the block hold where the literal does."""
        self._chosen = chosen
        yield
        self._chosen = None

    def minimise(self, totals: Sequence[Value], chosen: Sequence[Any]) -> None:
        """The objective: the total of the chosen structure."""
        self.total = cp.intvar(min(_ends(t)[0] for t in totals), max(_ends(t)[1] for t in totals), name="total")
        for total, literal in zip(totals, chosen, strict=True):
            self.constraints.append(literal.implies(self.total == total))

    def _name(self, expression: Any) -> Any:
        key = str(expression)
        if key not in self._named:
            variable = cp.intvar(*expression.get_bounds(), name=f"x{len(self._named)}")
            self.constraints.append(variable == expression)
            self._named[key] = variable
        return self._named[key]

    # -- counts
    def mul(self, x: Value, y: Value) -> Value:
        return x * y if isinstance(x, int) or isinstance(y, int) else self._name(x * y)

    def ceil_div(self, x: Value, y: Value) -> Value:
        if isinstance(x, int) and isinstance(y, int):
            return -(-x // y)
        return x if isinstance(y, int) and y == 1 else self._name((x + y - 1) // y)

    def max_of(self, x: Value, y: Value) -> Value:
        return max(x, y) if isinstance(x, int) and isinstance(y, int) else self._name(cp.max([x, y]))

    def min_of(self, x: Value, y: Value) -> Value:
        return min(x, y) if isinstance(x, int) and isinstance(y, int) else self._name(cp.min([x, y]))

    def at_most(self, x: Value, limit: int) -> Cond:
        lo, hi = _ends(x)
        return hi <= limit if hi <= limit or lo > limit else x <= limit

    def choose(self, cond: Cond, yes: Value, no: Value) -> Value:
        if isinstance(cond, bool):
            return yes if cond else no
        ends = (*_ends(yes), *_ends(no))
        variable = cp.intvar(min(ends), max(ends), name=f"either{len(self.constraints)}")
        self.constraints += [cond.implies(variable == yes), (~cond).implies(variable == no)]
        return variable

    def argmin(self, options: Sequence[Value]) -> Value:
        selector = cp.intvar(0, len(options) - 1, name=f"least{len(self.constraints)}")
        for i, option in enumerate(options):
            least = [option < other if j < i else option <= other for j, other in enumerate(options) if j != i]
            self.constraints.append((selector == i).implies(cp.all(least)))
        return selector

    def pick(self, selector: Value, costs: Sequence[Callable[[], Value]], unless: Cond = False) -> Value:
        return self.pick_count(selector, [cost() for cost in costs])

    def pick_count(self, selector: Value, counts: Sequence[Value]) -> Value:
        return self._name(cp.Element(list(counts), selector))

    def known(self, x: Value, lo: int, hi: int) -> Value:
        if isinstance(x, int):
            return x
        key = f"known {x}"
        if key not in self._named:
            self._named[key] = cp.intvar(lo, hi, name=f"x{len(self._named)}")
            self.constraints.append(self._named[key] == x)
        return self._named[key]

    # -- costs
    def ticks(self, rates: Rates, counts: Sequence[Value]) -> Value:
        total: Value = 0
        for coefficient, count in zip(rates.coefficients, counts, strict=True):
            total = total + (coefficient * count if coefficient else 0)
        return self.ceil_div(total, rates.denominator)

    def classes(self, x: Value, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        costs = [self.ticks(piece.rates, counts) for piece in pieces]
        if isinstance(x, int) or len(pieces) == 1:
            return next((c for c, piece in zip(costs[:-1], pieces, strict=False) if x <= piece.upper), costs[-1])
        return self.pick_count(self._name(cp.sum([x > piece.upper for piece in pieces[:-1]])), costs)

    def share(self, cost: Value, whole: int, part: Value) -> Value:
        return self.ceil_div(cost * whole, part)

    def worst(self, costs: Sequence[Value]) -> Value:
        return max(costs) if all(isinstance(c, int) for c in costs) else self._name(cp.max(list(costs)))

    def either(self, cond: Cond, yes: Sequence[Value], no: Sequence[Value]) -> Value:
        if isinstance(cond, bool):
            return self.worst(yes if cond else no)
        return self.choose(cond, self.worst(yes), self.worst(no))

    # -- rules
    def _post(self, holds: Any) -> None:
        self.constraints.append(self._chosen.implies(holds))

    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        self._post({"<=": left <= right, ">=": left >= right, "==": left == right}[operator])

    def rule_divides(self, rule_id: str, x: Value, y: Value) -> None:
        if isinstance(x, int) and isinstance(y, int):
            self._post(max(x, y) % min(x, y) == 0)
        else:
            self._post((x % y == 0) | (y % x == 0))

    def within(self, left: Value, operator: str, right: Value) -> None:
        return
