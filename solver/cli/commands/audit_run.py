"""The work of ``tileproof audit``: everything that can be wrong is found first, then the tilings go through."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from .... import __version__
from ....hardware.errors import InputError
from ....models.context import MODEL_VERSION
from ...batch.answers import CRASHED
from ...batch.audit import PRELOAD, AuditAnswer, AuditSummary, audit_batch, audit_row
from ...pools.executors import open_executor
from ...review.audit import MARKDOWN_HEAD, OUT_COLUMNS, AuditReader
from ...settings import Settings
from ...tables.files import check_targets
from ...tables.formats import format_of
from ...tables.read import Scan, scan
from ...tables.write import Draft, Table
from ..options import RunOptions, jobs_of
from ..progress import Progress
from ..row_errors import RowErrors
from ..run_progress import REPEAT, run_progress
from ..shell import ExitCode, say_error

__all__ = ["AuditRequest", "run"]


@dataclass(frozen=True)
class AuditRequest:
    """The files of a run, and how to show it."""

    tilings: Path
    out: Path | None
    jobs: str | None
    resume: bool
    markdown: bool
    json: bool

    @property
    def shows(self) -> bool:
        """Whether the tilings are shown on stdout, for which all of them are kept."""
        return self.json or self.markdown or self.out is None


def run(request: AuditRequest, how: RunOptions) -> ExitCode:
    """Audit all tilings and show or write them.

    Raises:
        InputError: a file or an option cannot be used.
    """
    jobs_of(request.jobs, None)
    if request.resume and request.shows:
        raise InputError("--resume goes with --out alone: what is printed is not kept")
    if request.out is not None:
        check_targets([request.out], request.tilings)
        format_of(request.out)
    settings = how.settings()
    found = scan(request.tilings, lambda: AuditReader(request.tilings, settings.spec).texts())
    if found is None and request.resume:
        raise InputError("--resume needs the tilings in a file, not in a pipe", file=request.tilings)
    total = None if found is None else found.rows
    reader = AuditReader(request.tilings, settings.spec)
    for error in reader.errors:
        say_error(str(error))
    summary, shown = AuditSummary(), list[AuditAnswer]()
    errors = RowErrors("the output" if request.out is None else f"column error of {request.out}")
    with ExitStack() as stack:
        executor = open_executor(audit_row, jobs=jobs_of(request.jobs, total), preload=PRELOAD)
        stack.enter_context(executor)
        draft = None
        if request.out is not None:
            draft = stack.enter_context(_draft(request, request.out, settings, found, summary))
        skip = 0 if draft is None else draft.rows
        with _progress(draft, total) as progress:
            answers = audit_batch(islice(reader, skip, None), settings, executor)
            for done, answer in enumerate(answers, start=skip + 1):
                if draft is not None:
                    draft.append(answer.cells)
                if request.shows:
                    shown.append(answer)
                summary.count(answer.verdict, answer.document.get("regret_pct"))
                progress.update(done)
                if answer.error is not None:
                    errors.say(answer.error)
        if draft is not None:
            draft.finish()
    if request.shows:
        _show(request, shown)
    print(summary.text(len(reader.errors)), file=sys.stderr)
    return _exit_code(summary.verdicts, len(reader.errors))


def _draft(request: AuditRequest, out: Path, settings: Settings, found: Scan | None, summary: AuditSummary) -> Draft:
    notes = {
        "content of the table of tilings": "" if found is None else found.sha256,
        "chip": settings.spec.name,
        "set of chip numbers": settings.spec.fingerprint(),
        "--rules": settings.rules,
        "--environment": settings.environment,
        "--time-limit": str(settings.time_limit),
        "model version": MODEL_VERSION,
        "program version": __version__,
    }
    return Draft(Table(out, OUT_COLUMNS), notes=notes, resume=request.resume, recovered=summary.recovered)


def _progress(draft: Draft | None, total: int | None) -> Any:
    if draft is None:
        return Progress("tilings", total, repeat=REPEAT)
    return run_progress("tilings", draft, total)


def _exit_code(verdicts: Counter[str], bad_columns: int) -> ExitCode:
    if verdicts[CRASHED]:
        return ExitCode.INTERNAL
    if verdicts["bad"] or bad_columns:
        return ExitCode.BAD_INPUT
    if verdicts["illegal"]:
        return ExitCode.INFEASIBLE
    return ExitCode.OPEN if verdicts["open"] else ExitCode.SOLVED


def _show(request: AuditRequest, answers: Iterable[AuditAnswer]) -> None:
    if request.json:
        print(json.dumps([answer.document for answer in answers], indent=2))
    elif request.markdown:
        print("\n".join([*MARKDOWN_HEAD, *(answer.markdown for answer in answers)]))
    else:
        _show_table(answers)


def _show_table(answers: Iterable[AuditAnswer]) -> None:
    from ..render import make_console, new_table

    table = new_table(
        "row", "case", "branch", "legal", "latency us", "branch opt.", "optimum", "regret %", "roofline x",
        "first change", numbers=("latency us", "branch opt.", "optimum", "regret %", "roofline x"),
    )  # fmt: skip
    for answer in answers:
        row = answer.document
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
