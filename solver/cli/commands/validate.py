"""``tileproof validate``: the model against measured times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..notes import KeptNotes
from ..options import DEFAULT_TIME_LIMIT, TimeLimit, seconds_of
from ..progress import Progress

if TYPE_CHECKING:
    from ...measure.validation import Validation


def validate(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE.csv]",
            help="Measured runs; columns: m, n, k, latency_us, and as you like set, chip, b, dtype, trans_a, trans_b, "
            "base_m, base_n, base_k and other plan columns, mac_us, mte1_us, mte2_us, fixpipe_us; or an op_summary "
            "export of msprof. Default: the public measurements that come with tileproof.",
        ),
    ] = None,
    hardware: Annotated[
        str | None,
        typer.Option("--hardware", metavar="NAME|FILE", help="Chip for every row; default the one that the row names."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw predicted against measured times (.png or .svg).")
    ] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the tables of docs/validation.md.")] = False,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:
    """Compare the model with measured runs, set by set.

    For a FILE, "heads of the shipped runs" is the error with heads fitted on the public runs alone: out of sample.

    Example: tileproof validate --plot validation.png
    """
    seconds = seconds_of(time_limit)
    from ....hardware.measured import measurements
    from ...measure.plot import check_picture, draw
    from ...measure.rows import read_runs
    from ...measure.validation import markdown
    from ...measure.validation import validate as run_validation

    if plot is not None:
        check_picture(plot)
    notes = KeptNotes()
    rows = measurements() if file is None else read_runs(file, notes)
    with Progress("rows", len(rows)) as progress:
        result = run_validation(
            rows,
            hardware=hardware,
            with_shipped_heads=file is not None,
            time_limit=seconds,
            progress=progress.update,
        )
    if plot is not None:
        draw(result, plot)
    if as_json:
        document = result.to_json()
        if file is not None:
            document["notes"] = notes.sentences
        print(json.dumps(document, indent=2))
    elif as_markdown:
        print(markdown(result), end="")
    else:
        _show(result)


def _out_of_sample(result: Validation, known: bool) -> str:
    mean = result.shipped_headline(tiling_known=known)
    return "" if mean is None else f", {mean:.1f} % with the heads of the shipped runs (out of sample)"


def _show(result: Validation) -> None:
    from ..render import make_console, new_table

    console = make_console()
    shipped = ("heads of the\nshipped runs %",) if result.shipped else ()
    numbers = ("rows", "head us", "MAPE %", "bias %", "worst %", "held out %", *shipped, "fixed head %", "rank")
    table = new_table("set", "tile", "role", "env.", *numbers, numbers=numbers)
    for score in result.sets:
        table.add_row(
            score.name,
            "known" if score.tiling_known else "best",
            score.role,
            score.environment,
            str(len(score.predictions)),
            f"{score.head_us:.2f}" + ("" if score.fitted else " (spec)"),
            f"{score.own.mape:.1f}",
            f"{score.own.bias:+.1f}",
            f"{score.own.worst:+.1f}",
            "" if score.held_out_mape is None else f"{score.held_out_mape:.1f}",
            *(
                (f"{result.shipped[score.name].errors.mape:.1f}" if score.name in result.shipped else "",)
                if shipped
                else ()
            ),
            f"{score.fixed.mape:.1f}",
            "" if score.rank is None else f"{score.rank:.2f}",
        )
    console.print(table)
    console.print()
    for known, name in ((True, "tile known"), (False, "best tile")):
        own, shared, fixed = (result.headline(tiling_known=known, head=head) for head in ("own", "shared", "fixed"))
        if own is not None:
            console.print(
                f"{name}: mean of the sets that count {own:.1f} % with a head for each set, {shared:.1f} % with one "
                f"for each environment, {fixed:.1f} % with the heads of the chip{_out_of_sample(result, known)}",
                soft_wrap=not console.is_terminal,
            )
    for shape in result.shapes:
        rank = "" if shape.rank is None else f", rank correlation {shape.rank:.2f}"
        console.print(f"tilings of {shape.label}: {shape.pairs_in_order:g} of {shape.pairs} pairs in order{rank}")
    for p in result.left_out:
        console.print(f"left out: row {p.row.row}, {p.row.label}: {p.left_out}", soft_wrap=not console.is_terminal)
