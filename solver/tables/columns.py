"""Columns of the tables, in order, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args, get_origin

from ...models.case import BmmCase
from ...models.pins import PIN_FIELDS
from ...models.plan import BRANCHES, PLAN_FIELDS, Plan

__all__ = [
    "BOTH",
    "CASE_COLUMNS",
    "CONFLICT_COLUMNS",
    "PIN_COLUMNS",
    "PLAN_COLUMNS",
    "RESULT_COLUMNS",
    "TIMES",
    "column_types",
]

CASE_COLUMNS: Final[tuple[str, ...]] = tuple(BmmCase.model_fields)
#: One column for the batch of both operands.
BOTH: Final = "b"
PIN_COLUMNS: Final[dict[str, str]] = {f"pin_{field}": field for field in PIN_FIELDS}
TIMES: Final = ("latency_us", "latency_ticks")
PLAN_COLUMNS: Final[tuple[str, ...]] = ("case_id", "row", *PLAN_FIELDS, *TIMES)
RESULT_COLUMNS: Final[tuple[str, ...]] = (
    CASE_COLUMNS[0], "row", *CASE_COLUMNS[1:], "hardware", "rules", "environment", "pins", "winner", "verdict", *TIMES,
    "bound_us", "price_of_pins_us", "bottleneck", *(f"plan_{name}" for name in PLAN_FIELDS),
    *(f"status_{name}" for name in BRANCHES), "advice", "error",
)  # fmt: skip
CONFLICT_COLUMNS: Final[tuple[str, ...]] = tuple(f"conflict_{name}" for name in BRANCHES)

_TYPES: Final[dict[str, type]] = {"row": int, "legal": bool, "regret_pct": float, "roofline_ratio": float}


def column_types(columns: Sequence[str]) -> dict[str, type]:
    """int, float, bool or str for every column: what JSON Lines and Parquet store."""
    return {name: _column_type(name) for name in columns}


def _column_type(name: str) -> type:
    if name in _TYPES:
        return _TYPES[name]
    if name.endswith("_ticks"):
        return int
    if name.endswith("_us"):
        return float
    fields: dict[str, Any] = {**Plan.model_fields, **BmmCase.model_fields}
    field = fields.get(name.removeprefix("plan_"))
    if field is None or get_origin(field.annotation) is tuple:
        return str
    kinds = (field.annotation, *get_args(field.annotation))
    return next((kind for kind in (bool, int) if kind in kinds), str)
