"""Small tables as pandas frames of text, written whole: what is written is what was meant (no integer becomes a float,
no empty cell a ``nan``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pandas as pd
from pydantic import ValidationError

from ...hardware.errors import InputError
from ...models.case import explain_validation
from ...models.plan import PLAN_FIELDS, Plan
from .cells import cells_of
from .columns import CASE_COLUMNS, PLAN_COLUMNS, RESULT_COLUMNS
from .files import write_files
from .read import CaseRow, read_cases, read_records

__all__ = [
    "CASE_COLUMNS",
    "PLAN_COLUMNS",
    "RESULT_COLUMNS",
    "CaseRow",
    "plan_of_cells",
    "read_cases",
    "read_records",
    "table_of",
    "write_tables",
]


def plan_of_cells(cells: Mapping[str, str]) -> Plan:
    """The plan of a row of a plan table; empty cells are absent parameters.

    Raises:
        InputError: a cell is not possible; ``column`` names it.
    """
    try:
        return Plan.model_validate({name: cells[name] for name in PLAN_FIELDS if cells.get(name, "") != ""})
    except ValidationError as error:
        field, message = explain_validation(error)
        raise InputError(message, column=field) from None


def table_of(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """A frame of text; what a row lacks is an empty cell."""
    return pd.DataFrame([cells_of(row, columns) for row in rows], columns=list(columns), dtype=object)


def write_tables(tables: Mapping[Path, pd.DataFrame]) -> None:
    """Write all tables or none."""

    def writer(table: pd.DataFrame) -> Callable[[IO[str]], None]:
        return lambda stream: table.to_csv(stream, index=False, lineterminator="\n")

    write_files({path: writer(table) for path, table in tables.items()})
