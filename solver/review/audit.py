"""Audit of tilings: legal or not, how far from the optimum, and what to change first.

A row is a tiling with its case in the same file: plan columns and case columns, or the vendor's field names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ...hardware import NpuSpec
from ...hardware.errors import InputError, did_you_mean
from ...hardware.table_rows import TextRow, check_header
from ..describe import deciding_parameters
from ..tables.cells import case_of, cells_of
from ..tables.columns import CASE_COLUMNS, PLAN_COLUMNS
from ..tables.read import TextRows
from ..tables.tilings import LEFT_OUT, plan_fields
from ..tables.vendor_rows import is_vendor_header, read_vendor_row
from .tilings import JudgedTiling, TilingRow, error_cell

__all__ = [
    "MARKDOWN_HEAD",
    "OUT_COLUMNS",
    "AuditReader",
    "audit_cells",
    "markdown",
    "markdown_row",
    "read_audit",
    "to_json",
]

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

    def __iter__(self) -> Iterator[TilingRow]:
        return map(self._row, self._rows)

    def texts(self) -> Iterator[TextRow]:
        """The rows as texts, instead of as tilings."""
        return iter(self._rows)

    def _row(self, row: TextRow) -> TilingRow:
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
            return TilingRow(str(path), number, name, error=wrong.at(path, number), strategy=texts.get("strategy", ""))


def _check_keys(texts: Mapping[str, str]) -> None:
    for name in texts:
        if name not in _AUDIT_COLUMNS:
            raise InputError(f"is not known{did_you_mean(name, _AUDIT_COLUMNS)}", column=repr(name))


def read_audit(path: Path, base: NpuSpec) -> tuple[list[TilingRow], list[InputError]]:
    """All tilings of a file, and what is wrong with its header; see :class:`AuditReader`."""
    reader = AuditReader(path, base)
    return list(reader), reader.errors


def _vendor(path: Path, number: int, texts: dict[str, str], base: NpuSpec) -> TilingRow:
    tiling = read_vendor_row(texts)
    given = plan_fields({"branch": tiling.branch, **tiling.fixed})
    return TilingRow(str(path), number, tiling.name, tiling.case, tiling.spec(base), given, None, texts["strategy"])


def _own(path: Path, number: int, texts: dict[str, str], base: NpuSpec) -> TilingRow:
    cells: dict[str, str | None] = {name: texts[name] or None for name in CASE_COLUMNS if name in texts}
    if texts.get("b"):
        if texts.get("batch_a") or texts.get("batch_b"):
            raise InputError("b stands for the batch of A and B; give b, or batch_a and batch_b", column="b")
        cells["batch_a"] = cells["batch_b"] = texts["b"]
    case = case_of(cells)
    # out_dtype is the case's; the plan has its size in bytes.
    return TilingRow(str(path), number, case.case_id, case, base, plan_fields(texts))


# -- writing
def to_json(result: JudgedTiling) -> dict[str, Any]:
    """A row as plain data."""
    verdict, ctx, gap = result.judgement, result.ctx, result.gap
    if verdict is None or ctx is None:
        return {"row": result.row.number, "case_id": result.row.name, "error": error_cell(result)}
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
        "advice": "; ".join(verdict.violations) if result.contradicts else result.advice,
    }


def audit_cells(result: JudgedTiling) -> tuple[str, ...]:
    """The row of a tiling in the order of :data:`OUT_COLUMNS`; violations with both sides."""
    document = to_json(result)
    if result.judgement is not None:
        document["violations"] = "; ".join(result.judgement.violations)
        document["chosen"] = "; ".join(result.judgement.chosen)
    return cells_of(document, OUT_COLUMNS)


def markdown(results: Iterable[JudgedTiling]) -> str:
    """The table of ``docs/audit.md``."""
    return "\n".join([*MARKDOWN_HEAD, *map(markdown_row, results)]) + "\n"


def markdown_row(result: JudgedTiling) -> str:
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
