"""Why a branch is impossible: minimal conflicts, and the least change of each member that would help.

A conflict is a set of named rules (pins among them) that no plan obeys together, while dropping any one member leaves a
plan. Assumption cores of OR-Tools are a first guess only: every core is solved again by itself, the union over all
structures of the branch is shrunk by deletion, and what remains is minimal by construction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Any

from ...hardware.errors import InternalError
from ...models.algebra import IntAlgebra, RuleCheck
from ...models.branches import BRANCH_OF, Structure
from ...models.branches.base import Wide
from ...models.context import Context
from ...models.pins import LATENCY, Pin, PinnedBranch, latency_ticks, word_values
from ...models.plan import BranchName
from ...models.rules import RuleInfo, rule_info
from ..cpsat.errors import TooHard
from ..cpsat.linear import Lin, high
from ..cpsat.rules_only import Rules, RulesAlgebra
from ..cpsat.run import Budget, Verdict, run_held, run_unpresolved
from ..result import Conflict, ConflictMember
from .branch_search import BranchSearch

#: Kinds in the order in which members are tried for removal: what is left last is what engineers act on.
_REMOVAL = ("cover", "buffer", "step", "policy", "entry", "align", "pin", "cap")
_MOST_CONFLICTS = 3
_SECONDS = 10.0


@dataclass
class _Model:
    """Explain model of one structure: the literal of every rule, and the cores found so far."""

    structure: Structure
    alg: RulesAlgebra
    rules: Rules
    impossible: bool
    cores: list[Rules] = field(default_factory=list)


@dataclass(frozen=True)
class Relaxation:
    """Least change of one member: the value it would need, the one it has, and what to say."""

    helps: bool
    text: str
    needs: int | None = None
    has: int | None = None


class Explainer:
    """Conflicts of one branch of one case with its pins."""

    def __init__(self, ctx: Context, name: BranchName, pins: tuple[Pin, ...] = ()) -> None:
        self.ctx = ctx
        self.branch = PinnedBranch(BRANCH_OF[name], pins)
        self.pins = self.branch.rule_ids()
        entry = IntAlgebra()
        self.branch.entry(entry, ctx)
        self.entry: dict[str, RuleCheck] = {check.rule: check for check in entry.checks}
        timed = [(rule, pin) for rule, pin in self.pins.items() if pin.field == LATENCY]
        self._costs = bool(timed)
        #: The rule that bounds the total from above, when no other rule is about time.
        self._limit: tuple[str, int] | None = None
        if len(timed) == 1 and timed[0][1].low is None and timed[0][1].high is not None:
            self._limit = (timed[0][0], latency_ticks(ctx, timed[0][1].high))
        self._models: list[_Model] | None = None

    # -- feasibility of a subset of rules
    def _structures(self) -> list[Structure]:
        """Structures of the wide search space, without those that another one makes needless here."""
        fields = {pin.field for pin in self.branch.pins} | {p.other for p in self.branch.pins if p.other}
        source = self.ctx.profile == "source"
        one_l0 = not source and not fields & {"l0_buffers", LATENCY}
        flagged = not source and not fields & {"l0c_buffers", "fixpipe_unitflag", LATENCY}
        kept = []
        for structure in self.branch.structures(self.ctx, complete=True, wide=Wide(free=True)):
            constants = structure.constants
            if one_l0 and constants.get("l0_buffers", 1) != 1:
                continue
            if flagged and (constants.get("l0c_buffers", 1), constants.get("fixpipe_unitflag", 1)) != (1, 1):
                continue
            kept.append(structure)
        return kept

    def _build(
        self, structure: Structure, relaxed: str | None = None, only: Rules | None = None
    ) -> tuple[RulesAlgebra, dict[str, Lin]]:
        limit, costs = self._limit, self._costs
        if limit is not None and only is not None and limit[0] not in only:
            limit, costs = None, False
        alg = RulesAlgebra(explain=relaxed is None, costs=costs, relaxed=relaxed, only=only, limit=limit)
        values = {d.name: alg.variable(d.domain()[0], d.domain()[-1], d.name, d.values) for d in structure.decisions}
        self.branch.entry(alg, self.ctx)
        self.branch.formula(alg, self.ctx, {**structure.constants, **values})
        return alg, values

    @property
    def models(self) -> list[_Model]:
        """Explain models of all structures."""
        if self._models is None:
            self._models = []
            for structure in self._structures():
                alg, _ = self._build(structure)
                assert alg.literals is not None
                self._models.append(_Model(structure, alg, frozenset(alg.literals), bool(alg.violated)))
        return self._models

    def _core_of(self, model: _Model, rules: Rules) -> Rules | None:
        """Rules that clash in one structure, or None when it has a plan."""
        for core in model.cores:
            if core <= rules:
                return core
        if model.impossible:
            return frozenset()
        asked = model.rules & rules
        guess = self._solve(model, asked)
        if guess is None:
            return None
        # OR-Tools may name literals outside the assumptions or too few of them: solve the core again by itself.
        if not guess <= asked or (guess != asked and self._solve(model, guess) is None):
            guess = asked
        model.cores.append(guess)
        return guess

    def _solve(self, model: _Model, rules: Rules) -> Rules | None:
        literals = model.alg.literals
        assert literals is not None
        verdict, core = run_held(model.alg.model, {name: literals[name] for name in sorted(rules)}, _SECONDS)
        if verdict is Verdict.UNKNOWN:
            raise TooHard(f"a part of the conflict is not decided within {_SECONDS:g} s")
        return core if verdict is Verdict.INFEASIBLE else None

    def core(self, rules: Rules) -> Rules | None:
        """Rules among the given ones that clash in every structure together, or None when a plan obeys them all."""
        union: set[str] = set()
        for model in self.models:
            core = self._core_of(model, rules)
            if core is None:
                return None
            union |= core
        return frozenset(union)

    @property
    def all_rules(self) -> Rules:
        """Every rule of the branch."""
        return frozenset().union(*(model.rules for model in self.models))

    # -- conflicts
    def minimal(self, rules: Rules) -> Rules | None:
        """A minimal conflict among the given rules, or None when they are feasible together."""
        current = self.core(rules)
        if current is None:
            return None
        for rule in sorted(current, key=lambda r: (_REMOVAL.index(r.partition(".")[0]), r)):
            if rule in current:
                smaller = self.core(current - {rule})
                if smaller is not None:
                    current = smaller
        if not current:
            raise InternalError(f"explaining {self.branch.name}: the definitions alone have no solution")
        return current

    def conflicts(self, most: int = _MOST_CONFLICTS) -> list[Conflict]:
        """Up to ``most`` disjoint minimal conflicts with their repairs; empty when the branch is feasible."""
        hopeless = self.branch.facts.no_formula
        fatal = [rule for rule, check in self.entry.items() if rule in hopeless and not check.holds]
        if fatal:
            return [self._conflict(frozenset({rule})) for rule in fatal[:most]]
        found: list[Conflict] = []
        rules = self.all_rules
        while len(found) < most:
            conflict = self.minimal(rules)
            if conflict is None:
                break
            found.append(self._conflict(conflict))
            rules = rules - conflict
        # What the case alone decides comes first.
        return sorted(found, key=lambda conflict: not all(rule in self.entry for rule in conflict.rules))

    def _conflict(self, rules: Rules) -> Conflict:
        order = sorted(rules, key=lambda r: (r.partition(".")[0] != "pin", r))
        members = [self._member(rule, rules) for rule in order]
        policy = all(member.kind == "policy" for member in members)
        return Conflict(members=members, policy_only=policy)

    def _member(self, rule: str, conflict: Rules) -> ConflictMember:
        info = self._info(rule)
        change = self.relaxation(rule)
        text = info.text
        check = self.entry.get(rule)
        if check is not None:
            text = f"{info.text} (here {check.left} {check.operator} {check.right} is false)"
        elif rule not in self.pins:
            text = f"{info.text}{self._numbers(rule, info, change, conflict)}"
        return ConflictMember(
            rule=rule, kind=info.kind, text=text, repair=change.text, needs=change.needs, has=change.has
        )

    def _numbers(self, rule: str, info: RuleInfo, change: Relaxation, conflict: Rules) -> str:
        """Both sides of a rule at its least relaxation, or where no relaxation helps, against the conflict alone."""
        needs, has = change.needs, change.has
        if needs is None and rule != "step.k_divide":
            found = [self._least(model.structure, rule, conflict) for model in self.models]
            sides = min((candidate for candidate in found if candidate is not None), default=None)
            if sides is not None:
                _, needs, has = sides
        return "" if needs is None else f" (needs {needs} {info.unit}, has {has} {info.unit})"

    def _info(self, rule: str) -> RuleInfo:
        pin = self.pins.get(rule)
        if pin is None:
            return rule_info(rule)
        return RuleInfo(id=rule, text=f"pinned: {pin.text}")

    # -- least relaxations
    def relaxation(self, rule: str) -> Relaxation:
        """Least change of one rule alone, all others kept, that leaves a plan."""
        if rule in self.branch.facts.no_formula:
            return Relaxation(False, "no tiling of this branch can change it")
        rest = self.minimal(self.all_rules - {rule})
        if rest is not None:
            verb = "still clashes" if len(rest) == 1 else "still clash"
            return Relaxation(False, f"no change of it alone helps: {', '.join(sorted(rest))} {verb}")
        pin = self.pins.get(rule)
        if pin is not None and (pin.word is not None or self._no_field(pin)):
            return self._word_relaxation(pin)
        if self._limit is not None and rule == self._limit[0]:
            return self._say(rule, pin, self._least_total(self._limit[1]))
        best: tuple[int, int, int] | None = None
        for model in self.models:
            if model.impossible or any(rule not in core for core in model.cores):
                continue  # this structure clashes without the rule as well
            candidate = self._least(model.structure, rule)
            if candidate is not None and (best is None or candidate[0] < best[0]):
                best = candidate
        if best is None:
            raise InternalError(f"explaining {self.branch.name}: no structure is feasible without {rule}")
        return self._say(rule, pin, best)

    def _least_total(self, limit: int) -> tuple[int, int, int]:
        """(violation, left, right) of an upper bound of the total: all other rules are those of a search."""
        branch = PinnedBranch(self.branch.inner, tuple(pin for pin in self.branch.pins if pin.field != LATENCY))
        search = BranchSearch(self.ctx, branch, Budget.of(_SECONDS))
        verdict = search.optimum()
        if verdict is Verdict.UNKNOWN:
            raise TooHard(f"the least total is not proven within {_SECONDS:g} s")
        if search.best is None:
            raise InternalError(f"explaining {self.branch.name}: the search finds no plan, the explainer one")
        ticks = search.best.evaluation.ticks
        return ticks - limit, ticks, limit

    def _no_field(self, pin: Pin) -> bool:
        """Whether the branch lacks the pinned field."""
        return pin.field != LATENCY and all(pin.field not in fields for fields in self._field_names())

    def _field_names(self) -> list[set[str]]:
        names = []
        for model in self.models[:1]:
            alg = IntAlgebra()
            values = {d.name: d.domain()[0] for d in model.structure.decisions}
            mixed = {**model.structure.constants, **values}
            outcome = self.branch.inner.formula(alg, self.ctx, mixed)
            names.append({*self.branch.inner.fields(alg, self.ctx, mixed, outcome.counts), "branch", "out_dtype_bytes"})
        return names

    def _word_relaxation(self, pin: Pin) -> Relaxation:
        """Which other words leave a plan."""
        if self._no_field(pin):
            return Relaxation(False, f"branch {self.branch.name} has no {pin.field}; drop the pin")
        others = []
        for word in _alternatives(pin):
            pins = tuple(replace(p, word=word, text=f"{p.field}={word}") if p is pin else p for p in self.branch.pins)
            other = Explainer(self.ctx, self.branch.name, pins)
            if other.core(other.all_rules) is None:
                others.append(word)
        return Relaxation(True, f"{pin.field} would have to be {' or '.join(others)}")

    def _least(self, structure: Structure, rule: str, only: Rules | None = None) -> tuple[int, int, int] | None:
        """(violation, left, right) of the rule at its least violation in one structure; None without a plan.

        ``only`` selects the other rules in force.
        """
        alg, _ = self._build(structure, relaxed=rule, only=only)
        if alg.violated or not alg.collected:
            return None
        differences = [d for left, operator, right in alg.collected for d in _excess(left, operator, right)]
        worst = alg.variable(0, max(0, *(high(d) for d in differences)), "violation")
        for difference in differences:
            alg.row(worst - difference, 0, None)
        alg.model.minimize(alg.expression(worst))
        verdict, solver = run_unpresolved(alg.model, _SECONDS)
        if verdict in (Verdict.UNKNOWN, Verdict.FEASIBLE):
            raise TooHard(f"the least change of {rule} is not proven within {_SECONDS:g} s")
        if verdict is Verdict.INFEASIBLE:
            return None
        amount = alg.value(solver, worst)
        for left, operator, right in alg.collected:
            a, b = alg.value(solver, left), alg.value(solver, right)
            if amount and amount in _excess(a, operator, b):
                return amount, a, b
        return amount, alg.value(solver, alg.collected[0][0]), alg.value(solver, alg.collected[0][2])

    def _say(self, rule: str, pin: Pin | None, best: tuple[int, int, int]) -> Relaxation:
        _, left, right = best
        info = self._info(rule)
        if pin is not None:
            if pin.field == LATENCY:
                # Rounded to the side that works.
                thousandths = 1000 * left / self.ctx.ticks_per_us
                shown = f"{(floor(thousandths) if left < right else ceil(thousandths)) / 1000:.3f}"
            elif pin.other is not None:
                return Relaxation(True, f"{pin.field} would be {left} and {pin.other} {right}", left, right)
            else:
                shown = str(left)
            if pin.low == pin.high:
                return Relaxation(True, f"the nearest {pin.field} that works is {shown}", left, right)
            sign = "at most" if left < right else "at least"
            return Relaxation(True, f"{pin.field} would have to be {sign} {shown}", left, right)
        if rule == "step.k_divide":
            return Relaxation(True, "waiving it alone would do")
        if info.kind == "align":
            return Relaxation(
                True,
                f"{left} would have to count as aligned; the nearest aligned value that fits is {right}",
                left,
                right,
            )
        if info.kind == "entry" or rule in self.entry:
            if info.kind == "policy":
                text = f"the threshold would have to be {left} {info.unit} instead of {right}"
                return Relaxation(True, text, left, right)
            return Relaxation(True, "only without this rule; the case would have to change", left, right)
        bound = "threshold" if info.kind == "policy" else "limit"
        return Relaxation(True, f"the {bound} would have to be {left} {info.unit}", left, right)


def _alternatives(pin: Pin) -> list[str]:
    return [word for word in word_values(pin.field) if word != pin.word]


def _excess(left: Any, operator: str, right: Any) -> list[Any]:
    """By how much a comparison is broken, in each direction it forbids."""
    over, under = left - right, right - left
    return {"<=": [over], ">=": [under], "==": [over, under]}[operator]
