"""What a branch is made of: its search space, its formula, its plan fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..algebra import Algebra, Value
from ..context import Context
from ..fields import FIELDS, L1_BUFFERS, TILE, field_of
from ..latency import Outcome, Values
from ..plan import BranchName, Plan
from .words import cube_words

#: Values up to which a pinned value widens a domain without holes; a farther one is added alone.
_REACH = 2**16


#: Counts of an outcome, built on demand.
Counts = Mapping[str, Callable[[], Value]]


@dataclass(frozen=True)
class Word:
    """A plan field whose word follows from counts: ``names[code()]``."""

    names: tuple[str, ...]
    code: Callable[[], Value]


@dataclass(frozen=True)
class Decision:
    """A free integer of a structure, in atoms of its plan field; ``values`` when the domain has holes."""

    name: str
    lo: int
    hi: int
    values: tuple[int, ...] | None = None

    def domain(self) -> Sequence[int]:
        """All values, ascending."""
        return self.values if self.values is not None else range(self.lo, self.hi + 1)

    def within(self, lo: int, hi: int) -> Decision | None:
        """The decision held between two values; None when no value is left."""
        if self.values is None:
            lo, hi = max(lo, self.lo), min(hi, self.hi)
            return Decision(self.name, lo, hi) if lo <= hi else None
        kept = tuple(value for value in self.values if lo <= value <= hi)
        return Decision(self.name, kept[0], kept[-1], kept) if kept else None


@dataclass(frozen=True)
class Wide:
    """A wider search space: ``reach`` names values (atoms) that a domain must include, say because they are pinned.

    ``free`` also drops the limits that only follow from rules, so that a conflict can name the rule.
    """

    reach: Mapping[str, int] = field(default_factory=dict)
    free: bool = False

    def decision(self, name: str, lo: int, hi: int, implied: int | None = None) -> Decision:
        """A decision up to ``hi``, and up to ``implied`` where a rule keeps it there."""
        if implied is not None and not self.free:
            hi = min(hi, implied)
        hi, far = max(lo, hi), self.reach.get(name, lo)
        if far > max(hi, _REACH):
            return Decision(name, lo, far, (*range(lo, hi + 1), far))
        return Decision(name, lo, max(hi, far))

    def l1_buffers(self) -> Decision:
        """Buffers of a streamed L1 part."""
        values = sorted({*L1_BUFFERS, self.reach.get("l1_buffers", 1)})
        return Decision("l1_buffers", values[0], values[-1], tuple(values))


class Asked(NamedTuple):
    """What pins ask of a field: least and most, and the one value if they name one."""

    low: int = 1
    high: int = 2**40
    exact: int | None = None


#: The ordinary search space.
NARROW = Wide()


@dataclass(frozen=True)
class Structure:
    """A part of a branch's search space in which everything that changes the shape of the formula is fixed.

    ``outer`` and ``axes`` name the decisions over which the search bounds the latency point by point: first over
    ``outer`` (then fixed), then over ``axes``. The other decisions stay intervals there.
    """

    constants: Mapping[str, Any]
    decisions: tuple[Decision, ...]
    axes: tuple[str, ...]
    outer: tuple[str, ...] = ()
    #: The combinations of ``outer`` worth a look, when most of their product breaks the rules.
    listed: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What shared code must know of a branch beside its formulas; the defaults are those of a Cube branch."""

    #: Case rules without which there are no formulas at all.
    no_formula: frozenset[str] = frozenset({"entry.k_at_least_2", "entry.output_not_empty"})
    #: How likely it wins: where branches may be stopped early, the likely ones are solved first.
    likely: int = 0
    #: Fields kept in whole atoms.
    aligned: tuple[str, ...] = TILE
    #: Values of a plan that may be 0.
    zero: frozenset[str] = frozenset()
    #: Fields that are used as they are when given, and follow from the others when not.
    either: tuple[str, ...] = ()
    #: Decisions that the search completes together when it looks for a first plan, in this order.
    beam: tuple[tuple[str, ...], ...] = (("um", "un"), ("uk", "l1_buffers"), ("step_ka", "step_kb"))
    #: Decisions of which it tries but a few values then.
    sparse: frozenset[str] = frozenset()
    #: Constants that a single change may move: the one that moves, and those that are only there for it.
    moves: tuple[tuple[str, ...], ...] = (("l0c_buffers", "fixpipe_unitflag"), ("fixpipe_unitflag",), ("l0_buffers",))
    #: Value that follows anew when a decision moves.
    follows: Mapping[str, str] = field(default_factory=dict)


