"""What shared code must know of each plan field: its decision, atom and values, and which of equal plans is better.

One row a field, in the order of the tie-break (design section 8). A field without a row follows from others, or is its
own decision, one by one, and no tie-break asks for it. A decision that only one branch has is named beside the field it
shows in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from .context import ATOM, Context
from .plan import PLAN_FIELDS

#: Which of two equally fast plans is the answer: that with the larger or smaller number, or the word first in the
#: alphabet.
Preferred = Literal["larger", "smaller", "alphabetical"]


@dataclass(frozen=True, kw_only=True)
class PlanField:
    """One field of a plan; what a row leaves out is as in a field without one.

    Attributes:
        decision: the decision that a pin on the field holds; its own name when left out.
        atom: what one unit of the decision is, in units of the field: 1, the 16 rows of a fractal, or its K extent.
        shared: a decision that stands for this field and another one at once (pins only widen its domain).
        vector: the decision of the vector cores that shows in the field.
        loose: whether ``shared`` or ``vector`` alone does not tell the field.
        least: least number.
        values: the numbers allowed, with the ``rule`` that says so.
        deep: whether a pinned value always belongs to the search space, so that the rule it breaks is named.
        preferred: place in the tie-break.
    """

    name: str
    decision: str = ""
    atom: Literal["one", "tile", "k"] = "one"
    shared: str = ""
    vector: str = ""
    loose: bool = False
    least: int = 1
    values: tuple[int, ...] = ()
    rule: str = ""
    deep: bool = False
    preferred: Preferred | None = None

    @property
    def level(self) -> str:
        """Name of the field among decisions and counts."""
        return self.decision or self.name

    def atom_of(self, ctx: Context) -> int:
        """Elements (or pieces) in one unit of the decision."""
        return {"one": 1, "tile": ATOM, "k": ctx.atom_k}[self.atom]

    def nearest(self, number: int) -> int:
        """The allowed number that is nearest; ``number`` itself when it is allowed."""
        return min(self.values, key=lambda value: abs(number - value))


def _rows() -> tuple[PlanField, ...]:
    row = PlanField
    return (
        row(name="l0_buffers", values=(1, 2), rule="buffer.l0", preferred="larger"),
        row(name="base_k", decision="uk", atom="k", deep=True, preferred="larger"),
        row(name="k_l1", preferred="larger"),
        row(name="l1_buffers", values=(1, 2, 4), rule="buffer.l1", preferred="larger"),
        row(name="ub_buffers", values=(1, 2), rule="buffer.ub", preferred="larger"),
        row(name="used_core_num", vector="used", preferred="larger"),
        row(name="base_m", decision="um", atom="tile", vector="rows", deep=True, preferred="larger"),
        row(name="base_n", decision="un", atom="tile", vector="runs", loose=True, deep=True, preferred="larger"),
        row(name="step_ka", shared="step_k", deep=True, preferred="smaller"),
        row(name="step_kb", shared="step_k", deep=True, preferred="smaller"),
        row(name="step_m", shared="step_part", loose=True, preferred="smaller"),
        row(name="step_n", shared="step_part", loose=True, preferred="smaller"),
        row(name="tail_m", preferred="smaller"),
        row(name="tail_n", preferred="smaller"),
        row(name="iter_l1", preferred="smaller"),
        row(name="iter_l0", preferred="larger"),
        row(name="merge_b0", preferred="smaller"),
        row(name="b_l1", preferred="smaller"),
        row(name="grid_b", preferred="smaller"),
        row(name="grid_m", preferred="smaller"),
        row(name="grid_n", preferred="smaller"),
        row(name="grid_k", preferred="smaller"),
        row(name="l1_form", preferred="alphabetical"),
        row(name="full_load", preferred="alphabetical"),
        row(name="inner_branch", preferred="alphabetical"),
        row(name="l0c_buffers", values=(1, 2), rule="buffer.l0c", preferred="larger"),
        row(name="fixpipe_unitflag", least=0, preferred="larger"),
        row(name="single_core_m", decision="single_m", atom="tile"),
        row(name="single_core_n", decision="single_n", atom="tile"),
        row(name="iterate_order", least=0),
        row(name="workspace_bytes", least=0),
    )


def _all() -> dict[str, PlanField]:
    rows = {row.name: row for row in _rows()}
    return rows | {name: PlanField(name=name) for name in PLAN_FIELDS if name not in rows}


FIELDS: Final[dict[str, PlanField]] = _all()

#: The fields that may be but a few numbers.
BOUNDED: Final = tuple(sorted((field for field in FIELDS.values() if field.values), key=lambda field: field.rule))
#: Buffer counts of a streamed L1 part.
L1_BUFFERS: Final = FIELDS["l1_buffers"].values
#: The fields of the L0 tile.
TILE: Final = ("base_m", "base_n", "base_k")
#: The fields of the buffers that every Cube branch has.
BUFFERS: Final = ("l0_buffers", "l0c_buffers", "l1_buffers", "fixpipe_unitflag")


def _by_decision() -> dict[str, tuple[PlanField, ...]]:
    found: dict[str, tuple[PlanField, ...]] = {}
    for field in FIELDS.values():
        for name in filter(None, (field.level, field.shared, field.vector)):
            found[name] = (*found.get(name, ()), field)
    return found


_OF_DECISION: Final = _by_decision()
_SIGN: Final = {"larger": 1, "smaller": -1}

#: The tie-break of the search, HBM bytes first: (decision or count, +1 to prefer larger values).
PREFERENCE: Final[tuple[tuple[str, int], ...]] = (
    ("hbm_units", -1),
    *{
        level: _SIGN[field.preferred]
        for field in FIELDS.values()
        if field.preferred in _SIGN
        for level in ((field.level, field.shared) if field.shared else (field.level,))
    }.items(),
)
#: The same of a finished plan, words included: (field, +1 to prefer larger numbers, 0 for a word).
FIELD_PREFERENCE: Final[tuple[tuple[str, int], ...]] = tuple(
    (field.name, _SIGN.get(field.preferred, 0)) for field in FIELDS.values() if field.preferred
)


def field_of(decision: str) -> str:
    """Plan field in which a decision shows; ``step_m or step_n`` where one of several."""
    first, *others = _OF_DECISION.get(decision, (PlanField(name=decision),))
    return " or ".join((first.name, *(field.name for field in others if first.loose)))


def fields_of(decision: str) -> tuple[str, ...]:
    """All plan fields in which a decision shows."""
    return tuple(field.name for field in _OF_DECISION.get(decision, ())) or (decision,)


def decided_value(ctx: Context, decision: str, given: Mapping[str, Any]) -> int | None:
    """Value of a decision that the given fields say; None when they do not, or when it is no whole number of atoms."""
    field = _OF_DECISION.get(decision, (PlanField(name=decision),))[0]
    own = decision == field.level
    atom, value = field.atom_of(ctx) if own else 1, given.get(field.name)
    if not isinstance(value, int) or value % atom or (field.loose and not own):
        return None
    return value // atom


def least_value(decision: str) -> int:
    """Least number that a decision of a plan may be."""
    return _OF_DECISION[decision][0].least if decision in _OF_DECISION else 1
