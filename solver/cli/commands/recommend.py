"""``tileproof recommend``: a table of cases in, tables of results and plans out."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ..option_groups import with_option_groups
from ..options import Jobs, Library, RunOptions


@with_option_groups
def recommend(
    cases: Annotated[
        Path,
        typer.Argument(
            metavar="CASES",
            help="Cases: .csv, .jsonl (one object a line) or .parquet. Columns: m, n, k, "
            "and as you like case_id, b (or batch_a and batch_b, as 6x1), dtype, out_dtype, "
            "trans_a, trans_b, bias, bias_batch, format_b; and pin_<plan field>, as 128, 64..256, >=4 or b.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Where to write one result row for each case: .csv, .jsonl or .parquet."),
    ],
    plans: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the winning plans, by ending as --out; default nowhere."),
    ] = None,
    pins: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='TOML with pins: [pins] for all rows, [case."<case_id>"] for one; base_m = 128, base_k = "64..256", '
            'merge_b0 = ">=4", l1_form = "b". For one field a pin column counts before the case before [pins].',
        ),
    ] = None,
    *,
    how: RunOptions,
    all_branches: Annotated[
        bool, typer.Option("--all-branches", help="Solve every branch out, also one that cannot win any more.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add columns conflict_<branch>: the rules that make it infeasible.")
    ] = False,
    jobs: Jobs = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Work on a dask cluster instead: tcp://host:port of its scheduler, or local."
        ),
    ] = None,
    library: Library = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on where the same command was interrupted (its rows are in FILE.partial)."),
    ] = False,
) -> None:
    """Best tiling for every row of a table, in order; memory does not grow with the table.

    After Ctrl-C the finished rows are in FILE.partial, and --resume goes on. A row whose worker process dies is tried
    once more and then reported in its error cell; the exit code is then 70.

    Example: tileproof recommend examples/cases.csv --out result.csv --plans plans.csv
    """
    how.seconds()  # before a worker is started
    from ...pools.executors import PRELOAD, early_start

    with nullcontext() if cluster else early_start(cases, jobs, PRELOAD):
        from .recommend_run import Request, run

        request = Request(
            cases=cases,
            out=out,
            plans=plans,
            pins=pins,
            jobs=jobs,
            cluster=cluster,
            library=library,
            resume=resume,
        )
        code = run(request, how, all_branches=all_branches, explain=explain)
    raise typer.Exit(code)