class Branch(ABC):
    """An implementation branch: its rules, variables, latency and plan."""

    name: BranchName
    facts: Facts = Facts()
    #: Whether a rule asks for a least cost, so that bounding costs from below is not enough.
    exact_costs: bool = False
    #: Whether any rule compares a cost, so that costs may not be left out.
    cost_rules: bool = False

    @abstractmethod
    def entry(self, alg: Algebra, ctx: Context) -> None:
        """Post the rules that depend on the case alone."""

    @abstractmethod
    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        """The search space. ``complete`` lists every value of every field, otherwise dominated ones are left out."""

    def held(self, ctx: Context, structure: Structure, only: frozenset[str] | None = None) -> Structure | None:
        """The structure without the values that pins (those in ``only``) forbid; None when nothing is left."""
        return structure

    @abstractmethod
    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        """Post the rules of a plan and return its stages and counts."""

    @abstractmethod
    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        """Plan fields over the algebra: a count, a function giving one, a :class:`Word` or a plain string."""

    @abstractmethod
    def values(self, ctx: Context, plan: Plan) -> dict[str, Any]:
        """Decisions and constants that a plan stands for (the inverse of :meth:`fields`)."""

    # -- a plan that is given
    def solving(self, given: Mapping[str, Any]) -> Branch:
        """The branch whose formula a plan with the ``given`` fields obeys; another one where a case is folded."""
        return self

    @abstractmethod
    def deciding(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Fields that must be given for a plan to be complete; the others follow from them."""

    def forced(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Deciding fields that other ones leave no choice in."""
        return {}

    def optional(self, given: Mapping[str, Any]) -> frozenset[str]:
        """Values (of :meth:`values`) that a complete plan may leave out."""
        return self.open_values(given)

    def open_values(self, given: Mapping[str, Any]) -> frozenset[str]:
        """Values that are used when given, and follow from the others when not."""
        deciding = self.deciding(given)
        return frozenset(FIELDS[name].level for name in self.facts.either if name not in deciding)

    def variants(self, ctx: Context, asked: Mapping[str, Asked]) -> list[dict[str, int]]:
        """Fields that may be given or follow, with every value that pins may ask for; none of them leaves them open."""
        return [{}]

    def field_of(self, decision: str, values: Mapping[str, Any]) -> str:
        """Plan field in which a decision shows."""
        return field_of(decision)

    # -- in words
    def own_words(self, plan: Plan) -> str:
        """What only this branch has, in short."""
        return ""

    def words(self, plan: Plan) -> str:
        """What tells this tiling from another of the branch, in short."""
        return cube_words(plan, self.own_words(plan))


#: What a branch answers about given plans, beside its deciding fields.
_ANSWERS = ("solving", "forced", "optional", "open_values", "variants", "field_of", "own_words", "words")


class Around(Branch):
    """A branch around another one, which it changes in part."""

    def __init__(self, inner: Branch) -> None:
        self.inner = inner
        self.name, self.facts = inner.name, inner.facts
        self.exact_costs, self.cost_rules = inner.exact_costs, inner.cost_rules
        for answer in _ANSWERS:
            setattr(self, answer, getattr(inner, answer))

    def entry(self, alg: Algebra, ctx: Context) -> None:
        self.inner.entry(alg, ctx)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        return self.inner.structures(ctx, complete=complete, wide=wide)

    def held(self, ctx: Context, structure: Structure, only: frozenset[str] | None = None) -> Structure | None:
        return self.inner.held(ctx, structure, only)

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        return self.inner.formula(alg, ctx, v)

    def fields(self, alg: Algebra, ctx: Context, v: Values, counts: Counts) -> dict[str, Any]:
        return self.inner.fields(alg, ctx, v, counts)

    def values(self, ctx: Context, plan: Plan) -> dict[str, Any]:
        return self.inner.values(ctx, plan)

    def deciding(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        return self.inner.deciding(given)


def l2_policy(alg: Algebra, ctx: Context, reads_a: Callable[[], Value], reads_b: Callable[[], Value]) -> dict[str, Any]:
    """L2 policies that follow from the traffic: an input read once streams, an output above L2 is written through."""

    def code() -> Value:
        return alg.min_of(reads_a(), 2) - 1 + (alg.min_of(reads_b(), 2) - 1) * 2

    out = "keep" if ctx.output_total <= ctx.spec.l2_bytes else "write_through"
    return {"l2_policy_in": Word(("stream", "stream_b", "stream_a", "keep"), code), "l2_policy_out": out}


def once() -> int:
    """A single read."""
    return 1
