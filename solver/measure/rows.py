"""Measured runs from a file of either kind: our own columns, or an export of msprof."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...hardware.errors import InputError
from ...hardware.measured import Measurement, read_measurements
from ...hardware.table_rows import check_header, read_text
from ...models.plan import PLAN_FIELDS
from ..tables.read import TextRows
from .msprof import is_export, read_export


def read_runs(path: Path, note: Callable[[str], None] | None = None) -> Sequence[Measurement]:
    """Measured runs of a CSV file; ``note`` is told which rows of an export were left out, and why.

    Raises:
        InputError: the file cannot be read or used; the message names row and column.
    """
    text = read_text(path)
    first = next(csv.reader([text.partition("\n")[0]]), [])
    if is_export(first):
        return read_export(text, str(path), note or (lambda _: None))
    return read_measurements(path, PLAN_FIELDS)


def read_plans(path: Path) -> dict[str, Mapping[str, str]]:
    """Plan cells by ``case_id`` of a plan table (``plans.csv``).

    Raises:
        InputError: the file cannot be read, has no ``case_id``, or names a case twice.
    """
    plans: dict[str, Mapping[str, str]] = {}
    rows = TextRows(path, "plan", "csv")
    check_header(rows.header or (), None, rows.file, 1)
    if "case_id" not in (rows.header or ()):
        raise InputError("column case_id is missing; it names the case or the operator", file=path, row=1)
    for row in rows:
        if row.error is not None:
            raise row.error
        name = row.texts["case_id"]
        if name in plans:
            raise InputError(f"{name!r} is there more than once", file=path, row=row.number, column="case_id")
        plans[name] = {key: row.texts[key] for key in PLAN_FIELDS if row.texts.get(key)}
    return plans


def with_plans(rows: Sequence[Measurement], plans: Mapping[str, Mapping[str, str]]) -> list[Measurement]:
    """The rows with the plan of their operator (``op``) put in."""
    return [
        row.model_copy(update={"plan": {**plans[row.op], **row.plan}, "tiling_known": True}) if row.op in plans else row
        for row in rows
    ]
