"""The command ``tileproof``."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Annotated

import typer

from .commands.audit import audit
from .commands.calibrate import calibrate
from .commands.diff_rules import diff_rules
from .commands.evaluate import evaluate
from .commands.explain import explain
from .commands.export import export
from .commands.hardware import hardware_app
from .commands.library import library_app
from .commands.next_experiments import next_experiments
from .commands.recommend import recommend
from .commands.solve import solve
from .commands.validate import validate
from .commands.verify import verify
from .shell import Shell, watch_interrupts

app = typer.Typer(
    name="tileproof",
    cls=Shell,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Rich's help would take half of the start-up
    no_args_is_help=True,
    help="Proven tilings for Batch MatMul on the Ascend 950 NPU: feasible, optimal or impossible, with the reason.",
    epilog="Exit codes: 0 solved; 2 bad input; 3 proven infeasible, or a check failed; 4 no verdict in the time limit; "
    "70 internal error, or a worker process died of a row; 130 interrupted.",
)
app.command("solve")(solve)
app.command("explain")(explain)
app.command("verify")(verify)
app.command("recommend")(recommend)
app.command("evaluate")(evaluate)
app.command("audit")(audit)
app.command("diff-rules")(diff_rules)
app.command("validate")(validate)
app.command("calibrate")(calibrate)
app.command("next-experiments")(next_experiments)
app.command("export")(export)
app.add_typer(library_app, name="library")
app.add_typer(hardware_app, name="hardware")


def _show_version(wanted: bool) -> None:
    if wanted:
        from ... import __version__

        typer.echo(f"tileproof {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(ValueError):
                stream.reconfigure(errors="backslashreplace")
    watch_interrupts()
    app()


if __name__ == "__main__":
    main()
