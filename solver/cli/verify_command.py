"""``tileproof verify``: certificates, re-checked without CP-SAT."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson
from .progress import Progress
from .shell import ExitCode, say_error

if TYPE_CHECKING:
    from ..certificate import CheckLine

#: Seconds between progress lines when stderr is no terminal.
_REPEAT = 5.0


@dataclass(frozen=True)
class _Checked:
    """One file: its check lines, or why there are none."""

    file: Path
    lines: list[CheckLine]
    error: str | None = None

    @property
    def verdict(self) -> str:
        """ok, rejected, not fully covered or unreadable."""
        if self.error is not None:
            return "unreadable"
        if not all(line.ok for line in self.lines):
            return "rejected"
        return "ok" if all(line.complete for line in self.lines) else "not fully covered"


#: Exit code of every verdict, the gravest first.
_EXIT_CODES = {
    "rejected": ExitCode.INFEASIBLE,
    "unreadable": ExitCode.BAD_INPUT,
    "not fully covered": ExitCode.OPEN,
    "ok": ExitCode.SOLVED,
}


def verify(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Certificates of `tileproof solve --certificate`.")
    ],
    budget: Annotated[
        str | None,
        typer.Option(metavar="PLANS", help="Most plans to enumerate for each claim; default as many as it takes."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check certificates without the solver: rules, times, and by enumeration optimality, infeasibility and conflicts.

    Exit codes: 0 all is so; 3 a file is rejected; 2 a file is no certificate; 4 the budget ended too early.

    Example: tileproof verify proof.json --budget 1000000
    """
    plans = None if budget is None else _plans_of(budget)
    checked: list[_Checked] = []
    with Progress("certificates", len(files), repeat=_REPEAT) as progress:
        for file in files:

            def report(branch: str, listed: int, file: Path = file) -> None:
                progress.update(len(checked), f"{file}: {branch}: {listed} plans")

            progress.update(len(checked), str(file))
            checked.append(_check(file, plans, report))
    for one in checked:
        if one.error is not None:
            say_error(one.error)
    if as_json:
        print(json.dumps({"files": [_document(one) for one in checked]}, indent=2))
    else:
        for one in checked:
            _show(one)
    verdicts = {one.verdict for one in checked}
    raise typer.Exit(next(code for verdict, code in _EXIT_CODES.items() if verdict in verdicts))


def _plans_of(text: str) -> int:
    from ...hardware.errors import InputError

    if not text.isdecimal() or len(text) > 18:
        raise InputError(f"--budget: {text!r} is no number of plans; give a whole number, 0 or more")
    return int(text)


def _check(file: Path, budget: int | None, progress: Callable[[str, int], None]) -> _Checked:
    from ...hardware.errors import InputError
    from ..certificate import check_certificate

    try:
        data = json.loads(file.read_bytes())
        return _Checked(file, check_certificate(data, budget=budget, progress=progress))
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except InputError as error:
        message = str(error)
    except RecursionError:
        message = "is no JSON: nested too deeply"
    except ValueError as error:  # no JSON, or no UTF-8
        message = f"is no JSON: {error}"
    return _Checked(file, [], f"{file}: {message}")


def _show(checked: _Checked) -> None:
    if checked.error is not None:
        return
    verdict = checked.verdict
    if verdict == "ok":
        print(f"{checked.file}: ok, {len(checked.lines)} checks")
        return
    print(f"{checked.file}: {'REJECTED' if verdict == 'rejected' else verdict}")
    for line in checked.lines:
        if not line.ok or not line.complete:
            print(f"  {line.where}: {line.text}")


def _document(checked: _Checked) -> dict[str, Any]:
    return {
        "file": str(checked.file),
        "verdict": checked.verdict.replace(" ", "_"),
        "error": checked.error,
        "lines": [asdict(line) for line in checked.lines],
    }
