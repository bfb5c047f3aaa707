"""What is known and assumed about each set of measurements (``sets.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["MeasuredSet", "MeasuredSets", "SetRows", "measured_sets"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SetRows(_Model):
    """Rows of a set that differ from the others: those whose ``op`` contains the text."""

    op: str
    pins: tuple[str, ...] = ()
    case: Mapping[str, str] = Field(default_factory=dict, description="case columns that hold instead of the row's")
    why: str


class MeasuredSet(_Model):
    """Facts and assumptions that all rows of a set share."""

    environment: Literal["profiler", "cold", "warm", "resident"] = Field(
        default="profiler", description="launch head and state of L2"
    )
    rules: Literal["none", "source", "v0.4"] = Field(
        default="none", description="profile of rules that the free part of a tiling obeys"
    )
    role: Literal["check", "stress"] = Field(default="check", description="whether it counts in the headline figures")
    trust: str = Field(default="", description="how far the source can be trusted")
    pins: tuple[str, ...] = Field(default=(), description="what is known or assumed beside the tile of the row")
    case: Mapping[str, str] = Field(default_factory=dict, description="case columns that the rows leave open")
    assumption: str = Field(default="", description="the assumptions in words")
    where: tuple[SetRows, ...] = Field(default=(), description="rows that differ")

    def pins_of(self, op: str) -> tuple[str, ...]:
        """Pins of a row of that ``op``; where two speak of one field, the more special one holds."""
        by_field = {pin.partition("=")[0]: pin for pin in self.pins}
        for rows in self.where:
            if rows.op in op:
                by_field |= {pin.partition("=")[0]: pin for pin in rows.pins}
        return tuple(by_field.values())

    def case_of(self, op: str, given: Mapping[str, str]) -> dict[str, str]:
        """Case columns of a row of that ``op`` that gives the columns ``given``."""
        case = {**self.case, **given}
        for rows in self.where:
            if rows.op in op:
                case |= rows.case
        return case


class MeasuredSets(_Model):
    """All sets by name, the chips that the sources speak of, and the input types that are not modelled."""

    chips: Mapping[str, str]
    types: Mapping[str, str]
    sets: Mapping[str, MeasuredSet]

    def of(self, name: str) -> MeasuredSet:
        """Facts of a set; of an unknown one nothing is assumed."""
        return self.sets.get(name, MeasuredSet())


@cache
def measured_sets() -> MeasuredSets:
    """The facts of ``sets.toml``."""
    text = files(__package__).joinpath("sets.toml").read_text(encoding="utf-8")
    return MeasuredSets.model_validate(tomllib.loads(text))
