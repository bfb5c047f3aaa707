"""``tileproof export``: plans in the vendor's formats."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from ..option_groups import with_option_groups
from ..options import MaybeCaseOptions, SearchOptions
from ..progress import solve_shown
from ..shell import ExitCode, say_error

if TYPE_CHECKING:
    from ....hardware import NpuSpec
    from ...result import CaseResult
    from ...tcube.plan_rows import PlanRow

_FORMATS = ("tcubetiling-json", "tcubetiling-c", "csv")


@with_option_groups
def export(
    cases: Annotated[Path | None, typer.Argument(metavar="CASES.csv", help="Cases, as `recommend` reads them.")] = None,
    plans: Annotated[
        Path | None, typer.Argument(metavar="PLANS.csv", help="Plans, as `recommend` writes them.")
    ] = None,
    style: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="tcubetiling-json, tcubetiling-c or csv (case and plan).")
    ] = _FORMATS[0],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="File; for tables a folder with one file a row, named by case_id. Default: standard output.",
        ),
    ] = None,
    *,
    given: MaybeCaseOptions,
    how: SearchOptions,
) -> None:
    """Plans as TCubeTiling (JSON, or a C initialiser for host code) or CSV.

    Either of the plans of a table, or of one case, solved first: its winner is written.

    Example: tileproof export cases.csv plans.csv --format tcubetiling-c --out tilings
    """
    from ....hardware.errors import InputError, did_you_mean

    style = style.strip().lower()
    if style not in _FORMATS:
        hint = did_you_mean(style, _FORMATS)
        raise InputError(f"--format: {style!r} is not known{hint}; allowed: {', '.join(_FORMATS)}")
    sizes = {"m": given.m, "n": given.n, "k": given.k}
    if cases is not None:
        if plans is None:
            raise InputError("PLANS.csv is missing; give a table of cases and one of plans, or the options of one case")
        if any(size is not None for size in sizes.values()):
            raise InputError("-m, -n, -k describe one case; they exclude tables of cases and plans")
        raise typer.Exit(_export_tables(cases, plans, style, out, how.hardware))
    missing = [f"-{name}" for name, size in sizes.items() if size is None]
    if missing:
        raise InputError(f"{', '.join(missing)} missing; give the sizes of a case, or CASES.csv and PLANS.csv")
    case = given.case()
    branches, pins, seconds = how.read()
    ctx = how.context(case)  # before OR-Tools is loaded
    if out is not None:
        from ...tables.files import check_targets

        check_targets([out])
    from ...search.solve_branch import SolveOptions

    result = solve_shown(ctx, branches, SolveOptions(time_limit=seconds, pins=pins), all_branches=False)
    raise typer.Exit(_export_winner(result, ctx.spec, style, out))


def _export_winner(result: CaseResult, spec: NpuSpec, style: str, out: Path | None) -> ExitCode:
    from ...tcube.export import plan_text

    best = result.best
    if best is None or best.plan is None:
        infeasible = result.verdict == "infeasible"
        say_error("no branch has a plan: proven infeasible" if infeasible else "no plan was found in the time limit")
        return ExitCode.INFEASIBLE if infeasible else ExitCode.OPEN
    text = plan_text(result.case, best.plan, spec, style)
    if out is None:
        sys.stdout.write(text)
    else:
        _write({out: text})
    return ExitCode.SOLVED if result.verdict == "proven" else ExitCode.OPEN


def _export_tables(cases: Path, plans: Path, style: str, out: Path | None, hardware: str) -> ExitCode:
    from ....hardware import get_spec
    from ...tcube.export import FORMATS, plans_text
    from ...tcube.plan_rows import file_names, read_plan_rows

    spec = get_spec(hardware)
    rows = read_plan_rows(cases, plans)
    good: list[PlanRow] = []
    texts: list[str] = []
    bad = 0
    for row in rows:
        text, error = _row_text(row, spec, style, plans)
        if error is not None:
            bad += 1
            say_error(error)
        else:
            good.append(row)
            texts.append(text)
    if out is None:
        sys.stdout.write(plans_text(good, spec, style) if good else "")
    else:
        targets = [out / name for name in file_names(good, FORMATS[style])]
        _check_folder(out, targets, (cases, plans))
        _write(dict(zip(targets, texts, strict=True)))
        print(f"{len(good)} files written to {out}, {bad} bad rows", file=sys.stderr)
    return ExitCode.BAD_INPUT if bad else ExitCode.SOLVED


def _row_text(row: PlanRow, spec: NpuSpec, style: str, file: Path) -> tuple[str, str | None]:
    """The text of a row, or what is wrong with it."""
    from ....hardware.errors import InputError
    from ...tcube.export import plan_text

    if row.case is None or row.plan is None:
        return "", str(row.error)
    try:
        return plan_text(row.case, row.plan, spec, style), None
    except InputError as error:
        return "", str(error.at(file, row.number))


def _check_folder(folder: Path, targets: list[Path], sources: tuple[Path, ...]) -> None:
    """Make the folder and see that its files can be written.

    Raises:
        InputError: it cannot be made or written, or a file would be written over a source.
    """
    from ....hardware.errors import InputError
    from ...tables.files import check_targets

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder cannot be made: {error.strerror}", file=folder) from None
    for source in sources:
        check_targets(targets, source)


def _write(texts: dict[Path, str]) -> None:
    """Write each text to its file, all or none."""
    from ...tables.files import write_files

    def writer(text: str) -> Callable[[IO[str]], None]:
        def write(stream: IO[str]) -> None:
            stream.write(text)

        return write

    write_files({path: writer(text) for path, text in texts.items()})
