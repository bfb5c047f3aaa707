"""Options that mean the same in every command."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ...models.branch_names import BRANCHES

if TYPE_CHECKING:
    from ...models.case import BmmCase
    from ...models.context import Context
    from ...models.pins import Pin
    from ...models.plan import BranchName
    from ..settings import Settings

DEFAULT_HARDWARE: Final = "ascend950pr"
DEFAULT_RULES: Final = "v0.4"
DEFAULT_ENVIRONMENT: Final = "profiler"
DEFAULT_TIME_LIMIT: Final = "60"

# -- single options
Hardware = Annotated[
    str,
    typer.Option(
        "--hardware",
        metavar="NAME|FILE",
        help="Chip: a name of `tileproof hardware list`, or a .toml or platform .ini file.",
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


# -- groups of options
_M: Final = typer.Option("-m", metavar="N", help="Rows of A and C, elements.")
_N: Final = typer.Option("-n", metavar="N", help="Columns of B and C, elements.")
_K: Final = typer.Option("-k", metavar="N", help="Summed extent, elements.")


@dataclass(frozen=True)
class MaybeCaseOptions:
    """What describes one case, as the user wrote it; without sizes there is none."""

    m: Annotated[str | None, _M] = None
    n: Annotated[str | None, _N] = None
    k: Annotated[str | None, _K] = None
    b: Annotated[str | None, typer.Option("-b", metavar="DIMS", help="Batch of A and B: 8 or 6x4; default 1.")] = None
    batch_a: Annotated[str | None, typer.Option("--batch-a", metavar="DIMS", help="Batch dims of A: 6,1 or 6x1.")] = (
        None
    )
    batch_b: Annotated[str | None, typer.Option("--batch-b", metavar="DIMS", help="Batch dims of B: 1,6 or 1x6.")] = (
        None
    )
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype",
            metavar="T",
            help="Type of A and B: fp16, bf16, fp32, hf32, int8, fp8_e4m3, fp8_e5m2 or hif8.",
        ),
    ] = "fp16"
    out_dtype: Annotated[
        str | None,
        typer.Option("--out-dtype", metavar="T", help="Type of C: fp16, bf16, fp32, int8, int32; default by --dtype."),
    ] = None
    trans_a: Annotated[bool, typer.Option("--trans-a", help="A is stored transposed, k x m.")] = False
    trans_b: Annotated[bool, typer.Option("--trans-b", help="B is stored transposed, n x k.")] = False
    bias: Annotated[
        str | None,
        typer.Option("--bias", metavar="T", help="Type of a bias row: fp16, bf16, fp32 or int32; default no bias."),
    ] = None
    bias_batch: Annotated[bool, typer.Option("--bias-batch", help="The bias has the batch dims of C.")] = False
    format_b: Annotated[
        str, typer.Option("--format-b", metavar="FORMAT", help="Storage of B: ND or NZ (fractals).")
    ] = "ND"

    def case(self) -> BmmCase:
        """The case.

        Raises:
            InputError: an option cannot be used.
        """
        from ...hardware.errors import InputError
        from ..tables.cells import case_of

        texts: dict[str, str | None] = {name: getattr(self, name) for name in _CASE_TEXTS}
        if self.b is not None:
            if self.batch_a is not None or self.batch_b is not None:
                raise InputError(
                    "-b and --batch-a/--batch-b exclude one another; give -b when A and B have the same batch"
                )
            texts |= {"batch_a": self.b, "batch_b": self.b}
        flags = {name: getattr(self, name) for name in _CASE_FLAGS}
        try:
            return case_of(texts, **flags)
        except InputError as error:
            message = f"{error.column}: {error.message}" if error.column else error.message
            if self.b is not None and message.startswith("batch_a: "):
                message = f"-b: {message.removeprefix('batch_a: ')}"
            raise InputError(message) from None


#: Texts of a case in the order in which they are read, and what is given or not.
_CASE_TEXTS: Final = ("batch_a", "batch_b", "m", "n", "k", "dtype", "out_dtype", "bias", "format_b")
_CASE_FLAGS: Final = ("trans_a", "trans_b", "bias_batch")


@dataclass(frozen=True)
class CaseOptions(MaybeCaseOptions):
    """What describes one case, as the user wrote it."""

    m: Annotated[str, _M] = field()
    n: Annotated[str, _N] = field()
    k: Annotated[str, _K] = field()


@dataclass(frozen=True)
class RunOptions:
    """For which chip, rules and environment cases are solved, and how long, as the user wrote it."""

    hardware: Hardware = DEFAULT_HARDWARE
    rules: Rules = DEFAULT_RULES
    environment: Environment = DEFAULT_ENVIRONMENT
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT

    def seconds(self) -> float:
        """The time limit; see :func:`seconds_of`."""
        return seconds_of(self.time_limit)

    def settings(self, *, all_branches: bool = True, explain: bool = False) -> Settings:
        """What all rows of a batch share; see :func:`~tileproof.solver.settings.settings_of`.

        Raises:
            InputError: an option is not known.
        """
        from ..settings import settings_of

        names = (self.hardware, self.rules, self.environment)
        return settings_of(*names, self.seconds(), all_branches=all_branches, explain=explain)


@dataclass(frozen=True)
class JudgeOptions(RunOptions):
    """The same for commands that judge what is there: only what the hardware demands is a rule, unless asked."""

    rules: Rules = "none"


@dataclass(frozen=True)
class SearchOptions:
    """How one case is solved, as the user wrote it."""

    hardware: Hardware = DEFAULT_HARDWARE
    branch: Annotated[
        list[str] | None,
        typer.Option(
            "--branch",
            metavar="NAME",
            help=f"Branch to consider, may be repeated: {', '.join(BRANCHES)}; default all.",
        ),
    ] = None
    rules: Rules = DEFAULT_RULES
    environment: Environment = DEFAULT_ENVIRONMENT
    pin: Annotated[
        list[str] | None,
        typer.Option(
            "--pin",
            metavar="PIN",
            help="Keep a plan field as it is or in bounds, may be repeated: base_m=128, base_k=64..256, 'merge_b0>=4', "
            "l1_form=b, base_m=base_n, 'latency_us<=12'.",
        ),
    ] = None
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT

    def read(self) -> tuple[tuple[BranchName, ...], tuple[Pin, ...], float]:
        """Branches, pins and the time limit in seconds.

        Raises:
            InputError: one of them cannot be used.
        """
        from ...models.pins import parse_pins

        return branches_of(self.branch), parse_pins(self.pin or ()), seconds_of(self.time_limit)

    def context(self, case: BmmCase) -> Context:
        """The context of a case.

        Raises:
            InputError: hardware, rules or environment is not known.
        """
        from ..api import make_context

        return make_context(case, self.hardware, self.rules, self.environment)


# -- reading
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


def branches_of(names: list[str] | None) -> tuple[BranchName, ...]:
    """Branches by name.

    Raises:
        InputError: a name is not known.
    """
    from ...hardware.errors import InputError, did_you_mean

    chosen = [name.strip().lower().replace("-", "_") for name in names or BRANCHES]
    for name in chosen:
        if name not in BRANCHES:
            raise InputError(
                f"--branch: {name!r} is not known{did_you_mean(name, BRANCHES)}; allowed: {', '.join(BRANCHES)}"
            )
    return tuple(name for name in BRANCHES if name in chosen)
