"""``tileproof verify``: certificates, re-checked without CP-SAT."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..options import AsJson, Jobs, jobs_of
from ..progress import Progress
from ..shell import ExitCode, last_words, say_error

if TYPE_CHECKING:
    from ...proof.check import CheckLine

#: Seconds between progress lines when stderr is no terminal.
_REPEAT = 5.0
#: Files that make another process worth its start.
_FILES_PER_WORKER = 2


@dataclass(frozen=True)
class _Checked:
    """One file: its check lines, or why there are none."""

    file: Path
    lines: list[CheckLine]
    error: str | None = None
    crashed: bool = False

    @property
    def verdict(self) -> str:
        """ok, rejected, not fully covered, unreadable or crashed."""
        if self.crashed:
            return "crashed"
        if self.error is not None:
            return "unreadable"
        if not all(line.ok for line in self.lines):
            return "rejected"
        return "ok" if all(line.complete for line in self.lines) else "not fully covered"


#: Exit code of every verdict, the gravest first.
_EXIT_CODES = {
    "crashed": ExitCode.INTERNAL,
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
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Check certificates without the solver: rules, times, and by enumeration optimality, infeasibility and conflicts.

    Exit codes: 0 all is so; 3 a file is rejected; 2 a file is no certificate; 4 the budget ended too early; 70 a worker
    process died of a file, twice.

    Example: tileproof verify proof.json --budget 1000000
    """
    plans = None if budget is None else _plans_of(budget)
    processes = jobs_of(jobs, len(files), worth=_FILES_PER_WORKER)
    checked: list[_Checked] = []
    try:
        with (
            last_words(lambda: f"interrupted after {len(checked)} of {len(files)} files"),
            Progress("certificates", len(files), repeat=_REPEAT) as progress,
        ):
            run = _check_here if processes == 1 else _check_in_workers
            for one in run(files, plans, processes, progress):
                checked.append(one)
    finally:
        _report(checked, as_json=as_json)
    verdicts = {one.verdict for one in checked}
    raise typer.Exit(next(code for verdict, code in _EXIT_CODES.items() if verdict in verdicts))


def _report(checked: list[_Checked], *, as_json: bool) -> None:
    for one in checked:
        if one.error is not None:
            say_error(one.error)
    if as_json:
        print(json.dumps({"files": [_document(one) for one in checked]}, indent=2))
    else:
        for one in checked:
            _show(one)


def _check_here(files: list[Path], budget: int | None, _: int, progress: Progress) -> Iterator[_Checked]:
    for done, file in enumerate(files):

        def report(branch: str, listed: int, done: int = done, file: Path = file) -> None:
            progress.update(done, f"{file}: {branch}: {listed} plans")

        progress.update(done, str(file))
        yield _check(file, budget, report)


def _check_in_workers(files: list[Path], budget: int | None, jobs: int, progress: Progress) -> Iterator[_Checked]:
    from ...batch.answers import CRASHED
    from ...pools.executors import open_executor
    from ...pools.ordered_rows import Crash

    with open_executor(check_file, jobs=jobs, preload=("tileproof.solver.proof.certificate", __name__)) as executor:
        answers = executor.map((file, budget) for file in files)
        progress.update(0, str(files[0]))
        for done, (file, answer) in enumerate(zip(files, answers, strict=True), start=1):
            progress.update(done, str(files[done]) if done < len(files) else "")
            if isinstance(answer, Crash):
                answer = _Checked(file, [], f"{file}: {CRASHED}: {answer.text}", crashed=True)
            yield answer


def check_file(task: tuple[Path, int | None]) -> _Checked:
    """Check one file in a worker, with at most so many plans for each claim."""
    file, budget = task
    return _check(file, budget, lambda branch, listed: None)


def _plans_of(text: str) -> int:
    from ....hardware.errors import InputError

    if not text.isdecimal() or len(text) > 18:
        raise InputError(f"--budget: {text!r} is no number of plans; give a whole number, 0 or more")
    return int(text)


def _check(file: Path, budget: int | None, progress: Callable[[str, int], None]) -> _Checked:
    from ....hardware.errors import InputError
    from ...proof.certificate import check_certificate

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
