"""Options that mean the same in every command."""

from __future__ import annotations

from typing import Annotated, Final

import typer

DEFAULT_HARDWARE: Final = "ascend950pr"
DEFAULT_RULES: Final = "v0.4"
DEFAULT_ENVIRONMENT: Final = "profiler"
DEFAULT_TIME_LIMIT: Final = "60"

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
