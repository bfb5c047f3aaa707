"""The pins file of ``recommend``: TOML with pins for all rows and for single ones.

::

    [pins]              # every row
    base_m = 128
    base_k = "64..256"

    [case."decode_q"]   # the row of that case_id
    merge_b0 = ">=4"
    l1_form = "b"

For one field the narrower place counts: a cell of the row before its ``case`` table before ``pins``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...hardware.errors import InputError, did_you_mean
from ...models.pins import Pin
from .cells import pin_of_cell
from .read import CaseRow

__all__ = ["PinsFile", "check_names", "pinned_rows", "read_pins"]

_TABLES = ("pins", "case")


@dataclass(frozen=True)
class PinsFile:
    """Pins of all rows, and of single ones by ``case_id``."""

    file: str
    all_rows: tuple[Pin, ...]
    of_case: Mapping[str, tuple[Pin, ...]]


def read_pins(path: Path) -> PinsFile:
    """Read a pins file.

    Raises:
        InputError: the file cannot be read, or a table, field or value in it is not possible.
    """
    file = str(path)
    try:
        data = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text ({error.reason} at byte {error.start})", file=file) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"is no TOML ({error})", file=file) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot be read: {reason}", file=file) from None
    for name in data:
        if name not in _TABLES:
            hint = did_you_mean(name, _TABLES)
            raise InputError(f'[{name}] is not known{hint}; allowed: [pins] and [case."<case_id>"]', file=file)
    cases = data.get("case", {})
    if not isinstance(cases, dict):
        raise InputError('case must be tables [case."<case_id>"]', file=file)
    return PinsFile(
        file,
        _pins(file, "pins", data.get("pins", {})),
        {name: _pins(file, f'case."{name}"', table) for name, table in cases.items()},
    )


def _pins(file: str, name: str, table: Any) -> tuple[Pin, ...]:
    if not isinstance(table, dict):
        raise InputError(f"{name} must be a table of field = value", file=file)
    pins = []
    for field, value in table.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise InputError(
                f'[{name}] {field}: give a number or a text like "64..256", ">=4" or another field', file=file
            )
        try:
            pins.append(pin_of_cell(field, str(value)))
        except InputError as error:
            raise InputError(f"[{name}] {error.message}", file=file) from None
    return tuple(pins)


def check_names(pins: PinsFile, names: Callable[[], Iterable[str]]) -> None:
    """See that every pinned case is among the cases; ``names`` gives their names, each time anew.

    Raises:
        InputError: the file pins a case that no row has.
    """
    missing = set(pins.of_case)
    if missing:
        missing.difference_update(names())
    for name in pins.of_case:
        if name in missing:
            hint = did_you_mean(name, names())
            raise InputError(f'[case."{name}"]: no row has this case_id{hint}', file=pins.file)


def pinned_rows(rows: Iterable[CaseRow], pins: PinsFile) -> Iterator[CaseRow]:
    """The rows with the pins of the file added."""
    for row in rows:
        yield replace(row, pins=_merged(pins.all_rows, pins.of_case.get(row.cells["case_id"], ()), row.pins))


def _merged(*groups: tuple[Pin, ...]) -> tuple[Pin, ...]:
    """Pins of all groups; for one field the last group counts."""
    result: dict[str, Pin] = {}
    for group in groups:
        result |= {pin.field: pin for pin in group}
    return tuple(result.values())
