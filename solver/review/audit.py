"""Audit of tilings: legal or not, how far from the optimum, and what to change first.

A row is a tiling with its case in the same file: plan columns and case columns, or the vendor's field names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ...hardware import NpuSpec
from ...hardware.errors import InputError, did_you_mean
from ...hardware.table_rows import TextRow, check_header
from ...models.case import BmmCase, explain_validation
from ...models.context import Context
from ...models.plan import Plan
from ..describe import deciding_parameters
from ..settings import Settings
from ..tables.cells import case_fields, cells_of
from ..tables.columns import CASE_COLUMNS, PLAN_COLUMNS
from ..tables.read import TextRows
from ..tables.tilings import LEFT_OUT, plan_fields
from ..tables.vendor_rows import is_vendor_header, read_vendor_row
from .advice import advice
from .gap import Gap, gap_of
from .judge import Judgement, judge
from .neighbours import Change, best_change

__all__ = [
    "MARKDOWN_HEAD",
    "OUT_COLUMNS",
    "AuditReader",
    "AuditRow",
    "Audited",
    "Auditor",
    "audit_cells",
    "audit_rows",
    "markdown",
    "markdown_row",
    "read_audit",
    "to_json",
]

#: Fields of a plan that are open unless the row gives them; single changes derive them anew.
_DERIVED: Final = ("swizzle_w", "single_core_m", "single_core_n")
#: Cases whose solved optima are kept.
_CONTEXTS: Final = 256
_AUDIT_COLUMNS: Final = (*CASE_COLUMNS, "b", *(name for name in PLAN_COLUMNS if name not in CASE_COLUMNS))
OUT_COLUMNS: Final[tuple[str, ...]] = (
    "row", "case_id", "legal", "violations", "branch", "chosen", "latency_us", "latency_ticks", "branch_optimum_us",
    "optimum_us", "regret_pct", "roofline_us", "roofline_ratio", "bottleneck", "first_change", "advice", "error",
)  # fmt: skip
MARKDOWN_HEAD: Final = (
    "| row | case | strategy | tiling | latency us | branch optimum us | optimum us | regret % | x roofline | "
    "first change |",
    "|---|---|---|---|---:|---:|---:|---:|---:|---|",
)


@dataclass(frozen=True)
class AuditRow:
    """One tiling: its line, its case, its chip, the plan fields it gives; or what is wrong with it.

    ``strategy`` is the vendor's name of the branch.
    """

    file: str
    number: int
    name: str
    case: BmmCase | None = None
    spec: NpuSpec | None = None
    given: dict[str, Any] | None = None
    error: InputError | None = None
    strategy: str = ""


@dataclass(frozen=True)
class Audited:
    """A tiling with its verdict, the ladder below it and the change that gains most."""

    row: AuditRow
    ctx: Context | None = None
    judgement: Judgement | None = None
    gap: Gap | None = None
    change: str = "none"
    advice: str = ""
    error: InputError | None = None
    first: Change | None = None

    @property
    def regret(self) -> float | None:
        """Percent above the least optimum of all branches."""
        if self.gap is None or not self.gap.optimum or self.judgement is None or not self.judgement.feasible:
            return None
        return 100 * (self.gap.ticks / self.gap.optimum - 1)


# -- reading
class AuditReader:
    """Tilings of a file, one after the other; iterate over it once. A bad row carries its error.

    ``errors`` are the columns that are not known; in JSON Lines, where every row names its own, rows have these errors.

    Args:
        path: the file; its ending tells the format.
        base: the chip (a vendor row changes its cores).

    Raises:
        InputError: the file cannot be read, or it has neither the vendor's columns nor those of a case.
    """

    def __init__(self, path: Path, base: NpuSpec) -> None:
        self._path, self._base = path, base
        self._rows = TextRows(path, "tiling")
        self.errors: list[InputError] = []
        header = self._rows.header
        self._vendor = None if header is None else is_vendor_header(header)
        if header is not None:
            self.errors = check_header(header, None if self._vendor else _AUDIT_COLUMNS, str(path), 1, said=LEFT_OUT)
            missing = [name for name in ("m", "n", "k") if name not in header]
            if missing and not self._vendor:
                text = f"column {missing[0]} missing; needed are m, n, k and plan columns, or the vendor's field names"
                raise InputError(text, file=path, row=1 if self._rows.format == "csv" else None)

    def __iter__(self) -> Iterator[AuditRow]:
        return map(self._row, self._rows)

    def texts(self) -> Iterator[TextRow]:
        """The rows as texts, instead of as tilings."""
        return iter(self._rows)

    def _row(self, row: TextRow) -> AuditRow:
        path, number, texts = self._path, row.number, row.texts
        vendor = is_vendor_header(list(texts)) if self._vendor is None else self._vendor
        try:
            if row.error is not None:
                raise row.error
            if self._vendor is None and not vendor:
                _check_keys(texts)
            return _vendor(path, number, texts, self._base) if vendor else _own(path, number, texts, self._base)
        except InputError as wrong:
            name = texts.get("case_name") or texts.get("case_id") or ""
            placed = InputError(wrong.message, file=path, row=number, column=wrong.column)
            return AuditRow(str(path), number, name, error=placed, strategy=texts.get("strategy", ""))


def _check_keys(texts: Mapping[str, str]) -> None:
    for name in texts:
        if name not in _AUDIT_COLUMNS:
            raise InputError(f"is not known{did_you_mean(name, _AUDIT_COLUMNS)}", column=repr(name))


def read_audit(path: Path, base: NpuSpec) -> tuple[list[AuditRow], list[InputError]]:
    """All tilings of a file, and what is wrong with its header; see :class:`AuditReader`."""
    reader = AuditReader(path, base)
    return list(reader), reader.errors


def _vendor(path: Path, number: int, texts: dict[str, str], base: NpuSpec) -> AuditRow:
    tiling = read_vendor_row(texts)
    given = plan_fields({"branch": tiling.branch, **tiling.fixed})
    return AuditRow(str(path), number, tiling.name, tiling.case, tiling.spec(base), given, None, texts["strategy"])


def _own(path: Path, number: int, texts: dict[str, str], base: NpuSpec) -> AuditRow:
    cells: dict[str, str | None] = {name: texts[name] or None for name in CASE_COLUMNS if name in texts}
    if texts.get("b"):
        if texts.get("batch_a") or texts.get("batch_b"):
            raise InputError("b stands for the batch of A and B; give b, or batch_a and batch_b", column="b")
        cells["batch_a"] = cells["batch_b"] = texts["b"]
    try:
        case = BmmCase(**case_fields(cells))
    except ValidationError as error:
        field, message = explain_validation(error)
        raise InputError(message, column=None if field == "case" else field) from None
    # out_dtype is the case's; the plan has its size in bytes.
    return AuditRow(str(path), number, case.case_id, case, base, plan_fields(texts))


# -- judging
class Auditor:
    """Audits tilings; what was solved for a case is kept for its other tilings, unless many cases come between."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._context = lru_cache(maxsize=_CONTEXTS)(self._context_of)

    def _context_of(self, case: BmmCase, spec: NpuSpec) -> Context:
        return Context.of(case, spec, self._settings.rules, self._settings.environment)

    def audit(self, row: AuditRow) -> Audited:
        """The verdict on a row; a bad row keeps its error."""
        if row.case is None or row.spec is None or row.given is None:
            return Audited(row, error=row.error)
        try:
            context = self._context(row.case.model_copy(update={"case_id": ""}), row.spec)
            return _audited(row, context, self._settings)
        except InputError as error:
            return Audited(row, error=InputError(error.message, file=row.file, row=row.number, column=error.column))


