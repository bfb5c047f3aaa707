"""Reading ``op_summary_*.csv`` of msprof and its relative ``kernel_details.csv``.

Matmul tasks become measurements. A row that is no clean Cube time of a plain matmul is left out and counted by operator
and reason; a file that cannot be understood as a whole is refused.
"""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...hardware.errors import InputError
from ...hardware.measured import COUNTERS, Measurement
from ...hardware.table_rows import csv_records
from .left_out import LeftOut, Unusable
from .operators import MATMULS, besides, is_matmul
from .predict import prepare
from .shapes import case_columns

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
#: Columns whose unit matters; the start of a task only tells tasks apart, and older exports give it without a unit.
_TIMES: Final = ("duration", *COUNTERS, "vector")
_NEEDED: Final = {
    "type": "OP Type", "duration": "Task Duration(us)", "shapes": "Input Shapes", "types": "Input Data Types"
}  # fmt: skip
#: Exports that have times without shapes: the columns that show it, and what they are.
_WITHOUT_SHAPES: Final = (
    ({"op type", "total time"}, "an op_statistic export, a summary by operator type"),
    ({"kernel_name", "task_time"}, "a task_time export, a list of kernels"),
    ({"op name", "op type", "task duration", "block dim", "current freq"}, "an OpBasicInfo export, one operator"),
)
_UNIT: Final = re.compile(r"(.*?)\s*\((us|μs|µs|ns|ms|s)\)$")
_PER_UNIT: Final = {"us": 1.0, "μs": 1.0, "µs": 1.0, "ns": 1e-3, "ms": 1e3, "s": 1e6}
_EMPTY: Final = ("", "n/a", "na", "null", "none")
#: Vector work above this share of the task makes its time no Cube time.
_VECTOR_SHARE: Final = 0.05


@dataclass(frozen=True)
class _Column:
    """Where a column stands, its title, and microseconds of its unit."""

    index: int
    title: str
    scale: float | None


def is_export(header: Sequence[str]) -> bool:
    """Whether a header is that of a profiler export, be it one that can be used or not."""
    names = {_split(title)[0] for title in header}
    tasks = bool(names & set(_NAMES["duration"])) and bool(names & {"op name", "op type", "input shapes"})
    return tasks or any(shown <= names for shown, _ in _WITHOUT_SHAPES)


def read_export(text: str, file: str, note: Callable[[str], None]) -> list[Measurement]:
    """Matmul tasks of an export; ``note`` is told which rows were left out, how many, and why.

    Raises:
        InputError: the file has no shapes, a column is missing, twice there or without unit, or no matmul task is left.
    """
    (_, header), *lines = csv_records(io.StringIO(text, newline=""), file)
    columns = _columns(header, file)
    left_out = LeftOut()
    tasks: list[tuple[int, dict[str, str]]] = []
    kinds: Counter[str] = Counter()
    for line, cells in lines:
        task = {name: _text(cells[column.index]) for name, column in columns.items() if column.index < len(cells)}
        kind = " ".join(task.get("type", "").split())
        kinds[kind] += 1
        what = besides(kind)
        if what is None:
            left_out.add_other(kind)
        elif not is_matmul(kind):
            left_out.add(kind, line, Unusable(what))
        elif len(cells) != len(header):
            count = f"{len(cells)} cells instead of {len(header)}"
            left_out.add(kind, line, Unusable("it does not have the cells of the header", count))
        else:
            tasks.append((line, task))
    cube = {_identity(task) for _, task in tasks if not _on_vector(task)}
    rows = []
    for line, task in tasks:
        try:
            rows.append(_row(task, columns, file, line, cube))
        except Unusable as why:
            left_out.add(" ".join(task["type"].split()), line, why)
    left_out.say(file, len(rows), note)
    if not rows:
        raise InputError(_nothing(kinds), file=file)
    return rows


def _nothing(kinds: Counter[str]) -> str:
    """Why no task of a file can be used; ``kinds`` are its rows by OP Type."""
    if set(kinds) == {""}:
        return "no row has an OP Type; a profile taken with --task-time=l0 has no types and shapes, l1 has them"
    matmuls = sum(count for kind, count in kinds.items() if is_matmul(kind))
    found = f"; its {matmuls} matmul tasks were all left out" if matmuls else ""
    return f"there is no matmul task to use (OP Type {', '.join(MATMULS)}){found}"


def _columns(header: Sequence[str], file: str) -> dict[str, _Column]:
    by_name: dict[str, list[_Column]] = {}
    for index, title in enumerate(header):
        name, scale = _split(title)
        by_name.setdefault(name, []).append(_Column(index, title.strip(), scale))
    if not by_name.keys() & set(_NAMES["shapes"]):
        for shown, what in _WITHOUT_SHAPES:
            if shown <= set(by_name):
                raise InputError(f"is {what} without shapes; needed is op_summary_*.csv, one row a task", file=file)
    columns = {}
    for ours, names in _NAMES.items():
        found = next((by_name[name] for name in names if name in by_name), None)
        if found is None:
            continue
        if len(found) > 1:
            raise InputError(f"the header names column {found[0].title!r} twice", file=file, row=1)
        if ours in _TIMES and found[0].scale is None:
            title = found[0].title
            raise InputError("has no unit; allowed are (us), (ns), (ms) and (s)", file=file, row=1, column=title)
        columns[ours] = found[0]
    for ours, title in _NEEDED.items():
        if ours not in columns:
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


def _on_vector(task: Mapping[str, str]) -> bool:
    return "VECTOR" in task.get("core", "").upper()


def _row(
    cells: Mapping[str, str],
    columns: Mapping[str, _Column],
    file: str,
    line: int,
    cube: set[tuple[str, ...] | None],
) -> Measurement:
    """The measurement of a matmul task.

    Raises:
        Unusable: its time is no clean Cube time, or its shapes or types are no matmul of the model.
    """

    def time(ours: str) -> float:
        return _time(cells.get(ours, ""), columns.get(ours))

    core = cells.get("core", "")
    if _on_vector(cells):
        if _identity(cells) is not None and _identity(cells) in cube:
            raise Unusable("it is the vector half of a task that has a Cube row")
        raise Unusable("it ran on vector cores alone")
    if "CPU" in core.upper():
        raise Unusable(f"it ran on {core}, not on a Cube core")
    duration = time("duration")
    if duration == 0:
        raise Unusable(f"its {columns['duration'].title} is {'0' if cells['duration'] else 'missing'}")
    vector = time("vector")
    if vector > _VECTOR_SHARE * duration:
        raise Unusable("the vector cores worked in the same task", f"{vector:g} us of {duration:g} us")
    blocks = cells.get("blocks", "")
    measured = Measurement(
        file=file,
        row=line,
        set="msprof",
        kind="task duration",
        op=cells.get("name") or cells["type"],
        case=case_columns(cells),
        cores=int(blocks) if blocks.isdecimal() and int(blocks) else None,
        latency_us=duration,
        counters={ours: value for ours in COUNTERS if (value := time(ours))},
    )
    try:
        prepare(measured)
    except InputError as error:
        raise Unusable("its shapes or types are no case", f"{error.column or ''} {error.message}".strip()) from None
    return measured


def _time(text: str, column: _Column | None) -> float:
    """Microseconds; 0 for an empty cell."""
    if column is None or not text:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise Unusable(f"its {column.title} is no time of 0 or more", repr(text))
    return value * (column.scale or 1.0)
