"""The CP-SAT interpreter of the algebra.

Counts become integer variables with exact definitions (native products, divisions, minima); costs become variables that
are bounded from below only, which is exact at the optimum because the objective grows with every cost. Every linear row
is checked while it is built: OR-Tools 9.15 can return a wrong optimum once ``|coefficient| * |bound of another
variable|`` in one row reaches 2^63 (tests/solver/test_canaries.py), so 2^62 is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ortools.sat.python import cp_model

from ...hardware.errors import InternalError
from ...models.algebra import Algebra, Cond, Piece, Rates, Value
from .errors import RowOverflow
from .linear import Lin, high, key_of, low
from .run import Literal, Model, Solver

LIMIT = 2**62


class CpAlgebra(Algebra):
    """Builds one CP-SAT model.

    ``ceiling`` is the known upper bound of the total (ticks); every cost that always counts is bounded by it.
    ``exact`` bounds costs from above as well, for rules that ask for a least cost.
    ``literals`` (explain mode) maps a rule id to the literal that enforces it; in solve mode it is None.
    """

    def __init__(self, ceiling: int | None = None, *, explain: bool = False, exact: bool = False) -> None:
        self.model = Model()
        self.ceiling = ceiling
        self.exact = exact
        self.literals: dict[str, Literal] | None = {} if explain else None
        self.violated: list[str] = []
        self.widest_row = 0
        self._variables: list[cp_model.IntVar] = []
        self._bounds: list[int] = []
        self._cache: dict[Any, Any] = {}
        self._optional = 0
        self._when: tuple[Any, ...] = ()

    # -- variables and rows
    def variable(self, lo: int, hi: int, name: str, values: Sequence[int] | None = None) -> Lin:
        """A new integer variable."""
        if max(abs(lo), abs(hi)) >= LIMIT:
            raise RowOverflow(f"variable {name} would reach {max(abs(lo), abs(hi))}, allowed is below 2^62")
        if values is not None:
            variable = self.model.new_int_var_from_domain(cp_model.Domain.from_values(list(values)), name)
        else:
            variable = self.model.new_int_var(lo, hi, name)
        self._variables.append(variable)
        self._bounds.append(max(abs(lo), abs(hi)))
        return Lin({len(self._variables) - 1: 1}, 0, lo, hi)

    def expression(self, x: Value) -> Any:
        """The OR-Tools expression of a value."""
        if not isinstance(x, Lin):
            return x
        if len(x.terms) == 1 and not x.constant:
            ((index, coefficient),) = x.terms.items()
            return self._variables[index] if coefficient == 1 else self._variables[index] * coefficient
        variables = [self._variables[index] for index in x.terms]
        return cp_model.LinearExpr.weighted_sum(variables, list(x.terms.values())) + x.constant

    def value(self, solver: Solver, x: Value) -> int:
        """Value of an expression in the solver's solution."""
        if not isinstance(x, Lin):
            return int(x)
        return sum(c * solver.value(self._variables[i]) for i, c in x.terms.items()) + x.constant

    def row(self, x: Lin, lo: int | None, hi: int | None, when: Sequence[Any] = ()) -> None:
        """Post ``lo <= x <= hi``, enforced by the literals ``when``, after the overflow check."""
        if (lo is None or x.lo >= lo) and (hi is None or x.hi <= hi):
            return
        terms = x.terms
        if len(terms) > 1:
            largest = max(abs(c) for c in terms.values()) * max(self._bounds[i] for i in terms)
            if largest >= LIMIT:
                largest = max(abs(c) * self._bounds[j] for i, c in terms.items() for j in terms if j != i)
            self.widest_row = max(self.widest_row, largest)
            if largest >= LIMIT:
                raise RowOverflow(f"a row reaches coefficient times bound {largest}, allowed is below 2^62")
        activity = sum(abs(c) * self._bounds[i] for i, c in terms.items()) + abs(x.constant)
        if activity >= LIMIT:
            raise RowOverflow(f"a row reaches {activity}, allowed is below 2^62")
        low_end = -LIMIT if lo is None else lo - x.constant
        high_end = LIMIT if hi is None else hi - x.constant
        variables = [self._variables[index] for index in terms]
        body = cp_model.LinearExpr.weighted_sum(variables, list(terms.values()))
        constraint = self.model.add_linear_constraint(body, low_end, high_end)
        if when:
            constraint.only_enforce_if(list(when))

    def compare(self, left: Value, operator: str, right: Value, when: Sequence[Any] = ()) -> bool:
        """Post a comparison; False when it can never hold (nothing is posted then)."""
        difference = left - right
        if not isinstance(difference, Lin) or not difference.terms:
            gap = difference.constant if isinstance(difference, Lin) else difference
            return {"<=": gap <= 0, ">=": gap >= 0, "==": gap == 0}[operator]
        lo = None if operator == "<=" else 0
        hi = None if operator == ">=" else 0
        if (lo is not None and difference.hi < lo) or (hi is not None and difference.lo > hi):
            return False
        self.row(difference, lo, hi, when)
        return True

    # -- counts
    def mul(self, x: Value, y: Value) -> Value:
        if not isinstance(x, Lin):
            x, y = y, x
        if not isinstance(x, Lin):
            return x * y
        if not isinstance(y, Lin):
            return x * y
        if min(x.lo, y.lo) < 0:
            raise InternalError(f"product of counts that may be negative: {x.lo}, {y.lo}")
        key = ("mul", *sorted((x.key(), y.key())))
        if key not in self._cache:
            product = self.variable(x.lo * y.lo, x.hi * y.hi, f"p{len(self._variables)}")
            self.model.add_multiplication_equality(self.expression(product), [self.expression(x), self.expression(y)])
            self._cache[key] = product
        return self._cache[key]

    def ceil_div(self, x: Value, y: Value) -> Value:
        if not isinstance(x, Lin) and not isinstance(y, Lin):
            return -(-x // y)
        if y is x:
            return 1
        key = ("div", key_of(x), key_of(y))
        if key not in self._cache:
            lo, hi = -(-low(x) // high(y)), -(-high(x) // low(y))
            if lo == hi:
                return lo
            quotient = self.variable(lo, hi, f"d{len(self._variables)}")
            if isinstance(y, Lin):
                self.model.add_division_equality(
                    self.expression(quotient), self.expression(x + y - 1), self.expression(y)
                )
            else:
                self.row(quotient * y - x, 0, y - 1)
            self._cache[key] = quotient
        return self._cache[key]

    def _extreme(self, x: Value, y: Value, name: str) -> Value:
        if not isinstance(x, Lin) and not isinstance(y, Lin):
            return min(x, y) if name == "min" else max(x, y)
        if high(x) <= low(y):
            return x if name == "min" else y
        if high(y) <= low(x):
            return y if name == "min" else x
        key = (name, key_of(x), key_of(y))
        if key not in self._cache:
            pick = min if name == "min" else max
            result = self.variable(pick(low(x), low(y)), pick(high(x), high(y)), f"{name}{len(self._variables)}")
            add = self.model.add_min_equality if name == "min" else self.model.add_max_equality
            add(self.expression(result), [self.expression(x), self.expression(y)])
            self._cache[key] = result
        return self._cache[key]

    def max_of(self, x: Value, y: Value) -> Value:
        return self._extreme(x, y, "max")

    def min_of(self, x: Value, y: Value) -> Value:
        return self._extreme(x, y, "min")

    def at_most(self, x: Value, limit: int) -> Cond:
        if high(x) <= limit:
            return True
        if low(x) > limit:
            return False
        key = ("le", key_of(x), limit)
        if key not in self._cache:
            literal = self.model.new_bool_var(f"b{len(self._cache)}")
            self.row(x, None, limit, [literal])
            self.row(x, limit + 1, None, [literal.negated()])
            self._cache[key] = literal
        return self._cache[key]

    def choose(self, cond: Cond, yes: Value, no: Value) -> Value:
        if isinstance(cond, bool):
            return yes if cond else no
        result = self.variable(min(low(yes), low(no)), max(high(yes), high(no)), f"c{len(self._variables)}")
        self.row(result - yes, 0, 0, [cond])
        self.row(result - no, 0, 0, [cond.negated()])
        return result

    def argmin(self, options: Sequence[Value]) -> Value:
        if len(options) == 1:
            return [True]
        literals = [self.model.new_bool_var(f"w{position}") for position in range(len(options))]
        self.model.add_exactly_one(literals)
        for position, (literal, option) in enumerate(zip(literals, options, strict=True)):
            for other, rival in enumerate(options):
                if other != position and not self.compare(option, "<=", rival - (other < position), [literal]):
                    self.model.add(literal == 0)
        return literals

    def pick(self, selector: Value, costs: Sequence[Callable[[], Value]], unless: Cond = False) -> Value:
        if unless is True:
            return 0
        outer = () if unless is False else (unless.negated(),)
        options = []
        for literal, cost in zip(selector, costs, strict=True):
            with self._counting(outer if literal is True else (literal, *outer)):
                options.append(cost())
        result = self._cost(min(low(o) for o in options), max(high(o) for o in options), "pick")
        for literal, option in zip(selector, options, strict=True):
            with self._counting(outer if literal is True else (literal, *outer)):
                self._cost_row(result - option, 0, 0 if self.exact else None)
        return result

    @contextmanager
    def _counting(self, literals: tuple[Any, ...]) -> Iterator[None]:
        """Costs built inside count only where all the literals hold."""
        before = self._when
        self._when = (*before, *literals)
        try:
            yield
        finally:
            self._when = before

    def pick_count(self, selector: Value, counts: Sequence[Value]) -> Value:
        if len(counts) == 1:
            return counts[0]
        result = self.variable(min(low(c) for c in counts), max(high(c) for c in counts), f"k{len(self._variables)}")
        for literal, count in zip(selector, counts, strict=True):
            self.row(result - count, 0, 0, [literal])
        return result

    # -- costs
    @contextmanager
    def _optional_scope(self) -> Iterator[None]:
        self._optional += 1
        try:
            yield
        finally:
            self._optional -= 1

    def optional(self) -> Any:
        return self._optional_scope()

    def _cost_row(self, x: Lin, lo: int | None, hi: int | None, when: Sequence[Any] = ()) -> None:
        """A row of a cost, in force only where the cost counts."""
        self.row(x, lo, hi, (*when, *self._when))

    def _cost(self, lo: int, hi: int, name: str) -> Lin:
        if self.ceiling is not None and not self._optional:
            hi = max(min(hi, self.ceiling), 0)
        if lo > hi:
            # Nothing at or below the ceiling is left where this cost counts.
            if self._when:
                self.model.add_bool_or([literal.negated() for literal in self._when])
            else:
                self.violated.append("")
            hi = lo
        return self.variable(lo, hi, f"{name}{len(self._variables)}")

    def _sum(self, rates: Rates, counts: Sequence[Value]) -> Value:
        total: Value = 0
        room = LIMIT // (2 * (self.ceiling or 1))
        for coefficient, count in zip(rates.coefficients, counts, strict=True):
            if isinstance(count, Lin) and any(abs(c) * coefficient >= room for c in count.terms.values()):
                count = self._plain(count)
            total = total + count * coefficient
        return total

    def _plain(self, count: Lin) -> Lin:
        """The count as one variable, so that its factors do not multiply the rate in a row."""
        if len(count.terms) == 1 and not count.constant and next(iter(count.terms.values())) == 1:
            return count
        key = ("plain", count.key())
        if key not in self._cache:
            variable = self.variable(count.lo, count.hi, f"n{len(self._variables)}")
            self.row(variable - count, 0, 0)
            self._cache[key] = variable
        plain: Lin = self._cache[key]
        return plain

    def _tighten(self, rates: Sequence[Rates], counts: Sequence[Value]) -> None:
        """Cut the domain of counts that alone would push the cost past the ceiling, at the lowest of several rates.

        The rows imply it; written into the domains it keeps rows of very large cases inside the sound number range.
        """
        if self.ceiling is None or self._optional or self._when:
            return
        for position, count in enumerate(counts):
            if not isinstance(count, Lin) or count.constant or len(count.terms) != 1:
                continue
            ((index, factor),) = count.terms.items()
            top = 0
            for denominator, coefficients in rates:
                if factor <= 0 or not coefficients[position]:
                    break
                top = max(top, self.ceiling * denominator // (coefficients[position] * factor))
            else:
                self._cut(index, top)
                count.hi = min(count.hi, max(top * factor, count.lo))

    def _cut(self, index: int, top: int) -> None:
        domain = self.model.proto.variables[self._variables[index].index].domain
        if top >= self._bounds[index] or len(domain) != 2:
            return
        if domain[0] > top:
            self.violated.append("")
            return
        domain[1] = top
        self._bounds[index] = max(abs(domain[0]), top)

    def ticks(self, rates: Rates, counts: Sequence[Value]) -> Value:
        self._tighten((rates,), counts)
        total = self._sum(rates, counts)
        denominator = rates.denominator
        if not isinstance(total, Lin):
            return -(-total // denominator)
        if denominator == 1:
            return total
        cost = self._cost(-(-total.lo // denominator), -(-total.hi // denominator), "t")
        self._cost_row(cost * denominator - total, 0, denominator - 1 if self.exact else None)
        return cost

    def classes(self, x: Value, pieces: Sequence[Piece], counts: Sequence[Value]) -> Value:
        possible = []
        below = 0
        for index, piece in enumerate(pieces):
            last = index == len(pieces) - 1
            if high(x) > below and (last or low(x) <= piece.upper):
                possible.append((below, None if last else piece.upper, piece.rates))
            below = piece.upper
        if len(possible) == 1:
            return self.ticks(possible[0][2], counts)
        literals = [self.model.new_bool_var(f"e{len(self._variables)}_{i}") for i in range(len(possible))]
        self.model.add_exactly_one(literals)
        self._tighten([rates for _, _, rates in possible], counts)
        sums = [(rates.denominator, self._sum(rates, counts)) for _, _, rates in possible]
        cost = self._cost(
            min(-(-low(total) // d) for d, total in sums), max(-(-high(total) // d) for d, total in sums), "e"
        )
        for literal, (least, most, _), (denominator, total) in zip(literals, possible, sums, strict=True):
            self.row(x, least + 1, most, [literal])
            self._cost_row(cost * denominator - total, 0, denominator - 1 if self.exact else None, [literal])
        return cost

    def share(self, cost: Value, whole: int, part: Value) -> Value:
        if low(part) >= whole:
            return cost
        if not isinstance(cost, Lin) and not isinstance(part, Lin):
            return -(-cost * whole // part)
        result = self._cost(-(-low(cost) * whole // high(part)), -(-high(cost) * whole // low(part)), "s")
        product = self.mul(result, part)
        self._cost_row(product - cost * whole, 0, None)
        if self.exact:
            self._cost_row(product - cost * whole - part, None, -1)
        self._cost_row(result - cost, 0, None)
        return result

    def worst(self, costs: Sequence[Value]) -> Value:
        floor = max(low(cost) for cost in costs)
        free = [cost for cost in costs if isinstance(cost, Lin) and cost.terms and cost.hi > floor]
        if not free:
            return floor
        if len(free) == 1 and free[0].lo >= floor:
            return free[0]
        result = self._cost(floor, max(cost.hi for cost in free), "m")
        for cost in free:
            self._cost_row(result - cost, 0, None)
        if self.exact:
            self._attained(result, [*free, floor])
        return result

    def _attained(self, result: Lin, costs: Sequence[Value], when: Sequence[Any] = ()) -> None:
        """The result is at most one of the costs."""
        literals = [self.model.new_bool_var(f"x{len(self._variables)}_{i}") for i in range(len(costs))]
        clause = self.model.add_bool_or(literals)
        if when:
            clause.only_enforce_if(list(when))
        for literal, cost in zip(literals, costs, strict=True):
            self._cost_row(result - cost, None, 0, [literal])

    def either(self, cond: Cond, yes: Sequence[Value], no: Sequence[Value]) -> Value:
        if isinstance(cond, bool):
            return self.worst(yes if cond else no)
        lo = min(max(low(c) for c in yes), max(low(c) for c in no))
        result = self._cost(lo, max(high(c) for c in (*yes, *no)), "o")
        for cost in yes:
            self._cost_row(result - cost, 0, None, [cond])
        for cost in no:
            self._cost_row(result - cost, 0, None, [cond.negated()])
        if self.exact:
            self._attained(result, yes, [cond])
            self._attained(result, no, [cond.negated()])
        return result

    # -- rules
    def _enforced(self, rule_id: str) -> list[Any]:
        if self.literals is None or not rule_id:
            return []
        if rule_id not in self.literals:
            self.literals[rule_id] = self.model.new_bool_var(rule_id)
        return [self.literals[rule_id]]

    def rule(self, rule_id: str, left: Value, operator: str, right: Value) -> None:
        literals = self._enforced(rule_id)
        if not self.compare(left, operator, right, literals):
            if literals:
                self.model.add(literals[0] == 0)
            else:
                self.violated.append(rule_id)

    def aligned(self, rule_id: str, value: Value, atom: int) -> Value:
        if self.literals is None:
            return value
        raw = self.variable(0, max(high(value), 2**21), rule_id)
        self.rule(rule_id, raw, "==", value)
        return raw

    def known(self, x: Value, lo: int, hi: int) -> Value:
        if not isinstance(x, Lin) or (x.lo >= lo and x.hi <= hi):
            return x
        variable = self.variable(max(x.lo, lo), min(x.hi, hi), f"v{len(self._variables)}")
        self.row(variable - x, 0, 0)
        return variable

    def rule_divides(self, rule_id: str, x: Value, y: Value) -> None:
        large, small = self.max_of(x, y), self.min_of(x, y)
        if not isinstance(large, Lin) and not isinstance(small, Lin):
            self.rule(rule_id, large % small, "==", 0)
            return
        if low(small) == high(small) == 1:
            return
        factor = self.variable(1, max(1, high(large) // low(small)), f"q{len(self._variables)}")
        self.rule(rule_id, self.mul(factor, small), "==", large)
