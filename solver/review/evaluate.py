"""Tilings joined to their cases and judged, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import pandas as pd

from ...hardware.errors import InputError
from ...hardware.table_rows import read_text
from ...models.latency import Stages
from ...models.plan import PLAN_FIELDS
from ..settings import Settings
from ..tables.frames import read_cases, table_of
from ..tables.tilings import EVALUATE_COLUMNS, CaseIndex, plan_fields, read_table
from ..tcube import read_tcube_items, tcube_to_fields
from ..tcube.text import TCubeItem
from .gap import LEVELS
from .tilings import JudgedTiling, TilingJudge, TilingRow, error_cell

__all__ = ["EvaluateSummary", "evaluate_rows", "evaluation_table", "read_tilings", "to_json"]

STAGES: Final = tuple(stage.name for stage in fields(Stages) if stage.name != "total")
EVAL_COLUMNS: Final[tuple[str, ...]] = (
    "case_id", "row", "plan_row", *PLAN_FIELDS, "feasible", "violations", "chosen", "latency_us", "latency_ticks",
    "bottleneck", *(f"{name}_us" for name in STAGES), "advice", "error",
)  # fmt: skip
GAP_COLUMNS: Final = tuple(f"{name}_{what}" for name in LEVELS for what in ("us", "ratio"))


@dataclass(frozen=True)
class EvaluateSummary:
    """How many rows ended how."""

    rows: int
    feasible: int
    infeasible: int
    open: int
    bad: int

    @classmethod
    def of(cls, outcomes: Iterable[JudgedTiling], bad: int) -> EvaluateSummary:
        """Count the outcomes; ``bad`` lines were not even rows."""
        ends = Counter(
            "bad"
            if o.judgement is None
            else "feasible"
            if o.judgement.feasible
            else "open"
            if o.judgement.open
            else "not"
            for o in outcomes
        )
        return cls(ends.total(), ends["feasible"], ends["not"], ends["open"], ends["bad"] + bad)

    @property
    def text(self) -> str:
        """The closing line."""
        plans = "1 plan" if self.rows == 1 else f"{self.rows} plans"
        open_ = f", {self.open} open" if self.open else ""
        return f"{plans}: {self.feasible} feasible, {self.infeasible} infeasible{open_}, {self.bad} bad"


# -- reading
def read_tilings(cases: Path, plans: Path, form: str) -> tuple[list[TilingRow], list[InputError]]:
    """Tilings of a plan table (``csv``) or a TCubeTiling text, each joined to its case; and what else is wrong.

    Raises:
        InputError: a file cannot be read as a whole.
    """
    case_rows = read_cases(cases)
    index = CaseIndex(case_rows)
    errors = [row.error for row in case_rows if row.error is not None]
    if form == "csv":
        texts, wrong = read_table(plans, EVALUATE_COLUMNS, "plan")
        rows = [_csv_row(str(plans), row.number, row.texts, row.error, index) for row in texts]
        return rows, [*errors, *wrong]
    return [_struct_row(str(plans), item, index) for item in read_tcube_items(read_text(plans), file=plans)], errors


def _csv_row(file: str, number: int, texts: dict[str, str], error: InputError | None, index: CaseIndex) -> TilingRow:
    name = texts.get("case_id", "")
    if error is not None:
        return TilingRow(file, number, name, error=error)
    try:
        case_row = index.find(name, texts.get("row", ""))
        given = plan_fields(texts)
        line = case_row.number
        return TilingRow(file, number, case_row.cells["case_id"], case_row.case, given=given, case_line=line)
    except InputError as wrong:
        return TilingRow(file, number, name, error=wrong.at(file, number))


def _struct_row(file: str, item: TCubeItem, index: CaseIndex) -> TilingRow:
    tiling = item.tiling
    if tiling is None:
        return TilingRow(file, item.line, item.name, error=item.error)
    extra = tiling.tileproof
    name = (extra.case.case_id if extra is not None else "") or item.name
    try:
        case_row = index.rows[0] if len(index.rows) == 1 and index.rows[0].case else index.find(name)
        assert case_row.case is not None
        _, fields_ = tcube_to_fields(tiling, case_row.case)
        given, line = plan_fields(fields_), case_row.number
        return TilingRow(file, item.line, name, case_row.case, given=given, case_line=line, struct=tiling)
    except InputError as wrong:
        return TilingRow(file, item.line, name, error=wrong.at(file, item.line))


# -- judging
def evaluate_rows(rows: Iterable[TilingRow], settings: Settings, *, gap: bool = False) -> Iterator[JudgedTiling]:
    """Judge the rows in order."""
    return map(TilingJudge(settings, gap=gap).judge, rows)


# -- writing
def evaluation_table(outcomes: Sequence[JudgedTiling], *, gap: bool) -> pd.DataFrame:
    """One row for each tiling, in the order of the input."""
    return table_of((_cells(outcome) for outcome in outcomes), (*EVAL_COLUMNS, *(GAP_COLUMNS if gap else ())))


def _cells(outcome: JudgedTiling) -> dict[str, Any]:
    document = to_json(outcome)
    plan = document.pop("plan", None) or {}
    stages = document.pop("stages_us", None) or {}
    ladder = document.pop("gap", None) or {}
    cells = {**document, **plan, **{f"{name}_us": us for name, us in stages.items()}}
    for name in LEVELS:
        for what, value in ladder.get(name, {}).items():
            cells[f"{name}_{what}"] = value
    for name in ("violations", "chosen"):
        cells[name] = "; ".join(document.get(name) or ())
    return cells


def to_json(outcome: JudgedTiling) -> dict[str, Any]:
    """A row as plain data."""
    row, verdict, ctx = outcome.row, outcome.judgement, outcome.ctx
    result: dict[str, Any] = {"case_id": row.name, "row": row.case_line, "plan_row": row.number}
    if verdict is None or ctx is None:
        return {**result, "error": error_cell(outcome)}
    evaluation = verdict.evaluation
    result |= {
        "feasible": verdict.feasible,
        "violations": list(verdict.violations),
        "chosen": list(verdict.chosen),
        "plan": row.given,
        "advice": outcome.advice,
    }
    if evaluation is not None:
        result |= {
            "plan": evaluation.plan.model_dump(),
            "latency_us": ctx.us(evaluation.ticks),
            "latency_ticks": evaluation.ticks,
            "bottleneck": evaluation.bottleneck,
            "stages_us": {name: ctx.us(evaluation.stages.get(name, 0)) for name in STAGES},
        }
    if outcome.gap is not None and evaluation is not None:
        result["gap"] = outcome.gap.to_json()
    return result
