"""How far the work is, on stderr, once it takes longer than two seconds."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from ...models.context import Context
    from ...models.plan import BranchName
    from ..library import PlanLibrary
    from ..result import BranchResult, CaseResult
    from ..search.solve_branch import SolveOptions

#: Seconds of silence at first.
PATIENCE: Final = 2.0
_REFRESH: Final = 0.2


class Progress:
    """A bar when stderr is a terminal, else a plain line after two seconds, repeated every ``repeat`` seconds.

    ``total`` is ``None`` when it is not known.
    """

    def __init__(self, what: str, total: int | None, *, repeat: float | None = None) -> None:
        self._what = what
        self._total = total
        self._repeat = repeat
        self._done = 0
        self._text = ""
        self._stop = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def update(self, done: int, text: str = "") -> None:
        """``done`` of the total are done; ``text`` says what is next."""
        self._done, self._text = done, text

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        if self._stop.wait(PATIENCE):
            return
        if sys.stderr.isatty():
            self._bar()
        else:
            self._lines()

    def _lines(self) -> None:
        while True:
            seconds = time.monotonic() - self._started
            now = f", now {self._text}" if self._text else ""
            of = "" if self._total is None else f" of {self._total}"
            print(f"{self._done}{of} {self._what} after {seconds:.0f} s{now}", file=sys.stderr, flush=True)
            if self._repeat is None or self._stop.wait(self._repeat):
                return

    def _bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        text = TextColumn("{task.description}", markup=False)
        console = Console(stderr=True)
        with Bar(BarColumn(), MofNCompleteColumn(), text, TimeElapsedColumn(), console=console, transient=True) as bar:
            task = bar.add_task(self._what, total=self._total)
            while not self._stop.wait(_REFRESH):
                bar.update(task, completed=self._done, description=f"{self._what} {self._text}".strip())


def solve_shown(
    ctx: Context,
    branches: tuple[BranchName, ...],
    options: SolveOptions,
    *,
    all_branches: bool,
    library: PlanLibrary | None = None,
) -> CaseResult:
    """Solve a case, and show which branches are done."""
    from ..api import solve

    with Progress("branches", len(branches)) as progress:
        solved: list[str] = []

        def on_branch(name: BranchName, result: BranchResult) -> None:
            solved.append(name)
            progress.update(len(solved), f"{name} {result.status}")

        return solve(
            ctx.case,
            hardware=ctx.spec,
            rules=ctx.profile,
            environment=ctx.environment,
            branches=branches,
            options=options,
            all_branches=all_branches,
            on_branch=on_branch,
            library=library,
        )
