"""Audit of tilings: legal or not, how far from the optimum, and what to change first.

A row is a tiling with its case in the same file: plan columns and case columns, or the vendor's field names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
from pydantic import ValidationError

from ..hardware import NpuSpec
from ..hardware.errors import InputError
from ..models.case import BmmCase, explain_validation
from ..models.context import Context
from ..models.plan import Plan
from .advice import advice
from .cells import case_fields
from .changes import Change, best_change
from .describe import deciding_parameters
from .gap import Gap, gap_of
from .judge import Judgement, judge
from .plan_input import plan_fields, read_table
from .settings import Settings
from .tables import CASE_COLUMNS, PLAN_COLUMNS, table_of
from .vendor_rows import is_vendor_header, read_vendor_row

__all__ = ["AuditRow", "Audited", "audit_rows", "audit_table", "read_audit", "to_json"]

#: Fields of a plan that are open unless the row gives them; single changes derive them anew.
_DERIVED: Final = ("swizzle_w", "single_core_m", "single_core_n")
_AUDIT_COLUMNS: Final = (*CASE_COLUMNS, "b", *(name for name in PLAN_COLUMNS if name not in CASE_COLUMNS))
OUT_COLUMNS: Final[tuple[str, ...]] = (
    "row", "case_id", "legal", "violations", "branch", "chosen", "latency_us", "latency_ticks", "branch_optimum_us",
    "optimum_us", "regret_pct", "roofline_us", "roofline_ratio", "bottleneck", "first_change", "advice", "error",
)  # fmt: skip


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
def read_audit(path: Path, base: NpuSpec) -> tuple[list[AuditRow], list[InputError]]:
    """Tilings of a file, and what is wrong with its header. ``base`` is the chip (a vendor row changes its cores).

    Raises:
        InputError: the file cannot be read, or it has neither the vendor's columns nor those of a case.
    """
    table = read_table(path, None, "tiling")
    vendor = is_vendor_header(table.header)
    if not vendor:
        table = read_table(path, _AUDIT_COLUMNS, "tiling")
        missing = [name for name in ("m", "n", "k") if name not in table.header]
        if missing:
            text = f"column {missing[0]} missing; needed are m, n, k and plan columns, or the vendor's field names"
            raise InputError(text, file=path, row=1)
    rows = []
    for number, texts, error in table.rows:
        try:
            if error is not None:
                raise error
            rows.append(_vendor(path, number, texts, base) if vendor else _own(path, number, texts, base))
        except InputError as wrong:
            name = texts.get("case_name") or texts.get("case_id") or ""
            placed = InputError(wrong.message, file=path, row=number, column=wrong.column)
            rows.append(AuditRow(str(path), number, name, error=placed, strategy=texts.get("strategy", "")))
    return rows, table.errors


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
def audit_rows(rows: Iterable[AuditRow], settings: Settings) -> Iterator[Audited]:
    """Audit the rows in order; equal cases on equal chips are solved once."""
    contexts: dict[tuple[BmmCase, NpuSpec], Context] = {}
    for row in rows:
        if row.case is None or row.spec is None or row.given is None:
            yield Audited(row, error=row.error)
            continue
        key = (row.case.model_copy(update={"case_id": ""}), row.spec)
        if key not in contexts:
            contexts[key] = Context.of(row.case, row.spec, settings.rules, settings.environment)
        try:
            yield _audited(row, contexts[key], settings)
        except InputError as error:
            yield Audited(row, error=InputError(error.message, file=row.file, row=row.number, column=error.column))


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


def audit_table(results: Iterable[Audited]) -> pd.DataFrame:
    """One row for each tiling, in the order of the input; violations with both sides."""

    def cells(result: Audited) -> dict[str, Any]:
        document = to_json(result)
        if result.judgement is not None:
            document["violations"] = "; ".join(result.judgement.violations)
            document["chosen"] = "; ".join(result.judgement.chosen)
        return document

    return table_of((cells(result) for result in results), OUT_COLUMNS)


def markdown(results: Iterable[Audited]) -> str:
    """The table of ``docs/audit.md``."""
    head = "row|case|strategy|tiling|latency us|branch optimum us|optimum us|regret %|x roofline|first change"
    lines = [f"| {head.replace('|', ' | ')} |", "|---|---|---|---|---:|---:|---:|---:|---:|---|"]
    for result in results:
        document = to_json(result)
        if "error" in document:
            row = [document["row"], document["case_id"], result.row.strategy, document["error"], *[""] * 6]
            lines.append(f"| {' | '.join(map(str, row))} |")
            continue
        numbers = [_number(document[name], 2) for name in ("latency_us", "branch_optimum_us", "optimum_us")]
        numbers += [_number(document["regret_pct"], 1), _number(document["roofline_ratio"], 2)]
        evaluation = result.judgement.evaluation if result.judgement is not None else None
        plan = "" if evaluation is None else f": {deciding_parameters(evaluation.plan)}"
        broken = f"; breaks {', '.join(document['violations'])}" if document["violations"] else ""
        tiling = f"{document['branch']}{plan}{broken}"
        row = [document["row"], document["case_id"], result.row.strategy, tiling, *numbers, document["first_change"]]
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines) + "\n"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
