"""Tables on disk: cases in, results and plans out.

Files are read record by record, so that a message can name the line; a table is a pandas frame of text, so that what is
written is what was meant (no integer becomes a float, no empty cell a ``nan``).
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import pandas as pd
from pydantic import ValidationError

from ..hardware.errors import InputError
from ..models.case import BmmCase, explain_validation
from ..models.context import Context
from ..models.evaluation import evaluate_plan
from ..models.pins import PIN_FIELDS, Pin
from ..models.plan import BRANCHES, PLAN_FIELDS, Plan
from .cells import case_fields, did_you_mean, pin_of_cell
from .files import write_files
from .result import CaseResult, Status

if TYPE_CHECKING:
    from .batch import RowOutcome, Settings

__all__ = [
    "CASE_COLUMNS",
    "PLAN_COLUMNS",
    "RESULT_COLUMNS",
    "CaseRow",
    "plan_of_cells",
    "plan_table",
    "read_cases",
    "read_records",
    "result_table",
    "table_of",
    "write_tables",
]

CASE_COLUMNS: Final[tuple[str, ...]] = tuple(BmmCase.model_fields)
_REQUIRED: Final = ("m", "n", "k")
#: One column for the batch of both operands.
_BOTH: Final = "b"
_PIN_COLUMNS: Final[dict[str, str]] = {f"pin_{field}": field for field in PIN_FIELDS}
_TIMES: Final = ("latency_us", "latency_ticks")
PLAN_COLUMNS: Final[tuple[str, ...]] = ("case_id", "row", *PLAN_FIELDS, *_TIMES)
RESULT_COLUMNS: Final[tuple[str, ...]] = (
    CASE_COLUMNS[0], "row", *CASE_COLUMNS[1:], "hardware", "rules", "environment", "pins", "winner", "verdict", *_TIMES,
    "bound_us", "price_of_pins_us", "bottleneck", *(f"plan_{name}" for name in PLAN_FIELDS),
    *(f"status_{name}" for name in BRANCHES), "advice", "error",
)  # fmt: skip
CONFLICT_COLUMNS: Final[tuple[str, ...]] = tuple(f"conflict_{name}" for name in BRANCHES)


@dataclass(frozen=True)
class CaseRow:
    """One row of a case table. ``number`` is its line in the file, the header being line 1."""

    file: str
    number: int
    cells: Mapping[str, str]
    case: BmmCase | None
    error: InputError | None
    pins: tuple[Pin, ...] = ()


# -- reading
def read_cases(path: Path) -> list[CaseRow]:
    """Rows of a case table; a bad row carries its error.

    Raises:
        InputError: the file cannot be read, is empty, or its header is wrong.
    """
    file = str(path)
    records = read_records(path)
    if not records:
        raise InputError("the file is empty; the first line must name the columns", file=file)
    (_, first), *rest = records
    header = [name.strip() for name in first]
    _check_header(header, file)
    if not rest:
        raise InputError("there is no case below the header", file=file)
    return [_case_row(file, number, header, cells) for number, cells in rest]


def read_records(path: Path) -> list[tuple[int, list[str]]]:
    """Records of a CSV file that are not blank, each with its first line.

    Raises:
        InputError: the file cannot be read, or it is no CSV.
    """
    file = str(path)
    records = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            line = 1
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    records.append((line, cells))
                line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text ({error.reason} at byte {error.start})", file=file) from None
    except csv.Error as error:
        raise InputError(f"is no CSV ({error})", file=file, row=line) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot be read: {reason}", file=file) from None
    return records


def _check_header(header: Sequence[str], file: str) -> None:
    known = (*CASE_COLUMNS, _BOTH, *_PIN_COLUMNS)
    for name in header:
        if name not in known:
            if len(header) == 1 and any(separator in name for separator in ";\t|"):
                raise InputError("the columns are not separated by commas", file=file, row=1)
            allowed = f"allowed: {', '.join((*CASE_COLUMNS, _BOTH))}, and pin_ before a plan field"
            raise InputError(f"is not known{did_you_mean(name, known)}; {allowed}", file=file, row=1, column=repr(name))
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise InputError("is there more than once", file=file, row=1, column=twice[0])
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        columns = "column" if len(missing) == 1 else "columns"
        raise InputError(f"{columns} {', '.join(missing)} missing; needed are m, n and k", file=file, row=1)
    if _BOTH in header and {"batch_a", "batch_b"} & set(header):
        raise InputError("b stands for the batch of A and B; give b, or batch_a and batch_b", file=file, row=1)


def _case_row(file: str, number: int, header: Sequence[str], cells: Sequence[str]) -> CaseRow:
    texts = dict(zip(header, (cell.strip() for cell in cells), strict=False))
    name = texts.get("case_id") or f"row{number}"
    batch_column = {"batch_a": _BOTH, "batch_b": _BOTH} if _BOTH in header else {}
    if _BOTH in texts:
        texts["batch_a"] = texts["batch_b"] = texts.pop(_BOTH)
    texts["case_id"] = name
    try:
        if len(cells) != len(header):
            raise InputError(f"{len(cells)} cells, but the header has {len(header)}")
        case = BmmCase(**case_fields({key: texts[key] or None for key in texts if key not in _PIN_COLUMNS}))
        pins = _row_pins(texts)
    except ValidationError as error:
        field, message = explain_validation(error)
        column: str | None = None if field == "case" else field
    except InputError as error:
        column, message = error.column, error.message
    else:
        return CaseRow(file, number, texts, case, None, pins)
    column = batch_column.get(column, column) if column else None
    return CaseRow(file, number, texts, None, InputError(message, file=file, row=number, column=column))


def _row_pins(texts: Mapping[str, str]) -> tuple[Pin, ...]:
    """Pins of a row; an empty cell pins nothing.

    Raises:
        InputError: a cell is no pin; ``column`` names it.
    """
    pins = []
    for column, field in _PIN_COLUMNS.items():
        if text := texts.get(column):
            try:
                pins.append(pin_of_cell(field, text))
            except InputError as error:
                raise InputError(error.message, column=column) from None
    return tuple(pins)


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


# -- writing
def result_table(outcomes: Iterable[RowOutcome], settings: Settings) -> pd.DataFrame:
    """One row for each case, in the order of the input."""
    shared = {"hardware": settings.spec.name, "rules": settings.rules, "environment": settings.environment}
    columns = (*RESULT_COLUMNS, *CONFLICT_COLUMNS) if settings.options.explain else RESULT_COLUMNS
    return table_of(({**_case_cells(o.row), **shared, **_result_cells(o, settings)} for o in outcomes), columns)


def plan_table(outcomes: Iterable[RowOutcome]) -> pd.DataFrame:
    """The winner's plan of each case that has one."""
    return table_of(_plan_rows(outcomes), PLAN_COLUMNS)


