"""``tileproof next-experiments``: the few runs whose measurement would tell most."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ..option_groups import with_option_groups
from ..options import JudgeOptions
from ..progress import Progress
from ..shell import say_error


@with_option_groups
def next_experiments(
    cases: Annotated[Path, typer.Argument(metavar="CASES.csv", help="Cases, as `tileproof recommend` reads them.")],
    count: Annotated[int, typer.Option(metavar="N", min=1, help="How many runs to propose.")] = 5,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PLANS.csv", help="Where to write the runs as a plan table, with a column reason."),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Where to write them as a table of measurements with latency_us empty: fill it in and give it to "
            "`tileproof calibrate`.",
        ),
    ] = None,
    intervals: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Intervals of constants (`tileproof calibrate --json`); default by the confidence marks of the chip.",
        ),
    ] = None,
    *,
    how: JudgeOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Propose the runs that best separate the top tilings or pin down the weakest constant.

    Example: tileproof next-experiments examples/cases.csv --count 5 --out plans.csv
    """
    how.seconds()  # before the cases are read
    from ...tables.files import check_targets
    from ...tables.frames import read_cases, write_tables

    targets = [path for path in (out, template) if path is not None]
    check_targets(targets, cases)
    rows = read_cases(cases)
    settings = how.settings()
    spec = settings.spec
    from ...measure.experiment_tables import experiment_rows, experiment_table, template_table
    from ...measure.experiments import propose
    from ...measure.spans import spans_from, spans_of

    spans = spans_of(spec) if intervals is None else spans_from(intervals, spec)
    for row in rows:
        if row.error is not None:
            say_error(str(row.error))
    good = [row for row in rows if row.case is not None]
    with Progress("cases", len(good), repeat=10.0) as progress:
        found = propose(
            [row.case for row in good if row.case is not None],
            spans,
            spec=spec,
            rules=settings.rules,
            environment=settings.environment,
            count=count,
            options=settings.options,
            progress=progress.update,
        )
    numbers = {row.case: row.number for row in good}
    lines = experiment_rows(found, {case: number for case, number in numbers.items() if case is not None})
    tables = {}
    if out is not None:
        tables[out] = experiment_table(lines)
    if template is not None:
        tables[template] = template_table(found)
    write_tables(tables)
    if as_json:
        print(json.dumps(lines, indent=2))
    else:
        for index, one in enumerate(found, 1):
            print(f"{index}. case {one.candidate.case.case_id}, {one.candidate.plan.branch}: {one.reason}")
    raise typer.Exit(2 if len(good) < len(rows) else 0)
