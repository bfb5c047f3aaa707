"""Plans as text in the formats of ``tileproof export``."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Final

from ...hardware import NpuSpec
from ...models.case import BmmCase
from ...models.plan import PLAN_FIELDS, Plan
from ..tables.frames import CASE_COLUMNS
from .convert import plan_to_tcube
from .plan_rows import PlanRow
from .text import tcube_c, tcube_json

__all__ = ["EXPORT_COLUMNS", "FORMATS", "plan_text", "plans_text"]

#: Format -> ending of its files.
FORMATS: Final[dict[str, str]] = {"tcubetiling-json": ".json", "tcubetiling-c": ".c", "csv": ".csv"}
EXPORT_COLUMNS: Final[tuple[str, ...]] = (*CASE_COLUMNS, *PLAN_FIELDS)


def plan_text(case: BmmCase, plan: Plan, spec: NpuSpec, style: str) -> str:
    """One plan as a text of its own.

    Raises:
        InputError: TCubeTiling cannot express the plan.
    """
    if style == "csv":
        return _csv([(case, plan)])
    tiling = plan_to_tcube(case, plan, spec)
    return tcube_json(tiling) if style == "tcubetiling-json" else tcube_c(tiling)


def plans_text(rows: Sequence[PlanRow], spec: NpuSpec, style: str) -> str:
    """Several plans as one text: a JSON list, initialisers one after another, or one table. All rows must be good."""
    pairs = [(row.case, row.plan) for row in rows if row.case is not None and row.plan is not None]
    if style == "csv":
        return _csv(pairs)
    tilings = [plan_to_tcube(case, plan, spec) for case, plan in pairs]
    if style == "tcubetiling-json":
        return tcube_json(tilings)
    names = [f"tiling_{row.number}_{re.sub('[^0-9A-Za-z]+', '_', row.name)[:60]}".rstrip("_") for row in rows]
    return "\n".join(tcube_c(tiling, name) for tiling, name in zip(tilings, names, strict=True))


def _csv(pairs: Sequence[tuple[BmmCase, Plan]]) -> str:
    """Columns of the case, then of the plan; absent parameters are empty cells."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(EXPORT_COLUMNS)
    for case, plan in pairs:
        cells = {**case.model_dump(), **plan.model_dump()}
        cells |= {side: "x".join(map(str, cells[side])) for side in ("batch_a", "batch_b")}
        writer.writerow([_cell(cells[name]) for name in EXPORT_COLUMNS])
    return stream.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    return int(value) if isinstance(value, bool) else value
