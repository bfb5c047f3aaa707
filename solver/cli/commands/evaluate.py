"""``tileproof evaluate``: tilings somebody has, judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..option_groups import with_option_groups
from ..options import JudgeOptions
from ..progress import Progress
from ..shell import ExitCode, say_error

if TYPE_CHECKING:
    from ...review.evaluate import EvaluateSummary
    from ...review.tilings import JudgedTiling

_REPEAT = 5.0
_FORMATS = ("csv", "tcubetiling")


@with_option_groups
def evaluate(
    cases: Annotated[Path, typer.Argument(metavar="CASES.csv", help="Cases, as `tileproof recommend` reads them.")],
    plans: Annotated[
        Path,
        typer.Argument(
            metavar="PLANS",
            help="Tilings: a table with case_id or row (the line of the case) and plan columns, as `recommend --plans` "
            "writes it, empty cells being open; or TCubeTiling structs as JSON or C text.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write one row for each tiling (CSV).")
    ] = None,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="What PLANS is: csv or tcubetiling.")] = "csv",
    gap: Annotated[
        bool,
        typer.Option(
            "--gap", help="Add the optimum of the branch and of all, the roofline and the least traffic, with ratios."
        ),
    ] = False,
    *,
    how: JudgeOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list on stdout.")] = False,
) -> None:
    """Which tilings are legal, how long they take, and what to change.

    Example: tileproof evaluate examples/cases.csv plans.csv --out eval.csv
    """
    how.seconds()  # before the files are read
    from ....hardware.errors import InputError
    from ...tables.files import check_targets

    if form not in _FORMATS:
        raise InputError(f"--format: {form!r} is not known; allowed: {', '.join(_FORMATS)}")
    if out is None and not as_json:
        raise InputError("give --out FILE, --json or both")
    if out is not None:
        check_targets([out], cases)
        check_targets([out], plans)
    from ...review.evaluate import EvaluateSummary, evaluate_rows, evaluation_table, read_tilings, to_json

    rows, errors = read_tilings(cases, plans, form)
    for error in errors:
        say_error(str(error))
    settings = how.settings()
    outcomes: list[JudgedTiling] = []
    with Progress("plans", len(rows), repeat=_REPEAT) as progress:
        for outcome in evaluate_rows(rows, settings, gap=gap):
            outcomes.append(outcome)
            progress.update(len(outcomes))
            if outcome.error is not None:
                say_error(str(outcome.error))
    if out is not None:
        from ...tables.frames import write_tables

        write_tables({out: evaluation_table(outcomes, gap=gap)})
    if as_json:
        print(json.dumps([to_json(outcome) for outcome in outcomes], indent=2))
    summary = EvaluateSummary.of(outcomes, len(errors))
    print(summary.text, file=sys.stderr)
    raise typer.Exit(_exit_code(summary))


def _exit_code(summary: EvaluateSummary) -> ExitCode:
    if summary.bad:
        return ExitCode.BAD_INPUT
    if summary.infeasible:
        return ExitCode.INFEASIBLE
    return ExitCode.OPEN if summary.open else ExitCode.SOLVED
