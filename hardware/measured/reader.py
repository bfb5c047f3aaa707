"""Reading measured times: one row a run."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ..errors import InputError, close_name
from ..table_rows import check_header, csv_header, csv_records, csv_rows, read_text

__all__ = ["COLUMNS", "COUNTERS", "Measurement", "measurements", "read_measurements"]

#: Busy time of one pipe on a core, microseconds.
COUNTERS: Final = ("mac_us", "mte1_us", "mte2_us", "fixpipe_us")
_TILE: Final = ("base_m", "base_n", "base_k")
_CASE: Final = (
    "b", "batch_a", "batch_b", "m", "n", "k", "dtype", "out_dtype", "trans_a", "trans_b", "bias", "format_b",
)  # fmt: skip
_TEXTS: Final = ("set", "source", "chip", "kind", "op", "note", "case_id")
#: Columns that are understood; a plan may be given by its own columns.
COLUMNS: Final = (*_TEXTS, *_CASE, *_TILE, "cores", "latency_us", *COUNTERS, "tiling_known")
_NEEDED: Final = ("m", "n", "k", "latency_us")
#: Types as other tools spell them, ``int8xint8`` meaning A and B, ``fp16->fp32`` input and output.
_TYPES: Final = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32"}
_TAG: Final = re.compile(r"\[([^\]]*)\]\s*")
_TOTAL_ROWS: Final = "m=total rows"
#: How like one of ours (0 to 1) a column must be to be taken for it misspelt.
_MISSPELT: Final = 0.8


class Measurement(BaseModel):
    """One measured run. ``row`` is its line in the file, the header being line 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    row: int
    set: str = Field(default="measured", description="rows measured in one way, on one machine")
    source: str = Field(default="", description="where the number was published")
    chip: str = Field(default="", description="chip as the source names it, or as `tileproof hardware list` does")
    kind: str = Field(default="", description="kind of time")
    op: str = Field(default="", description="operator, kernel or variant")
    note: str = ""
    case: Mapping[str, str] = Field(description="columns of the case that are given, as text")
    plan: Mapping[str, str] = Field(default_factory=dict, description="columns of the tiling that are given, as text")
    cores: int | None = Field(default=None, description="cores that were launched")
    latency_us: float = Field(description="measured time, microseconds")
    counters: Mapping[str, float] = Field(default_factory=dict, description="busy time of pipes, microseconds")
    tiling_known: bool = Field(default=False, description="whether the tile that ran is given")

    @property
    def label(self) -> str:
        """Short name for messages and plots."""
        batch = self.case.get("b") or self.case.get("batch_a") or "1"
        shape = "x".join([batch, *(self.case.get(name, "1") for name in ("m", "n", "k"))])
        return f"{self.set} {shape} {self.case.get('dtype', '')}".strip()


@cache
def measurements() -> tuple[Measurement, ...]:
    """The public measurements that are carried with the package."""
    name = "ascend950.csv"
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return tuple(_parsed(text, name, ()))


def read_measurements(path: str | os.PathLike[str], plan_columns: Sequence[str] = ()) -> list[Measurement]:
    """Measurements of a CSV file with (some of) the columns of ``COLUMNS``.

    ``plan_columns`` are more columns that describe the tiling.

    Raises:
        InputError: the file cannot be read, or a row cannot be used; the message names row and column.
    """
    return _parsed(read_text(path), os.fspath(path), plan_columns)


def _parsed(text: str, file: str, plan_columns: Sequence[str]) -> list[Measurement]:
    records = csv_records(io.StringIO(text, newline=""), file)
    header = csv_header(records, file)
    _check_header(header, file, plan_columns)
    rows = []
    for row in csv_rows(header, records, file):
        if row.error is not None:
            raise row.error
        given = {name: cell for name, cell in row.texts.items() if cell}
        rows.append(_row(given, file, row.number, (*_TILE, *plan_columns)))
    if not rows:
        raise InputError("there is no measurement below the header", file=file)
    return rows


def _check_header(header: Sequence[str], file: str, plan_columns: Sequence[str]) -> None:
    """See that the columns are there; others are the user's own, unless they look like one of ours misspelt."""
    known = (*COLUMNS, *plan_columns)
    missing = [name for name in _NEEDED if name not in header]
    if missing:
        raise InputError(f"column {missing[0]} is missing; needed are {', '.join(_NEEDED)}", file=file, row=1)
    check_header([name for name in header if name], known, file, 1)
    for name in header:
        close = None if name in known else close_name(name, [k for k in known if k not in header], _MISSPELT)
        if close is not None:
            raise InputError(f"is not known; did you mean {close!r}?", file=file, row=1, column=repr(name))


def _row(cells: Mapping[str, str], file: str, line: int, plan_columns: Sequence[str]) -> Measurement:
    def number(column: str) -> float | None:
        return None if column not in cells else _number(cells[column], file, line, column)

    case = {name: cells[name] for name in _CASE if name in cells}
    for name in ("b", "m", "n", "k", "trans_a", "trans_b"):
        if name in case:
            case[name] = _whole(case[name])
    case |= _types(case.get("dtype", "fp16"), case.get("out_dtype"))
    if _TOTAL_ROWS in cells.get("op", "") and case.get("b", "1").isdigit() and case["m"].isdigit():
        case["m"] = str(-(-int(case["m"]) // max(1, int(case["b"]))))  # groups are taken as equal
    latency = number("latency_us")
    if latency is None or latency <= 0:
        shown = "is empty" if latency is None else f"is {cells['latency_us']}"
        raise InputError(f"{shown}, but must be a time above 0", file=file, row=line, column="latency_us")
    counters = {name: value for name in COUNTERS if (value := number(name))}
    plan = {name: _whole(cells[name]) for name in plan_columns if name in cells}
    note, kind = cells.get("note", ""), cells.get("kind", "")
    tag = _TAG.match(note)
    if tag and not kind:
        kind, note = tag[1], note[tag.end() :]
    cores = number("cores")
    known = cells.get("tiling_known")
    texts: dict[str, Any] = {name: cells[name] for name in ("set", "source", "chip", "op") if name in cells}
    if "op" not in texts and "case_id" in cells:
        texts["op"] = cells["case_id"]
    return Measurement(
        file=file,
        row=line,
        kind=kind,
        note=note,
        case=case,
        plan=plan,
        cores=None if cores is None else int(cores),
        latency_us=latency,
        counters=counters,
        tiling_known=bool(plan) if known is None else _whole(known) == "1",
        **texts,
    )


def _types(text: str, out: str | None) -> dict[str, str]:
    """Input and output type of ``fp16``, ``fp16->fp32`` or ``int8xint8``."""
    given, _, arrow = text.lower().partition("->")
    left, _, right = given.partition("x") if not given.startswith("mx") else (given, "", "")
    types = {"dtype": _TYPES.get(left, left) if left == right or not right else given}
    result = out or arrow
    return types | ({"out_dtype": _TYPES.get(result.lower(), result.lower())} if result else {})


def _whole(text: str) -> str:
    """``1024.0`` as ``1024``; anything else as it is."""
    return text[:-2] if text.endswith(".0") and text[:-2].isdigit() else text


def _number(text: str, file: str, line: int, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise InputError(f"is {text!r}, but must be a number of 0 or more", file=file, row=line, column=column)
    return value
