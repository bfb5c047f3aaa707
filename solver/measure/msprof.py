"""Reading ``op_summary_*.csv`` of msprof and its relatives (``kernel_details.csv``, ``OpBasicInfo.csv``).

Matmul tasks become measurements. What cannot be a clean Cube time is left out with a note; what cannot be understood is
refused with file, row and column.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...hardware.errors import InputError
from ...hardware.measured import Measurement
from .shapes import ShapeError, case_columns

#: Our name of a column -> names in exports, lower case and without unit.
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "name": ("op name", "name"),
    "type": ("op type", "type"),
    "duration": ("task duration", "duration"),
    "shapes": ("input shapes", "input shape(s)"),
    "types": ("input data types", "input data type(s)"),
    "formats": ("input formats",),
    "out_shapes": ("output shapes",),
    "out_types": ("output data types",),
    "core": ("task type", "accelerator core"),
    "blocks": ("block dim", "block num"),
    "hf32": ("hf32 eligible",),
    "task": ("task id",),
    "stream": ("stream id",),
    "start": ("task start time", "start time"),
    "mac_us": ("aic_mac_time", "aic_cube_time"),
    "mte1_us": ("aic_mte1_time",),
    "mte2_us": ("aic_mte2_time",),
    "fixpipe_us": ("aic_fixpipe_time", "aic_fixp_time"),
    "vector": ("aiv_vec_time", "aiv_time"),
}
_TIMES: Final = ("duration", "start", "mac_us", "mte1_us", "mte2_us", "fixpipe_us", "vector")
_COUNTERS: Final = ("mac_us", "mte1_us", "mte2_us", "fixpipe_us")
_NEEDED: Final = ("type", "duration", "shapes", "types")
_UNIT: Final = re.compile(r"(.*?)\s*\((us|μs|µs|ns|ms|s)\)$")
_PER_UNIT: Final = {"us": 1.0, "μs": 1.0, "µs": 1.0, "ns": 1e-3, "ms": 1e3, "s": 1e6}
_EMPTY: Final = ("", "n/a", "na", "null", "none")
_MATMUL: Final = re.compile(r"^(batch)?mat_?mul", re.IGNORECASE)
#: Vector work above this share of the task makes its time no Cube time.
_VECTOR_SHARE: Final = 0.05


@dataclass(frozen=True)
class _Column:
    """Where a column stands, its title, and microseconds of its unit."""

    index: int
    title: str
    scale: float | None


def is_export(header: Sequence[str]) -> bool:
    """Whether a header is that of a profiler export."""
    names = {_split(title)[0] for title in header}
    return bool(names & set(_NAMES["duration"])) and bool(names & {"op name", "op type", "input shapes"})


def read_export(text: str, file: str, note: Callable[[str], None]) -> list[Measurement]:
    """Matmul tasks of an export; ``note`` is told which of them were left out, and why.

    Raises:
        InputError: a column is missing or without unit, a time is no time, or there is no matmul task.
    """
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(reader, [])
    columns = _columns(header, file)
    tasks: list[tuple[int, dict[str, str]]] = []
    line = reader.line_num + 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            if len(cells) != len(header):
                raise InputError(f"{len(cells)} cells, but the header has {len(header)}", file=file, row=line)
            tasks.append((line, {name: _text(cells[column.index]) for name, column in columns.items()}))
        line = reader.line_num + 1
    rows = []
    cube = {_identity(task) for _, task in tasks if "VECTOR" not in task.get("core", "").upper()}
    matmuls = [(number, task) for number, task in tasks if _MATMUL.match(task["type"])]
    for number, task in matmuls:
        row = _row(task, columns, file, number, cube, note)
        if row is not None:
            rows.append(row)
    if not rows:
        found = f"; its {len(matmuls)} matmul tasks were all left out" if matmuls else ""
        raise InputError(f"there is no matmul task to use (OP Type MatMul..., BatchMatMul...){found}", file=file)
    return rows


def _columns(header: Sequence[str], file: str) -> dict[str, _Column]:
    by_name: dict[str, _Column] = {}
    for index, title in enumerate(header):
        name, scale = _split(title)
        by_name.setdefault(name, _Column(index, title.strip(), scale))
    columns = {}
    for ours, names in _NAMES.items():
        found = next((by_name[name] for name in names if name in by_name), None)
        if found is None:
            continue
        if ours in _TIMES and found.scale is None:
            raise InputError("has no unit; allowed are (us), (ns), (ms) and (s)", file=file, row=1, column=found.title)
        columns[ours] = found
    for ours in _NEEDED:
        if ours not in columns:
            title = {"type": "OP Type", "duration": "Task Duration(us)", "shapes": "Input Shapes"}.get(
                ours, "Input Data Types"
            )
            raise InputError(f"column {title} is missing from the export", file=file, row=1)
    return columns


def _split(title: str) -> tuple[str, float | None]:
    """Name in lower case and microseconds of the unit."""
    plain = title.strip().lower()
    match = _UNIT.match(plain)
    return (match[1], _PER_UNIT[match[2]]) if match else (plain, None)


def _text(cell: str) -> str:
    plain = cell.strip().strip('"').strip()
    return "" if plain.lower() in _EMPTY else plain


def _identity(cells: Mapping[str, str]) -> tuple[str, ...] | None:
    """Which task a row speaks of, when the export says so."""
    key = (cells.get("stream", ""), cells.get("task", ""), cells.get("start", ""))
    return key if key[1] else None


def _row(
    cells: Mapping[str, str],
    columns: Mapping[str, _Column],
    file: str,
    line: int,
    cube: set[tuple[str, ...] | None],
    note: Callable[[str], None],
) -> Measurement | None:
    name = cells.get("name") or cells["type"]

    def left_out(reason: str) -> None:
        note(f"{file}, row {line}: {name} is left out: {reason}")

    def time(ours: str) -> float:
        return _time(cells.get(ours, ""), columns.get(ours), file, line)

    core = cells.get("core", "").upper()
    if "VECTOR" in core:
        other = _identity(cells) is not None and _identity(cells) in cube
        left_out("it is the vector half of a task that has a Cube row" if other else "it ran on vector cores alone")
        return None
    duration = time("duration")
    if duration == 0:
        raise InputError(
            f"the duration of {name} is {cells['duration'] or 'empty'}, but must be above 0",
            file=file,
            row=line,
            column=columns["duration"].title,
        )
    vector = time("vector")
    if vector > _VECTOR_SHARE * duration:
        left_out(f"the vector cores worked {vector:g} us of {duration:g} us in the same task ({core or 'mixed'})")
        return None
    try:
        case = case_columns(cells)
    except ShapeError as error:
        if error.harmless:
            left_out(str(error))
            return None
        raise InputError(f"{name}: {error}", file=file, row=line, column=columns["shapes"].title) from None
    blocks = cells.get("blocks", "")
    return Measurement(
        file=file,
        row=line,
        set="msprof",
        kind="task duration",
        op=name,
        case=case,
        cores=int(blocks) if blocks.isdigit() and int(blocks) else None,
        latency_us=duration,
        counters={ours: value for ours in _COUNTERS if (value := time(ours))},
    )


def _time(text: str, column: _Column | None, file: str, line: int) -> float:
    """Microseconds; 0 for an empty cell."""
    if column is None or not text:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise InputError(f"is {text!r}, but must be a time of 0 or more", file=file, row=line, column=column.title)
    return value * (column.scale or 1.0)
