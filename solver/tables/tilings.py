"""Tables of tilings to be judged: columns are plan fields, an empty cell leaves its field open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ...hardware.errors import InputError, did_you_mean
from ...hardware.table_rows import TextRow, check_header
from ...models.branches import BRANCH_OF
from ...models.case import explain_validation
from ...models.fields import FIELDS
from ...models.plan import PLAN_FIELDS, Plan
from .columns import CASE_COLUMNS, PLAN_COLUMNS
from .read import CaseRow, TextRows

__all__ = ["EVALUATE_COLUMNS", "LEFT_OUT", "CaseIndex", "plan_fields", "plan_of_cells", "read_table"]

#: Fields that may be 0.
_ZERO: Final = frozenset(field.name for field in FIELDS.values() if field.least == 0)
_MOST: Final = 2**40


#: What a column is called that is not known, when the others are used without it.
LEFT_OUT: Final = "is not known and left out"


def read_table(path: Path, known: Sequence[str] | None, what: str) -> tuple[list[TextRow], list[InputError]]:
    """Rows of a CSV table, whatever its name ends in, and what is wrong with its header.

    Unknown columns are reported and can be left out; ``known`` = None takes every column.

    Raises:
        InputError: the file cannot be read, is empty, or names a column twice.
    """
    rows = TextRows(path, what, "csv")
    errors = check_header(rows.header or (), known, rows.file, 1, said=LEFT_OUT)
    return list(rows), errors


def plan_of_cells(cells: Mapping[str, Any]) -> Plan:
    """The plan of a row of a plan table; empty cells are absent parameters.

    Raises:
        InputError: a cell is not possible; ``column`` names it.
    """
    try:
        return Plan.model_validate({name: cells[name] for name in PLAN_FIELDS if cells.get(name, "") != ""})
    except ValidationError as error:
        field, message = explain_validation(error)
        raise InputError(message, column=field) from None


def plan_fields(texts: Mapping[str, Any]) -> dict[str, Any]:
    """The plan fields that a row gives; empty cells are open.

    Raises:
        InputError: a cell is not possible; ``column`` names it.
    """
    given = {name: texts[name] for name in PLAN_FIELDS if texts.get(name, "") not in ("", None)}
    plan = plan_of_cells({"branch": "asw_basic", **given})
    fields = {name: getattr(plan, name) for name in PLAN_FIELDS if name in given}
    empty_ok = "branch" not in fields or bool(BRANCH_OF[fields["branch"]].facts.zero)
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
