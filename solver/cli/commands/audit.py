"""``tileproof audit``: how far tilings somebody ships are from the optimum."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..option_groups import with_option_groups
from ..options import Jobs, JudgeOptions


@with_option_groups
def audit(
    tilings: Annotated[
        Path,
        typer.Argument(
            metavar="TILINGS",
            help="One tiling a row (.csv, .jsonl or .parquet): the columns of a case and of a plan, empty cells being "
            "open, or the vendor's field names (strategy, base_m, k_l1, l1_buffer_num, ...).",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write one row for each tiling: .csv, .jsonl or .parquet."),
    ] = None,
    *,
    how: JudgeOptions,
    jobs: Jobs = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on where the same command was interrupted (its rows are in FILE.partial)."),
    ] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of docs/audit.md.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of a table.")] = False,
) -> None:
    """Which tilings are legal, their time, the optimum, the regret, and the single change that gains most.

    Example: tileproof audit examples/tilings.csv --out audit.csv
    """
    how.seconds()
    from .audit_run import AuditRequest, run

    request = AuditRequest(tilings=tilings, out=out, jobs=jobs, resume=resume, markdown=as_markdown, json=as_json)
    raise typer.Exit(run(request, how))
