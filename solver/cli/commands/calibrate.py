"""``tileproof calibrate``: constants of the latency model from measured runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..notes import KeptNotes
from ..options import DEFAULT_HARDWARE, Hardware
from ..progress import Progress
from ..shell import ExitCode, say_error

if TYPE_CHECKING:
    from ...measure.calibration import Calibration


def calibrate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="MEASURED.csv",
            help="Measured runs in our columns (see `tileproof validate --help`), or an op_summary export of msprof.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="CHIP.toml", help="Where to write the calibrated chip.")],
    hardware: Hardware = DEFAULT_HARDWARE,
    fit: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Constants to fit, as head,hbm,l2,mmad_head,mte1_load,drain_fixed,drain_rate,rows; default these. "
            "Also port, in_flight, mte1_rate.",
        ),
    ] = None,
    plans: Annotated[
        Path | None,
        typer.Option(metavar="PLANS.csv", help="Tilings by case_id (the Op Name of an export); default the best ones."),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Environment of every run; default that of its set, else profiler."),
    ] = None,
    folds: Annotated[int, typer.Option(metavar="N", min=0, help="Parts for the held-out error; 0 leaves it out.")] = 5,
    bootstrap: Annotated[int, typer.Option(metavar="N", min=20, help="Draws for the 95 % intervals.")] = 200,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the parts and the draws.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:
    """Fit constants of the model to measured runs and write a chip file.

    No chip is written (exit 3) when runs held out are predicted with 40 % error or more, or a rate leaves its range.

    Example: tileproof calibrate measured.csv --hardware ascend950pr --out my_chip.toml
    """
    from ....hardware import get_spec
    from ....hardware.errors import InputError
    from ...measure.calibration import FitOptions
    from ...measure.calibration import calibrate as run_calibration
    from ...measure.chip_text import write_chip
    from ...measure.rows import read_plans, read_runs, with_plans
    from ...settings import environment_of

    if out.suffix.lower() != ".toml":
        raise InputError(f"--out: {out.name!r} must end in .toml")
    if not out.resolve().parent.is_dir():
        raise InputError(f"--out: there is no folder {out.resolve().parent}")
    if out.resolve() == file.resolve():
        raise InputError("--out: the measurements are read from it")
    spec = get_spec(hardware)
    known = None if environment is None else environment_of(environment)
    names = tuple(name.strip() for name in fit.split(",") if name.strip()) if fit is not None else ()
    notes = KeptNotes()
    rows = read_runs(file, notes)
    if plans is not None:
        rows = with_plans(rows, read_plans(plans))
    settings = FitOptions(names, folds, bootstrap, seed)
    with Progress("rows", len(rows), repeat=10.0) as progress:
        result = run_calibration(rows, spec, settings, name=out.stem, environment=known, progress=progress.update)
    if result.refusal is None:
        write_chip(result, out)
    if as_json:
        print(json.dumps(result.to_json() | {"notes": notes.sentences}, indent=2))
    else:
        _show(result, out)
    if result.refusal is not None:
        say_error(f"{out} is not written: {result.refusal}")
        raise typer.Exit(ExitCode.INFEASIBLE)


def _show(result: Calibration, out: Path) -> None:
    from ..render import make_console, new_table

    console = make_console()
    numbers = ("chip", "fitted", "low", "high")
    table = new_table("constant", *numbers, "field", numbers=numbers)
    for one in result.fitted:
        field = f"{one.constant.field} {one.constant.key}".strip()
        own, value = f"{one.constant.own:g}", f"{float(one.value):g}"
        table.add_row(one.constant.name, own, value, f"{one.low:.4g}", f"{one.high:.4g}", field)
    console.print(table)
    console.print()
    for one in result.fitted:
        if one.partners:
            held = ", ".join(f"{p.constant.name} (+-{100 * p.half_width:g} %)" for p in one.partners)
            console.print(
                f"the interval of {one.constant.name} holds the doubt about constants that were not fitted: {held}",
                soft_wrap=not console.is_terminal,
            )
    for refusal in result.refused:
        console.print(f"not fitted: {refusal.constant.name}: {refusal.reason}", soft_wrap=not console.is_terminal)
    assumed = f", {result.assumed} with an assumed tiling (the best one)" if result.assumed else ""
    console.print(f"runs: {result.rows}{assumed}")
    held_out = "" if result.held_out is None else f", {100 * result.held_out:.2f} % on runs held out"
    console.print(
        f"mean error of the times: {100 * result.before:.2f} % before, {100 * result.in_sample:.2f} % after{held_out}"
    )
    for name, (count, before, after) in result.pipes.items():
        console.print(f"counters of {name}: {count}, {100 * before:.2f} % before, {100 * after:.2f} % after")
    for warning in result.warnings:
        console.print(f"warning: {warning}", soft_wrap=not console.is_terminal)
    for reason in result.left_out:
        console.print(f"left out: {reason}", soft_wrap=not console.is_terminal)
    if result.refusal is None:
        console.print(f"written: {out}")
