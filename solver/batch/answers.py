"""What is written about a row: its cells in the result table and in the plan table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from ...hardware.errors import InputError
from ...models.case import BmmCase
from ...models.context import Context
from ...models.evaluation import evaluate_plan
from ..library import stored_text
from ..result import CaseResult, Status
from ..settings import Settings
from ..tables.cells import cells_of
from ..tables.columns import CONFLICT_COLUMNS, PLAN_COLUMNS, RESULT_COLUMNS, TIMES
from ..tables.read import CaseRow

__all__ = [
    "CRASHED",
    "ENTRY_COLUMNS",
    "RowAnswer",
    "answer_of",
    "entry_cells",
    "refused",
    "result_columns",
]

#: Verdict of a row whose worker died, beside those of a result (proven, infeasible, open) and ``bad``.
CRASHED: Final = "crashed"
#: Columns of an exported library: what a result has, but for what belongs to a row of a run.
ENTRY_COLUMNS: Final = (
    "key",
    *(name for name in (*RESULT_COLUMNS, *CONFLICT_COLUMNS) if name not in ("row", "advice", "error")),
)
#: Columns that name the row and not what was found: they come first in both tables.
_IDENTITY: Final = ("case_id", "row")


@dataclass(frozen=True)
class RowAnswer:
    """A row's texts by column; ``plan`` is its row of the plan table, if there is one.

    ``verdict`` is proven, infeasible, open, bad or crashed; the last two have an ``error``. ``document`` is the whole
    result as JSON, for a library.
    """

    verdict: str
    result: tuple[str, ...]
    plan: tuple[str, ...] | None = None
    error: InputError | None = None
    document: str | None = None

    def renamed(self, row: CaseRow) -> RowAnswer:
        """The answer for another row of the same case."""
        name = (row.cells["case_id"], str(row.number))
        plan = None if self.plan is None else (*name, *self.plan[len(_IDENTITY) :])
        return replace(self, result=(*name, *self.result[len(_IDENTITY) :]), plan=plan, document=None)


def result_columns(settings: Settings) -> tuple[str, ...]:
    """Columns of the result table."""
    return (*RESULT_COLUMNS, *CONFLICT_COLUMNS) if settings.explain else RESULT_COLUMNS


def answer_of(row: CaseRow, result: CaseResult, settings: Settings, *, keep: bool = False) -> RowAnswer:
    """The answer of a solved row; ``keep`` adds the document."""
    cells = {**_case_cells(row), **_shared_cells(settings), **_result_cells(result)}
    cells["advice"] = _advice(result, settings)
    plan = None
    if (best := result.best) is not None and best.plan is not None:
        times = {name: getattr(best, name) for name in TIMES}
        plan = cells_of({**_identity(row), **best.plan.model_dump(), **times}, PLAN_COLUMNS)
    document = stored_text(result) if keep else None
    return RowAnswer(result.verdict, cells_of(cells, result_columns(settings)), plan, None, document)


def entry_cells(key: str, result: CaseResult) -> tuple[str, ...]:
    """A library entry in the order of :data:`ENTRY_COLUMNS`."""
    settings = {"hardware": result.hardware, "rules": result.rules, "environment": result.environment}
    return cells_of({"key": key, **_fields(result.case), **settings, **_result_cells(result)}, ENTRY_COLUMNS)


def refused(
    row: CaseRow, message: str, settings: Settings, column: str | None = None, verdict: str = "bad"
) -> RowAnswer:
    """The answer of a row that has no result."""
    place = f"column {column}: " if column else ""
    cells = {**_case_cells(row), **_shared_cells(settings), "error": f"{place}{message}"}
    error = InputError(message, file=row.file, row=row.number, column=column)
    return RowAnswer(verdict, cells_of(cells, result_columns(settings)), None, error)


def _identity(row: CaseRow) -> dict[str, Any]:
    return {"case_id": row.cells["case_id"], "row": row.number}


def _shared_cells(settings: Settings) -> dict[str, Any]:
    return {"hardware": settings.spec.name, "rules": settings.rules, "environment": settings.environment}


def _case_cells(row: CaseRow) -> dict[str, Any]:
    """The case as it was understood; as it was written when it was not."""
    return {**(row.cells if row.case is None else _fields(row.case)), **_identity(row)}


def _fields(case: BmmCase) -> dict[str, Any]:
    cells = case.model_dump()
    for side in ("batch_a", "batch_b"):
        cells[side] = "x".join(map(str, cells[side]))
    return {**cells, "out_dtype": case.output_dtype}


def _result_cells(result: CaseResult) -> dict[str, Any]:
    cells: dict[str, Any] = {"winner": result.winner, "verdict": result.verdict}
    cells |= {"pins": "; ".join(result.pins), "price_of_pins_us": result.price_of_pins_us}
    cells |= {f"status_{name}": branch.status.value for name, branch in result.branches.items()}
    for name, branch in result.branches.items():
        cells[f"conflict_{name}"] = ";".join(member.rule for member in branch.conflict or [])
    if (best := result.best) is not None and best.plan is not None:
        cells |= {name: getattr(best, name) for name in (*TIMES, "bound_us", "bottleneck")}
        cells |= {f"plan_{name}": value for name, value in best.plan.model_dump().items()}
    return cells


def _advice(result: CaseResult, settings: Settings) -> str:
    from ..review.advice import advice

    best = result.best
    if best is None or best.plan is None:
        decided = result.verdict == "infeasible"
        return "every branch is proven infeasible" if decided else "nothing found in the time limit"
    proven = ""
    if best.status is Status.OPTIMAL:
        proven = f"no tiling of {result.winner} is faster{' with these pins' if result.pins else ''}"
    ctx = Context.of(result.case, settings.spec, settings.rules, settings.environment)
    text = advice(ctx, evaluate_plan(ctx, best.plan), proven=proven)
    return text if result.verdict == "proven" else f"{text}; not proven optimal in the time limit"