def audit_rows(rows: Iterable[AuditRow], settings: Settings) -> Iterator[Audited]:
    """Audit the rows in order."""
    return map(Auditor(settings).audit, rows)


def _audited(row: AuditRow, ctx: Context, settings: Settings) -> Audited:
    assert row.given is not None
    verdict = judge(ctx, row.given, settings.options)
    evaluation = verdict.evaluation
    if evaluation is None or verdict.branch is None:
        branch = verdict.branch or row.given.get("branch")
        gap = gap_of(ctx, branch, 0, settings.options) if branch is not None else None
        return Audited(row, ctx, verdict, gap, advice="; ".join(verdict.violations))
    gap = gap_of(ctx, verdict.branch, evaluation.ticks, settings.options)
    if not verdict.feasible and evaluation.feasible:  # the tiling itself is legal, what was written beside it is not
        change = "let the derived fields follow" if verdict.rules[0].startswith("derived.") else "none"
        return Audited(row, ctx, verdict, gap, change, "; ".join(verdict.violations))
    plan = open_plan(evaluation.plan if evaluation.feasible else Plan.model_construct(**row.given), row.given)
    first = best_change(ctx, evaluation, plan)
    text = "none"
    if first is not None and evaluation.feasible:
        text = first.text
    elif first is not None:
        text = f"{first.field} {first.old} -> {first.new} makes it legal"
    return Audited(row, ctx, verdict, gap, text, advice(ctx, evaluation), first=first)


