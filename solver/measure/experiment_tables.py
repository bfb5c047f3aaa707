"""Proposed runs as tables: a plan table with reasons, and a table of measurements to be filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ...models.case import BmmCase
from ...models.plan import PLAN_FIELDS
from ..tables.frames import PLAN_COLUMNS, table_of
from .experiments import Experiment


def experiment_rows(experiments: Sequence[Experiment], lines: Mapping[BmmCase, int]) -> list[dict[str, Any]]:
    """Rows of a plan table, ``latency_us`` being the model's; ``lines`` gives the line of each case in its file."""
    return [
        {
            "case_id": one.candidate.case.case_id,
            "row": lines.get(one.candidate.case),
            **one.candidate.plan.model_dump(),
            "latency_us": round(one.candidate.time_us, 4),
            "reason": one.reason,
        }
        for one in experiments
    ]


def experiment_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows with the columns of ``plans.csv`` and ``reason``."""
    return table_of(rows, (*PLAN_COLUMNS, "reason"))


def template_table(experiments: Sequence[Experiment]) -> pd.DataFrame:
    """The runs as a table of measurements whose ``latency_us`` and counters are still empty."""
    case_columns = [
        "case_id", "batch_a", "batch_b", "m", "n", "k", "dtype", "out_dtype", "trans_a", "trans_b", "bias", "format_b"
    ]  # fmt: skip
    rows = []
    for one in experiments:
        case = one.candidate.case.model_dump()
        for side in ("batch_a", "batch_b"):
            case[side] = "x".join(map(str, case[side]))
        rows.append({**case, **one.candidate.plan.model_dump(), "note": one.reason})
    counters = ["mac_us", "mte1_us", "mte2_us", "fixpipe_us"]
    return table_of(rows, (*case_columns, *PLAN_FIELDS, "latency_us", *counters, "note"))
