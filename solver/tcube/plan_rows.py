"""Rows of a plan table with their cases, for writing each as a file of the vendor's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...hardware.errors import InputError
from ...hardware.table_rows import TextRow, check_header
from ...models.case import BmmCase
from ...models.plan import PLAN_FIELDS, Plan
from ..tables.columns import CASE_COLUMNS, PLAN_COLUMNS
from ..tables.read import CaseRow, TextRows, read_cases
from ..tables.tilings import plan_of_cells

__all__ = ["PlanRow", "file_names", "read_plan_rows"]

_NAME_CHARACTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_LONGEST_NAME: Final = 100


@dataclass(frozen=True)
class PlanRow:
    """One row of a plan table: its line in the file (the header being 1), and case and plan, or what is wrong."""

    number: int
    case: BmmCase | None
    plan: Plan | None
    error: InputError | None = None

    @property
    def name(self) -> str:
        """Name of the case; ``row7`` without one."""
        return (self.case.case_id if self.case is not None else "") or f"row{self.number}"


def read_plan_rows(cases: Path, plans: Path) -> list[PlanRow]:
    """Rows of a plan table as ``recommend`` writes it, each with its case; a bad row carries its error.

    A row belongs to the line ``row`` of the case table, and without that column to the only case with its ``case_id``.

    Raises:
        InputError: a file cannot be read or its header is wrong.
    """
    case_rows = read_cases(cases)
    file = str(plans)
    table = TextRows(plans, "plan", "csv")
    _check_header(table.header or (), file)
    return list(_rows(file, list(table), case_rows))


def _check_header(header: Sequence[str], file: str) -> None:
    known = (*PLAN_COLUMNS, *(name for name in CASE_COLUMNS if name not in PLAN_COLUMNS))
    for error in check_header(header, known, file, 1, said="is no column of a plan table"):
        raise error
    if "branch" not in header:
        raise InputError("is missing", file=file, row=1, column="branch")
    if not {"row", "case_id"} & set(header):
        raise InputError("column row or case_id is missing; it names the case", file=file, row=1)


def _rows(file: str, rows: Iterable[TextRow], case_rows: Sequence[CaseRow]) -> Iterator[PlanRow]:
    for row in rows:
        number, texts = row.number, row.texts
        try:
            if row.error is not None:
                raise row.error
            case_row = _case_row(texts, case_rows)
            if case_row.case is None:
                raise InputError(f"its case is wrong: {case_row.error}")
            plan = plan_of_cells({name: text for name, text in texts.items() if name in PLAN_FIELDS})
        except InputError as error:
            placed = InputError(error.message, file=file, row=number, column=error.column)
            yield PlanRow(number, None, None, placed)
        else:
            yield PlanRow(number, case_row.case, plan)


def _case_row(texts: Mapping[str, str], case_rows: Sequence[CaseRow]) -> CaseRow:
    """The row of the case table that a plan is for."""
    name, line = texts.get("case_id", ""), texts.get("row", "")
    if line:
        found = [row for row in case_rows if str(row.number) == line]
        if not found:
            raise InputError(f"{line[:60]!r} is no row of a case", column="row")
        if name and name != found[0].cells.get("case_id"):
            known = found[0].cells.get("case_id")
            raise InputError(f"is {name[:60]!r}, but row {line} of the cases is {known!r}", column="case_id")
        return found[0]
    found = [row for row in case_rows if name and row.cells.get("case_id") == name]
    if len(found) != 1:
        problem = "is there more than once in the cases; give column row" if found else "is no case_id of the cases"
        raise InputError(f"{name[:60]!r} {problem}", column="case_id")
    return found[0]


def file_names(rows: Sequence[PlanRow], suffix: str) -> list[str]:
    """A file name for each row: the case's name with other than letters, digits, ``._-`` replaced, each name once."""
    stems = [_plain(row.name) for row in rows]
    counts = Counter(stem.lower() for stem in stems)
    taken = {stem.lower() for stem in stems if counts[stem.lower()] == 1}
    names = []
    for row, stem in zip(rows, stems, strict=True):
        if counts[stem.lower()] > 1:
            stem = f"{stem}_row{row.number}"
            while stem.lower() in taken:
                stem += "_"
            taken.add(stem.lower())
        names.append(stem + suffix)
    return names


def _plain(name: str) -> str:
    text = "".join(letter if letter in _NAME_CHARACTERS else "_" for letter in name)[:_LONGEST_NAME]
    return f"_{text}" if text.startswith(".") else text