def open_plan(plan: Plan, given: dict[str, Any]) -> Plan:
    """The plan without the derived fields that were not given."""
    return plan.model_copy(update={name: None for name in _DERIVED if name not in given})


# -- writing
def to_json(result: Audited) -> dict[str, Any]:
    """A row as plain data."""
    verdict, ctx, gap = result.judgement, result.ctx, result.gap
    if verdict is None or ctx is None:
        column = f"column {result.error.column}: " if result.error is not None and result.error.column else ""
        error = f"{column}{result.error.message}" if result.error is not None else ""
        return {"row": result.row.number, "case_id": result.row.name, "error": error}
    evaluation = verdict.evaluation

    def us(ticks: int | None) -> float | None:
        return None if ticks is None else ctx.us(ticks)

    return {
        "row": result.row.number,
        "case_id": result.row.name,
        "legal": verdict.feasible,
        "violations": list(verdict.rules),
        "branch": verdict.branch or (result.row.given or {}).get("branch"),
        "chosen": list(verdict.chosen),
        "latency_us": None if evaluation is None else ctx.us(evaluation.ticks),
        "latency_ticks": None if evaluation is None else evaluation.ticks,
        "branch_optimum_us": us(gap.branch_optimum) if gap is not None else None,
        "optimum_us": us(gap.optimum) if gap is not None else None,
        "regret_pct": result.regret,
        "roofline_us": us(gap.roofline) if gap is not None else None,
        "roofline_ratio": gap.ticks / gap.roofline if gap is not None and gap.roofline and evaluation else None,
        "bottleneck": None if evaluation is None else evaluation.bottleneck,
        "first_change": result.change,
        "advice": result.advice,
    }


def audit_cells(result: Audited) -> tuple[str, ...]:
    """The row of a tiling in the order of :data:`OUT_COLUMNS`; violations with both sides."""
    document = to_json(result)
    if result.judgement is not None:
        document["violations"] = "; ".join(result.judgement.violations)
        document["chosen"] = "; ".join(result.judgement.chosen)
    return cells_of(document, OUT_COLUMNS)


def markdown(results: Iterable[Audited]) -> str:
    """The table of ``docs/audit.md``."""
    return "\n".join([*MARKDOWN_HEAD, *map(markdown_row, results)]) + "\n"


def markdown_row(result: Audited) -> str:
    """A tiling as a row of that table."""
    document = to_json(result)
    if "error" in document:
        row = [document["row"], document["case_id"], result.row.strategy, document["error"], *[""] * 6]
        return f"| {' | '.join(map(str, row))} |"
    numbers = [_number(document[name], 2) for name in ("latency_us", "branch_optimum_us", "optimum_us")]
    numbers += [_number(document["regret_pct"], 1), _number(document["roofline_ratio"], 2)]
    evaluation = result.judgement.evaluation if result.judgement is not None else None
    plan = "" if evaluation is None else f": {deciding_parameters(evaluation.plan)}"
    broken = f"; breaks {', '.join(document['violations'])}" if document["violations"] else ""
    tiling = f"{document['branch']}{plan}{broken}"
    row = [document["row"], document["case_id"], result.row.strategy, tiling, *numbers, document["first_change"]]
    return f"| {' | '.join(map(str, row))} |"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
