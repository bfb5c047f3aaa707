"""Options that mean the same in every command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ...models.branches import BRANCHES

if TYPE_CHECKING:
    from ...models.case import BmmCase
    from ...models.pins import Pin
    from ...models.plan import BranchName

DEFAULT_HARDWARE: Final = "ascend950pr"
DEFAULT_RULES: Final = "v0.4"
DEFAULT_ENVIRONMENT: Final = "profiler"
DEFAULT_TIME_LIMIT: Final = "60"

# -- the case
Rows = Annotated[str, typer.Option("-m", metavar="N", help="Rows of A and C, elements.")]
Columns = Annotated[str, typer.Option("-n", metavar="N", help="Columns of B and C, elements.")]
Depth = Annotated[str, typer.Option("-k", metavar="N", help="Summed extent, elements.")]
Batch = Annotated[str | None, typer.Option("-b", metavar="DIMS", help="Batch of A and B: 8 or 6x4; default 1.")]
BatchA = Annotated[str | None, typer.Option("--batch-a", metavar="DIMS", help="Batch dims of A: 6,1 or 6x1.")]
BatchB = Annotated[str | None, typer.Option("--batch-b", metavar="DIMS", help="Batch dims of B: 1,6 or 1x6.")]
InputType = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="T",
        help="Type of A and B: fp16, bf16, fp32, hf32, int8, fp8_e4m3, fp8_e5m2 or hif8.",
    ),
]
OutputType = Annotated[
    str | None,
    typer.Option("--out-dtype", metavar="T", help="Type of C: fp16, bf16, fp32, int8, int32; default by --dtype."),
]
TransposedA = Annotated[bool, typer.Option("--trans-a", help="A is stored transposed, k x m.")]
TransposedB = Annotated[bool, typer.Option("--trans-b", help="B is stored transposed, n x k.")]
Bias = Annotated[
    str | None,
    typer.Option("--bias", metavar="T", help="Type of a bias row: fp16, bf16, fp32 or int32; default no bias."),
]
BiasBatch = Annotated[bool, typer.Option("--bias-batch", help="The bias has the batch dims of C.")]
FormatB = Annotated[str, typer.Option("--format-b", metavar="FORMAT", help="Storage of B: ND or NZ (fractals).")]

# -- how it is solved
Hardware = Annotated[
    str,
    typer.Option(
        "--hardware",
        metavar="NAME|FILE",
        help="Chip: a name of `tileproof hardware list`, or a .toml or platform .ini file.",
    ),
]
Branches = Annotated[
    list[str] | None,
    typer.Option(
        "--branch",
        metavar="NAME",
        help=f"Branch to consider, may be repeated: {', '.join(BRANCHES)}; default all.",
    ),
]
Rules = Annotated[
    str,
    typer.Option("--rules", metavar="PROFILE", help="Profile of policy rules: v0.4, source (shipped code) or none."),
]
Environment = Annotated[
    str,
    typer.Option(
        "--environment",
        metavar="NAME",
        help="Launch head and state of L2: profiler (2.5 us), cold (9 us), warm (0.5 us) or resident (inputs in L2).",
    ),
]
Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="PIN",
        help="Keep a plan field as it is or in bounds, may be repeated: base_m=128, base_k=64..256, 'merge_b0>=4', "
        "l1_form=b, base_m=base_n, 'latency_us<=12'.",
    ),
]
TimeLimit = Annotated[
    str, typer.Option("--time-limit", metavar="S", help="Most time for one branch of one case, seconds.")
]
Jobs = Annotated[
    str | None,
    typer.Option(
        "--jobs", metavar="N", help="Processes that work at once, 1 or more; default the cores, fewer for short inputs."
    ),
]
Library = Annotated[
    Path | None,
    typer.Option(
        "--library",
        metavar="FILE",
        help="Plan library (SQLite, made when it is not there): known answers are taken from it, new ones kept in it.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


def seconds_of(text: str) -> float:
    """The time limit in seconds.

    Raises:
        InputError: it is no number above zero.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        from ...hardware.errors import InputError

        raise InputError(f"--time-limit: {text!r} is no time; give seconds above 0")
    return seconds


def jobs_of(text: str | None, rows: int | None, **worth: int) -> int:
    """The number of processes for a number of rows (None: not known); ``worth`` as ``default_jobs`` takes it.

    Raises:
        InputError: it is no whole number above zero.
    """
    from ..pools.executors import default_jobs

    if text is None:
        return default_jobs(rows, **worth)
    if not text.isdecimal() or not 0 < len(text) < 5 or int(text) < 1:
        from ...hardware.errors import InputError

        raise InputError(f"--jobs: {text!r} is no number of processes; give a whole number, 1 to 9999")
    return int(text) if rows is None else max(1, min(int(text), rows))


def case_of(texts: dict[str, str | None], b: str | None, flags: dict[str, bool]) -> BmmCase:
    """The case of the options.

    Raises:
        InputError: an option cannot be used.
    """
    from ...hardware.errors import InputError
    from ...models.case import make_case
    from ..tables.cells import case_fields

    if b is not None:
        if texts["batch_a"] is not None or texts["batch_b"] is not None:
            raise InputError("-b and --batch-a/--batch-b exclude one another; give -b when A and B have the same batch")
        texts |= {"batch_a": b, "batch_b": b}
    try:
        return make_case(**case_fields(texts), **flags)
    except InputError as error:
        message = f"{error.column}: {error.message}" if error.column else error.message
        if b is not None and message.startswith("batch_a: "):
            message = f"-b: {message.removeprefix('batch_a: ')}"
        raise InputError(message) from None


def branches_of(names: list[str] | None) -> tuple[BranchName, ...]:
    """Branches by name.

    Raises:
        InputError: a name is not known.
    """
    from ...hardware.errors import InputError
    from ..tables.cells import did_you_mean

    chosen = [name.strip().lower().replace("-", "_") for name in names or BRANCHES]
    for name in chosen:
        if name not in BRANCHES:
            raise InputError(
                f"--branch: {name!r} is not known{did_you_mean(name, BRANCHES)}; allowed: {', '.join(BRANCHES)}"
            )
    return tuple(name for name in BRANCHES if name in chosen)


def pins_of(texts: list[str] | None) -> tuple[Pin, ...]:
    """Pins of the options.

    Raises:
        InputError: one is not understood.
    """
    from ...models.pins import parse_pins

    return parse_pins(texts or ())
