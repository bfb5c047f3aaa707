"""``tileproof audit``: how far tilings somebody ships are from the optimum."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_HARDWARE,
    DEFAULT_TIME_LIMIT,
    Environment,
    Hardware,
    Jobs,
    Rules,
    TimeLimit,
    seconds_of,
)


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
    hardware: Hardware = DEFAULT_HARDWARE,
    rules: Rules = "none",
    environment: Environment = DEFAULT_ENVIRONMENT,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT,
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
    seconds = seconds_of(time_limit)
    from .audit_run import AuditRequest, run

    request = AuditRequest(tilings=tilings, out=out, jobs=jobs, resume=resume, markdown=as_markdown, json=as_json)
    raise typer.Exit(run(request, hardware, rules, environment, seconds))
