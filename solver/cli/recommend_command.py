"""``tileproof recommend``: a table of cases in, tables of results and plans out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_HARDWARE,
    DEFAULT_RULES,
    DEFAULT_TIME_LIMIT,
    Environment,
    Hardware,
    Rules,
    TimeLimit,
    seconds_of,
)
from .progress import Progress
from .shell import ExitCode, say_error

if TYPE_CHECKING:
    from ..batch import RowOutcome, Summary

#: Seconds between progress lines when stderr is no terminal.
_REPEAT = 5.0


def recommend(
    cases: Annotated[
        Path,
        typer.Argument(
            metavar="CASES.csv",
            help="Columns: m, n, k, and as you like case_id, b (or batch_a and batch_b, as 6x1), dtype, out_dtype, "
            "trans_a, trans_b, bias, bias_batch, format_b.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write one result row for each case (CSV).")],
    plans: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the winning plans (CSV); default nowhere.")
    ] = None,
    hardware: Hardware = DEFAULT_HARDWARE,
    rules: Rules = DEFAULT_RULES,
    environment: Environment = DEFAULT_ENVIRONMENT,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT,
    all_branches: Annotated[
        bool, typer.Option("--all-branches", help="Solve every branch out, also one that cannot win any more.")
    ] = False,
) -> None:
    """Best tiling for every row of a CSV file.

    Example: tileproof recommend examples/cases.csv --out result.csv --plans plans.csv
    """
    seconds = seconds_of(time_limit)
    from ..tables import check_targets, plan_table, read_cases, result_table, write_tables

    check_targets(cases, [path for path in (out, plans) if path is not None])
    rows = read_cases(cases)
    from ..batch import recommend_rows, settings_of, summary_of

    settings = settings_of(hardware, rules, environment, seconds, all_branches=all_branches)
    outcomes: list[RowOutcome] = []
    with Progress("cases", len(rows), repeat=_REPEAT) as progress:
        for outcome in recommend_rows(rows, settings):
            outcomes.append(outcome)
            progress.update(len(outcomes))
            if outcome.error is not None:
                say_error(str(outcome.error))
    tables = {out: result_table(outcomes, settings)}
    if plans is not None:
        tables[plans] = plan_table(outcomes)
    write_tables(tables)
    summary = summary_of(outcomes)
    print(summary.text(), file=sys.stderr)
    raise typer.Exit(_exit_code(summary))


def _exit_code(summary: Summary) -> ExitCode:
    if summary.bad:
        return ExitCode.BAD_INPUT
    if summary.unproven:
        return ExitCode.OPEN
    return ExitCode.INFEASIBLE if summary.infeasible else ExitCode.SOLVED