def _plan_rows(outcomes: Iterable[RowOutcome]) -> Iterator[dict[str, Any]]:
    for outcome in outcomes:
        best = outcome.result.best if outcome.result is not None else None
        if best is not None and best.plan is not None:
            times = {name: getattr(best, name) for name in _TIMES}
            yield {**_identity(outcome.row), **best.plan.model_dump(), **times}


def _identity(row: CaseRow) -> dict[str, Any]:
    return {"case_id": row.cells["case_id"], "row": row.number}


def _case_cells(row: CaseRow) -> dict[str, Any]:
    """The case as it was understood; as it was written when it was not."""
    if row.case is None:
        return {**row.cells, **_identity(row)}
    cells = row.case.model_dump()
    for side in ("batch_a", "batch_b"):
        cells[side] = "x".join(map(str, cells[side]))
    return {**cells, **_identity(row), "out_dtype": row.case.output_dtype}


def _result_cells(outcome: RowOutcome, settings: Settings) -> dict[str, Any]:
    result = outcome.result
    if result is None:
        error = outcome.error
        column = f"column {error.column}: " if error is not None and error.column else ""
        return {"error": f"{column}{error.message}" if error is not None else ""}
    cells: dict[str, Any] = {"winner": result.winner, "verdict": result.verdict}
    cells["advice"] = _advice(result, settings)
    cells |= {"pins": "; ".join(result.pins), "price_of_pins_us": result.price_of_pins_us}
    cells |= {f"status_{name}": branch.status.value for name, branch in result.branches.items()}
    for name, branch in result.branches.items():
        cells[f"conflict_{name}"] = ";".join(member.rule for member in branch.conflict or [])
    if (best := result.best) is not None and best.plan is not None:
        cells |= {name: getattr(best, name) for name in (*_TIMES, "bound_us", "bottleneck")}
        cells |= {f"plan_{name}": value for name, value in best.plan.model_dump().items()}
    return cells


def _advice(result: CaseResult, settings: Settings) -> str:
    from .advice import advice

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


def table_of(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """A frame of text; what a row lacks is an empty cell."""
    return pd.DataFrame(
        [[_text(row.get(name)) for name in columns] for row in rows], columns=list(columns), dtype=object
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)


def write_tables(tables: Mapping[Path, pd.DataFrame]) -> None:
    """Write all tables or none."""

    def writer(table: pd.DataFrame) -> Callable[[IO[str]], None]:
        return lambda stream: table.to_csv(stream, index=False, lineterminator="\n")

    write_files({path: writer(table) for path, table in tables.items()})
