"""``tileproof library``: what a plan library holds, and whether it is sound."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import AsJson
from ..shell import ExitCode

if TYPE_CHECKING:
    from ...library import PlanLibrary
    from ...result import CaseResult

library_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Plan libraries, as --library of solve and recommend keeps them: proven answers by case, chip and settings.",
)

File = Annotated[Path, typer.Argument(metavar="LIBRARY", help="The library file.")]

#: Digits of a key that a list shows; more are needed only when two keys share them.
_SHORT = 12
#: Keys that a wrong one is compared with.
_COMPARED = 10_000


@library_app.command("stats")
def stats(file: File, as_json: AsJson = False) -> None:
    """How many entries there are, and how many this version serves.

    Example: tileproof library stats plans.db
    """
    from ....models.context import MODEL_VERSION
    from ...library import PlanLibrary

    with PlanLibrary(file, create=False) as library:
        found = library.stats()
    if as_json:
        document = {"entries": found.entries, "current": found.current, "bytes": found.bytes, "model": MODEL_VERSION}
        print(json.dumps(document, indent=2))
        return
    other = found.entries - found.current
    print(f"{found.entries} entries, {found.current} of model version {MODEL_VERSION}, {found.bytes} bytes")
    if other:
        print(f"{other} of other model versions are never served; `tileproof library prune {file}` drops them")


@library_app.command("get")
def get(
    file: File,
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="The start of a key; without it the keys are listed.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of text; of a list one object a line.")
    ] = False,
) -> None:
    """Show the entry of a key as `solve` shows it, or list the keys with their cases.

    Example: tileproof library get plans.db 3f2a
    """
    from ...library import PlanLibrary

    with PlanLibrary(file, create=False) as library:
        if key is None:
            _list(library, as_json=as_json)
            return
        result = _entry(library, key.strip().lower())
    if as_json:
        print(json.dumps(result.to_json(), indent=2))
    else:
        from ..render import show_result

        show_result(result)


def _entry(library: PlanLibrary, key: str) -> CaseResult:
    """The only entry whose key starts so.

    Raises:
        InputError: there is none, or more than one.
    """
    from ....hardware.errors import InputError, did_you_mean

    result = library.find(key)
    if result is None:
        keys = library.keys(key, 2)
        if keys:
            raise InputError(f"several keys start with {key!r}; give more of it", file=library.path)
        hint = did_you_mean(key[:_SHORT], (known[:_SHORT] for known in library.keys(most=_COMPARED)))
        raise InputError(f"no key starts with {key!r}{hint}; `tileproof library get` lists the keys", file=library.path)
    return result


def _list(library: PlanLibrary, *, as_json: bool) -> None:
    """One line for each entry."""
    from ...describe import case_line

    for key, result in library.entries():
        settings = [result.hardware, result.rules, result.environment, *result.pins]
        best = result.best
        time = None if best is None else best.latency_us
        if as_json:
            line = {"key": key, "case": result.case.model_dump(mode="json"), "settings": settings}
            print(json.dumps(line | {"winner": result.winner, "latency_us": time}))
            continue
        found = "infeasible" if time is None else f"{result.winner} {time:.3f} us"
        print(f"{key[:_SHORT]}  {case_line(result.case)}  {' '.join(settings)}  {found}")


@library_app.command("export")
def export_entries(
    file: File,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the entries: .csv, .jsonl or .parquet.")],
) -> None:
    """Write one row for each entry that this version serves: its key, its case, and what was found.

    Example: tileproof library export plans.db --out plans.csv
    """
    from ...batch.answers import ENTRY_COLUMNS, entry_cells
    from ...library import PlanLibrary
    from ...tables.files import check_targets
    from ...tables.write import Draft, Table

    check_targets([out], file)
    with PlanLibrary(file, create=False) as library, Draft(Table(out, ENTRY_COLUMNS), notes={}) as draft:
        for key, result in library.entries():
            draft.append(entry_cells(key, result))
        draft.finish()
        print(f"{draft.rows} entries", file=sys.stderr)


@library_app.command("prune")
def prune(file: File) -> None:
    """Drop the entries of other model versions, which are never served.

    Example: tileproof library prune plans.db
    """
    from ...library import PlanLibrary

    with PlanLibrary(file, create=False) as library:
        dropped = library.prune()
        print(f"{dropped} entries dropped, {library.stats().entries} left")


@library_app.command("check")
def check(file: File) -> None:
    """Look for damage: of the file, and of entries that cannot be read or do not add up. Exit code 3 if there is any.

    Example: tileproof library check plans.db
    """
    from ...library import PlanLibrary

    with PlanLibrary(file, create=False) as library:
        problems = library.check()
        if not problems:
            print(f"{file}: ok, {library.stats().entries} entries")
            return
    for problem in problems:
        print(f"{file}: {problem}")
    raise typer.Exit(ExitCode.INFEASIBLE)
