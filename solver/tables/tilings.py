"""Tables of tilings to be judged: columns are plan fields, an empty cell leaves its field open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ...hardware.errors import InputError, did_you_mean
from ...models.case import explain_validation
from ...models.plan import PLAN_FIELDS, Plan
from .frames import CASE_COLUMNS, PLAN_COLUMNS, CaseRow, read_records

__all__ = ["CaseIndex", "TextTable", "check_header", "plan_fields", "read_table"]

#: Fields that may be 0.
_ZERO: Final = ("fixpipe_unitflag", "iterate_order", "workspace_bytes")
_MOST: Final = 2**40


@dataclass
class TextTable:
    """Rows of a CSV file as text: (line, cells by column, what is wrong), and what is wrong with its header."""

    file: str
    header: list[str]
    rows: list[tuple[int, dict[str, str], InputError | None]] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)


def read_table(path: Path, known: Sequence[str] | None, what: str) -> TextTable:
    """Read a table. Unknown columns are reported and left out; ``known`` = None takes every column.

    Raises:
        InputError: the file cannot be read, is empty, or names a column twice.
    """
    file = str(path)
    records = read_records(path)
    if not records:
        raise InputError("the file is empty; the first line must name the columns", file=file)
    (_, first), *rest = records
    table = TextTable(file, [name.strip() for name in first])
    table.errors = check_header(file, table.header, known)
    if not rest:
        raise InputError(f"there is no {what} below the header", file=file)
    for number, cells in rest:
        error = None
        if len(cells) != len(table.header):
            error = InputError(f"{len(cells)} cells, but the header has {len(table.header)}", file=file, row=number)
        texts = dict(zip(table.header, (cell.strip() for cell in cells), strict=False))
        table.rows.append((number, texts, error))
    return table


def check_header(file: str, header: Sequence[str], known: Sequence[str] | None) -> list[InputError]:
    """What is wrong with single columns of a header: unknown ones are left out; ``known`` = None takes every column.

    Raises:
        InputError: the header is no list of columns, or names a column twice.
    """
    if len(header) == 1 and any(separator in header[0] for separator in ";\t|"):
        raise InputError("the columns are not separated by commas", file=file, row=1)
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise InputError("is there more than once", file=file, row=1, column=repr(twice[0]))
    errors = []
    for name in header if known is not None else ():
        if name not in (known or ()):
            hint = did_you_mean(name, known or ())
            errors.append(InputError(f"is not known and left out{hint}", file=file, row=1, column=repr(name)))
    return errors


def plan_fields(texts: Mapping[str, Any]) -> dict[str, Any]:
    """The plan fields that a row gives; empty cells are open.

    Raises:
        InputError: a cell is not possible; ``column`` names it.
    """
    given = {name: texts[name] for name in PLAN_FIELDS if texts.get(name, "") not in ("", None)}
    try:
        plan = Plan.model_validate({"branch": "asw_basic", **given})
    except ValidationError as error:
        name, message = explain_validation(error)
        raise InputError(message, column=name) from None
    fields = {name: getattr(plan, name) for name in PLAN_FIELDS if name in given}
    empty_ok = fields.get("branch") in (None, "special")
    for name, value in fields.items():
        least = 0 if empty_ok or name in _ZERO else 1
        if isinstance(value, int) and not least <= value <= _MOST:
            raise InputError(f"{value} is out of range; allowed is {least} to 2^40", column=name)
    return fields


class CaseIndex:
    """Cases by line and by name."""

    def __init__(self, rows: Sequence[CaseRow]) -> None:
        self.rows = rows
        self._by_line = {str(row.number): row for row in rows}
        self._by_name: dict[str, list[CaseRow]] = {}
        for row in rows:
            self._by_name.setdefault(row.cells.get("case_id", ""), []).append(row)

    def find(self, name: str, line: str = "") -> CaseRow:
        """The case that a tiling is for: line ``line`` of the case table, else the only case called ``name``.

        Raises:
            InputError: there is no such case, or more than one.
        """
        if line:
            row = self._by_line.get(line)
            if row is None:
                raise InputError(f"{line[:60]!r} is no line of a case", column="row")
            if name and name != row.cells.get("case_id"):
                known = row.cells.get("case_id")
                raise InputError(f"is {name[:60]!r}, but line {line} of the cases is {known!r}", column="case_id")
        else:
            found = self._by_name.get(name, []) if name else []
            if not found and not name and len(self.rows) == 1:
                found = list(self.rows)
            if len(found) != 1:
                if found:
                    raise InputError(
                        f"{name[:60]!r} is the name of {len(found)} cases; give column row", column="case_id"
                    )
                hint = did_you_mean(name, self._by_name) if name else ""
                raise InputError(f"{name[:60]!r} is the name of no case{hint}", column="case_id")
            row = found[0]
        if row.case is None:
            raise InputError(f"its case cannot be used: {row.error}")
        return row


#: Columns of a table of tilings that ``evaluate`` reads; those of the case are taken from the case table.
EVALUATE_COLUMNS: Final = (*PLAN_COLUMNS, *(name for name in CASE_COLUMNS if name not in PLAN_COLUMNS), "b")
