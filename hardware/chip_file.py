"""Reading chip descriptions in TOML: the shipped ones and the user's."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from .errors import SpecError
from .fields import NUMBER_FIELDS, unit_of
from .quantities import ENVIRONMENTS, Source
from .spec import NpuSpec, shown, suggestion

__all__ = ["Chip", "overlay", "parse_toml", "read_text"]

_TEXT_KEYS = ("base", "description", "name")
_TABLE_KEYS = ("confidence", "source", "unit", "value")
_CONFIDENCE = ("H", "M", "L")


@dataclass
class Chip:
    """Values of a chip before they are checked, with the source of each."""

    name: str = ""
    description: str = ""
    values: dict[str, object] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    origin: str = ""

    def build(
        self,
        file: str | os.PathLike[str] | None = None,
        places: Mapping[str, tuple[str, str]] | None = None,
    ) -> NpuSpec:
        """The checked chip; raises :class:`SpecError` with the place in ``file``."""
        values = {"name": self.name, "description": self.description, **self.values}
        return NpuSpec.build(values, self.sources, origin=self.origin, file=file, places=places)


def read_text(path: str | os.PathLike[str]) -> str:
    """Text of a UTF-8 file; raises :class:`SpecError` when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SpecError("does not exist", file=path) from None
    except UnicodeDecodeError:
        raise SpecError("is not UTF-8 text", file=path) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SpecError(f"cannot be read: {reason}", file=path) from None


def parse_toml(text: str, file: str | os.PathLike[str]) -> dict[str, Any]:
    """TOML with decimals kept exact; raises :class:`SpecError`."""
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise SpecError(f"is not valid TOML: {error}", file=file) from None


def overlay(table: Mapping[str, Any], base: Chip, *, file: str | os.PathLike[str], origin: str) -> Chip:
    """``base`` with the numbers of ``table`` put over it.

    A value is a plain number or a table ``{value, unit, source, confidence}`` (all but value optional; the unit must
    be the field's own). ``head_us`` may name only some environments. Raises :class:`SpecError` with file and key.
    """
    values, sources = dict(base.values), dict(base.sources)
    for key, entry in table.items():
        if key in _TEXT_KEYS:
            if not isinstance(entry, str):
                raise SpecError(f"is {shown(entry)}, but must be text", file=file, key=key)
            continue
        if key not in NUMBER_FIELDS:
            hint = suggestion(key, [*NUMBER_FIELDS, *_TEXT_KEYS])
            raise SpecError(f"is no field of a chip{hint}", file=file, key=key)
        plain = key == "head_us" and isinstance(entry, dict) and "value" not in entry
        if isinstance(entry, dict) and not plain:
            value, sources[key] = _from_table(key, entry, file, origin)
        else:
            value, sources[key] = entry, Source(origin, None, origin)
        if key == "head_us" and isinstance(value, dict):
            value = _merged_heads(base.values.get(key), value, file)
        values[key] = value
    return Chip(
        name=table.get("name", base.name),
        description=table.get("description", base.description),
        values=values,
        sources=sources,
        origin=origin,
    )


def _from_table(key: str, entry: dict[str, Any], file: str | os.PathLike[str], origin: str) -> tuple[object, Source]:
    for part, content in entry.items():
        if part not in _TABLE_KEYS:
            hint = suggestion(part, _TABLE_KEYS)
            raise SpecError(f"has an unknown part {part!r}{hint}", file=file, key=key)
        if part != "value" and not isinstance(content, str):
            raise SpecError(f"has {part} = {shown(content)}, but {part} must be text", file=file, key=key)
    if "value" not in entry:
        raise SpecError("has no value", file=file, key=key)
    if "unit" in entry and entry["unit"] != unit_of(key):
        raise SpecError(f'is given in "{entry["unit"]}", but must be in "{unit_of(key)}"', file=file, key=key)
    confidence = entry.get("confidence")
    if confidence is not None and confidence not in _CONFIDENCE:
        raise SpecError(f"has confidence {confidence!r}, but it must be one of H, M, L", file=file, key=key)
    return entry["value"], Source(entry.get("source", origin), confidence, origin)


def _merged_heads(base: object, heads: dict[str, Any], file: str | os.PathLike[str]) -> dict[str, Any]:
    for name in heads:
        if name not in ENVIRONMENTS:
            hint = suggestion(name, ENVIRONMENTS)
            known = ", ".join(ENVIRONMENTS)
            raise SpecError(f"has no environment {name!r}{hint}; known are {known}", file=file, key="head_us")
    return {**base, **heads} if isinstance(base, Mapping) else heads
