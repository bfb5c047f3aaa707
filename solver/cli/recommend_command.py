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
            "trans_a, trans_b, bias, bias_batch, format_b; and pin_<plan field>, as 128, 64..256, >=4 or b.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write one result row for each case (CSV).")],
    plans: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the winning plans (CSV); default nowhere.")
    ] = None,
    pins: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='TOML with pins: [pins] for all rows, [case."<case_id>"] for one; base_m = 128, base_k = "64..256", '
            'merge_b0 = ">=4", l1_form = "b". For one field a pin column counts before the case before [pins].',
        ),
    ] = None,
    hardware: Hardware = DEFAULT_HARDWARE,
    rules: Rules = DEFAULT_RULES,
    environment: Environment = DEFAULT_ENVIRONMENT,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT,
    all_branches: Annotated[
        bool, typer.Option("--all-branches", help="Solve every branch out, also one that cannot win any more.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add columns conflict_<branch>: the rules that make it infeasible.")
    ] = False,
) -> None:
    """Best tiling for every row of a CSV file.

    Example: tileproof recommend examples/cases.csv --out result.csv --plans plans.csv
    """
    seconds = seconds_of(time_limit)
    from ..files import check_targets
    from ..tables import plan_table, read_cases, result_table, write_tables

    check_targets([path for path in (out, plans) if path is not None], cases)
    rows = read_cases(cases)
    if pins is not None:
        from ..pins_file import pinned_rows, read_pins

        rows = pinned_rows(rows, read_pins(pins))
    from ..batch import recommend_rows, settings_of, summary_of

    settings = settings_of(hardware, rules, environment, seconds, all_branches=all_branches, explain=explain)
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
