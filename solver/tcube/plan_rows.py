"""Rows of a plan table with their cases, for writing each as a file of the vendor's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...hardware.errors import InputError, did_you_mean
from ...models.case import BmmCase
from ...models.plan import PLAN_FIELDS, Plan
from ..tables.frames import CASE_COLUMNS, PLAN_COLUMNS, CaseRow, plan_of_cells, read_cases, read_records

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
    records = read_records(plans)
    if not records:
        raise InputError("the file is empty; the first line must name the columns", file=file)
    (_, first), *rest = records
    header = [name.strip() for name in first]
    _check_header(header, file)
    if not rest:
        raise InputError("there is no plan below the header", file=file)
    return list(_rows(file, header, rest, case_rows))


def _check_header(header: Sequence[str], file: str) -> None:
    for name in header:
        if name not in PLAN_COLUMNS and name not in CASE_COLUMNS:
            hint = did_you_mean(name, PLAN_COLUMNS)
            raise InputError(f"is no column of a plan table{hint}", file=file, row=1, column=repr(name))
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise InputError("is there more than once", file=file, row=1, column=twice[0])
    if "branch" not in header:
        raise InputError("is missing", file=file, row=1, column="branch")
    if not {"row", "case_id"} & set(header):
        raise InputError("column row or case_id is missing; it names the case", file=file, row=1)


def _rows(
    file: str, header: Sequence[str], records: Iterable[tuple[int, list[str]]], case_rows: Sequence[CaseRow]
) -> Iterator[PlanRow]:
    for number, cells in records:
        try:
            if len(cells) != len(header):
                raise InputError(f"{len(cells)} cells, but the header has {len(header)}")
            texts = dict(zip(header, (cell.strip() for cell in cells), strict=True))
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
