"""Small tables as pandas frames of text, written whole: what is written is what was meant (no integer becomes a float,
no empty cell a ``nan``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pandas as pd

from .cells import cells_of
from .columns import CASE_COLUMNS, PLAN_COLUMNS, RESULT_COLUMNS
from .files import write_files
from .read import CaseRow, read_cases

__all__ = [
    "CASE_COLUMNS",
    "PLAN_COLUMNS",
    "RESULT_COLUMNS",
    "CaseRow",
    "read_cases",
    "table_of",
    "write_tables",
]


def table_of(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """A frame of text; what a row lacks is an empty cell."""
    return pd.DataFrame([cells_of(row, columns) for row in rows], columns=list(columns), dtype=object)


def write_tables(tables: Mapping[Path, pd.DataFrame]) -> None:
    """Write all tables or none."""

    def writer(table: pd.DataFrame) -> Callable[[IO[str]], None]:
        return lambda stream: table.to_csv(stream, index=False, lineterminator="\n")

    write_files({path: writer(table) for path, table in tables.items()})
