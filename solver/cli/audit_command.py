"""``tileproof audit``: how far tilings somebody ships are from the optimum."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_HARDWARE,
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
    from ..audit import Audited

_REPEAT = 5.0


def audit(
    tilings: Annotated[
        Path,
        typer.Argument(
            metavar="TILINGS.csv",
            help="One tiling a row: the columns of a case and of a plan, empty cells being open, or the vendor's field "
            "names (strategy, base_m, k_l1, l1_buffer_num, ...).",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write one row for each tiling (CSV).")
    ] = None,
    hardware: Hardware = DEFAULT_HARDWARE,
    rules: Rules = "none",
    environment: Environment = DEFAULT_ENVIRONMENT,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of docs/audit.md.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead of a table.")] = False,
) -> None:
    """Which tilings are legal, their time, the optimum, the regret, and the single change that gains most.

    Example: tileproof audit examples/tilings.csv --out audit.csv
    """
    seconds = seconds_of(time_limit)
    from ..files import check_targets

    if out is not None:
        check_targets([out], tilings)
    from ..audit import audit_rows, audit_table, markdown, read_audit, to_json
    from ..batch import settings_of

    settings = settings_of(hardware, rules, environment, seconds, all_branches=True)
    rows, errors = read_audit(tilings, settings.spec)
    for error in errors:
        say_error(str(error))
    results: list[Audited] = []
    with Progress("tilings", len(rows), repeat=_REPEAT) as progress:
        for result in audit_rows(rows, settings):
            results.append(result)
            progress.update(len(results))
            if result.error is not None:
                say_error(str(result.error))
    if out is not None:
        from ..tables import write_tables

        write_tables({out: audit_table(results)})
    if as_json:
        print(json.dumps([to_json(result) for result in results], indent=2))
    elif as_markdown:
        print(markdown(results), end="")
    elif out is None:
        _show(results)
    raise typer.Exit(_summary(results, len(errors)))


def _summary(results: list[Audited], errors: int) -> ExitCode:
    judged = [result.judgement for result in results if result.judgement is not None]
    legal = sum(verdict.feasible for verdict in judged)
    bad = len(results) - len(judged) + errors
    illegal = sum(not verdict.feasible and not verdict.open for verdict in judged)
    text = f"{len(results)} tilings: {legal} legal, {illegal} not, {bad} bad"
    regrets = sorted(result.regret for result in results if result.regret is not None)
    if regrets:
        text += f"; regret {regrets[len(regrets) // 2]:.1f} % at the median, {regrets[-1]:.1f} % at most (model times)"
    print(text, file=sys.stderr)
    if bad:
        return ExitCode.BAD_INPUT
    if illegal:
        return ExitCode.INFEASIBLE
    return ExitCode.SOLVED if legal == len(results) else ExitCode.OPEN


def _show(results: list[Audited]) -> None:
    from ..audit import to_json
    from .render import make_console, new_table

    table = new_table(
        "row", "case", "branch", "legal", "latency us", "branch opt.", "optimum", "regret %", "roofline x",
        "first change", numbers=("latency us", "branch opt.", "optimum", "regret %", "roofline x"),
    )  # fmt: skip
    for result in results:
        row = to_json(result)
        if "error" in row:
            table.add_row(str(row["row"]), row["case_id"], row["error"])
            continue
        numbers = [
            "" if row[name] is None else f"{row[name]:.{digits}f}"
            for name, digits in (
                ("latency_us", 3), ("branch_optimum_us", 3), ("optimum_us", 3), ("regret_pct", 1),
                ("roofline_ratio", 2),
            )
        ]  # fmt: skip
        legal = "yes" if row["legal"] else ", ".join(row["violations"])
        table.add_row(str(row["row"]), row["case_id"], row["branch"], legal, *numbers, row["first_change"])
    make_console().print(table)
