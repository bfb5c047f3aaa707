"""What a branch is made of: its search space, its formula, its plan fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..algebra import Algebra, Value
from ..context import Context
from ..latency import Outcome, Values
from ..plan import BranchName, Plan

#: Buffer counts of a streamed L1 part.
L1_BUFFERS = (1, 2, 4)
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

    @property
    def label(self) -> str:
        """Short name for logs and model files."""
        return ",".join(f"{key}={value}" for key, value in self.constants.items())


class Branch(ABC):
    """An implementation branch: its rules, variables, latency and plan."""

    name: ClassVar[BranchName]
    #: Whether a rule asks for a least cost, so that bounding costs from below is not enough.
    exact_costs: ClassVar[bool] = False
    #: Whether any rule compares a cost, so that costs may not be left out.
    cost_rules: ClassVar[bool] = False

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


def l2_policy(alg: Algebra, ctx: Context, reads_a: Callable[[], Value], reads_b: Callable[[], Value]) -> dict[str, Any]:
    """L2 policies that follow from the traffic: an input read once streams, an output above L2 is written through."""

    def code() -> Value:
        return alg.min_of(reads_a(), 2) - 1 + (alg.min_of(reads_b(), 2) - 1) * 2

    out = "keep" if ctx.output_total <= ctx.spec.l2_bytes else "write_through"
    return {"l2_policy_in": Word(("stream", "stream_b", "stream_a", "keep"), code), "l2_policy_out": out}


def once() -> int:
    """A single read."""
    return 1
