"""The work of ``tileproof recommend``: everything that can be wrong is found first, then the rows go through."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from .... import __version__
from ....hardware.errors import InputError
from ....models.context import MODEL_VERSION
from ...batch.answers import CRASHED, RowAnswer, result_columns
from ...batch.recommend import Batch, Summary, solve_row
from ...library import PlanLibrary
from ...pools.executors import PRELOAD, Executor, open_executor
from ...settings import Settings
from ...tables.columns import PLAN_COLUMNS
from ...tables.files import check_targets
from ...tables.formats import format_of
from ...tables.pins_file import PinsFile, check_names, pinned_rows, read_pins
from ...tables.read import CaseReader, CaseRow, Scan, name_of, scan
from ...tables.write import Draft, Table
from ..options import RunOptions, jobs_of
from ..row_errors import RowErrors
from ..run_progress import file_hash, run_progress
from ..shell import ExitCode

__all__ = ["Request", "run"]


@dataclass(frozen=True)
class Request:
    """The files of a run, and where it works."""

    cases: Path
    out: Path
    plans: Path | None
    pins: Path | None
    jobs: str | None
    cluster: str | None
    library: Path | None
    resume: bool


def run(request: Request, how: RunOptions, *, all_branches: bool, explain: bool) -> ExitCode:
    """Answer all rows and put the tables in their places.

    Raises:
        InputError: a file, an option or the library cannot be used.
        InternalError: solver and checker disagree about a row.
    """
    _check_options(request)
    found = scan(request.cases, lambda: CaseReader(request.cases).texts())
    if found is None and request.resume:
        raise InputError("--resume needs the cases in a file, not in a pipe", file=request.cases)
    pins = None if request.pins is None else _read_pins(request, request.pins, found)
    settings = how.settings(all_branches=all_branches, explain=explain)
    total = None if found is None else found.rows
    summary = Summary()
    errors = RowErrors(f"column error of {request.out}")
    with ExitStack() as stack:
        library = None if request.library is None else stack.enter_context(PlanLibrary(request.library))
        executor = stack.enter_context(_executor(request, total))
        draft = stack.enter_context(_draft(request, settings, found, summary))
        with run_progress("cases", draft, total) as progress:

            def sink(row: CaseRow, answer: RowAnswer) -> None:
                draft.append(answer.result, answer.plan)
                summary.count(answer.verdict)
                progress.update(draft.rows)
                if answer.error is not None:
                    errors.say(answer.error)

            batch = Batch(settings, executor, sink, library)
            rows = CaseReader(request.cases).cases(skip=draft.rows)
            batch.run(rows if pins is None else pinned_rows(rows, pins))
        draft.finish()
    print(summary.text(None if library is None else batch.served), file=sys.stderr)
    return _exit_code(summary.verdicts)


def _check_options(request: Request) -> None:
    if request.cluster is not None and request.jobs is not None:
        raise InputError("--cluster and --jobs exclude one another: a cluster has the processes that it has")
    jobs_of(request.jobs, None)
    targets = [path for path in (request.out, request.plans) if path is not None]
    check_targets(targets, request.cases)
    for path in targets:
        format_of(path)


def _read_pins(request: Request, path: Path, found: Scan | None) -> PinsFile:
    pins = read_pins(path)
    if pins.of_case and found is None:
        raise InputError('[case."<case_id>"] needs the cases in a file, not in a pipe', file=path)
    check_names(pins, lambda: (name_of(row) for row in CaseReader(request.cases).texts()))
    return pins


def _executor(request: Request, rows: int | None) -> Executor:
    return open_executor(solve_row, jobs=jobs_of(request.jobs, rows), cluster=request.cluster, preload=PRELOAD)


def _draft(request: Request, settings: Settings, found: Scan | None, summary: Summary) -> Draft:
    def has_plan(cells: Mapping[str, str]) -> bool:
        return cells["plan_branch"] != ""

    def recovered(cells: Mapping[str, str]) -> None:
        unsolved = CRASHED if cells["error"].startswith(f"{CRASHED}: ") else "bad"
        summary.count(cells["verdict"] or unsolved)

    main = Table(request.out, result_columns(settings))
    second = None if request.plans is None else Table(request.plans, PLAN_COLUMNS)
    notes = _notes(request, settings, found)
    return Draft(main, second, notes=notes, resume=request.resume, has_second=has_plan, recovered=recovered)


def _notes(request: Request, settings: Settings, found: Scan | None) -> dict[str, str]:
    """All that decides the content of the tables."""
    plans = "" if request.plans is None else os.path.relpath(request.plans.resolve(), request.out.resolve().parent)
    return {
        "content of the case table": "" if found is None else found.sha256,
        "chip": settings.spec.name,
        "set of chip numbers": settings.spec.fingerprint(),
        "--rules": settings.rules,
        "--environment": settings.environment,
        "--time-limit": str(settings.time_limit),
        "--all-branches": str(settings.all_branches),
        "--explain": str(settings.explain),
        "--plans": plans,
        "content of the pins file": "" if request.pins is None else file_hash(request.pins),
        "model version": MODEL_VERSION,
        "program version": __version__,
    }


def _exit_code(verdicts: Counter[str]) -> ExitCode:
    """The gravest verdict decides."""
    for verdict, code in (
        (CRASHED, ExitCode.INTERNAL),
        ("bad", ExitCode.BAD_INPUT),
        ("open", ExitCode.OPEN),
        ("infeasible", ExitCode.INFEASIBLE),
    ):
        if verdicts[verdict]:
            return code
    return ExitCode.SOLVED
