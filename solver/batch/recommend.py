"""Many cases: every row gets its result or its error, in order, wherever it is solved."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ...hardware.errors import InputError, InternalError
from ...models.case import BmmCase
from ...models.pins import Pin
from ...models.plan import BRANCHES
from ..api import solve
from ..library import PlanLibrary, Question
from ..pools.executors import Executor
from ..pools.ordered_rows import Crash
from ..result import CaseResult
from ..settings import Settings, unpacked
from ..tables.read import CaseRow
from .answers import CRASHED, RowAnswer, answer_of, refused

__all__ = ["Batch", "Summary", "solve_row"]

#: Rows in hand at most, finished or not: bounds memory when a slow row is followed by many that need no work.
_WINDOW: Final = 4096
#: Finished rows kept for equal ones.
_RECENT: Final = 1024

Task = tuple[bytes, CaseRow, bool]


def solve_row(task: Task) -> RowAnswer:
    """Solve one row in a worker: packed settings, the row, and whether the whole result is wanted.

    Raises:
        InternalError: solver and checker disagree; the message names the row.
    """
    packed, row, keep = task
    settings = unpacked(packed)
    assert row.case is not None
    try:
        result = solve(
            row.case,
            hardware=settings.spec,
            rules=settings.rules,
            environment=settings.environment,
            pins=row.pins,
            options=settings.options,
            all_branches=settings.all_branches,
        )
    except InputError as error:
        return refused(row, str(error), settings)
    except InternalError as error:
        place = f"{row.file}, row {row.number}"
        raise InternalError(f"{place}: {error.message}", report_path=error.report_path) from error
    return answer_of(row, result, settings, keep=keep)


@dataclass
class _Entry:
    """A row in hand: answered, or in work, or the same as ``twin`` (an earlier row in work), or in the library."""

    row: CaseRow
    key: str | None = None
    answer: RowAnswer | None = None
    twin: _Entry | None = None
    stored: bool = False


@dataclass
class Batch:
    """One run over many rows.

    Args:
        settings: what all rows share.
        executor: where :func:`solve_row` runs.
        sink: called with every row and its answer, in the order of the rows.
        library: where answers are looked up and kept; only this process reads and writes it.
    """

    settings: Settings
    executor: Executor
    sink: Callable[[CaseRow, RowAnswer], None]
    library: PlanLibrary | None = None
    served: int = 0
    _queue: deque[_Entry] = field(default_factory=deque)
    _in_work: deque[_Entry] = field(default_factory=deque)
    _by_key: dict[str, _Entry] = field(default_factory=dict)
    _recent: OrderedDict[tuple[str, BmmCase], RowAnswer] = field(default_factory=OrderedDict)
    _exhausted: bool = False

    def __post_init__(self) -> None:
        self._packed = self.settings.packed()
        self._question = lru_cache(maxsize=256)(self._question_of)

    def run(self, rows: Iterable[CaseRow]) -> None:
        """Answer all rows.

        Raises:
            InputError: the input or the library turns out to be damaged.
            InternalError: solver and checker disagree about a row; the message names the row.
        """
        source = iter(rows)
        while not self._exhausted:
            for answer in self.executor.map(self._tasks(source)):
                self._solved(self._in_work.popleft(), answer)
                self._drain()
            self._drain()

    def _tasks(self, source: Iterator[CaseRow]) -> Iterator[Task]:
        """Tasks of the rows that need work; ends early when too many rows wait for the oldest one."""
        for row in source:
            entry = self._entry(row)
            self._queue.append(entry)
            if entry.answer is None and entry.twin is None and not entry.stored:
                self._in_work.append(entry)
                yield self._packed, row, self.library is not None
            self._drain()
            if len(self._queue) >= _WINDOW:
                return
        self._exhausted = True

    def _entry(self, row: CaseRow) -> _Entry:
        if row.case is None:
            assert row.error is not None
            return _Entry(row, answer=refused(row, row.error.message, self.settings, row.error.column))
        if self.library is None:
            return _Entry(row)
        key = self._question(row.pins).key(row.case)
        if (twin := self._by_key.get(key)) is not None:
            return _Entry(row, key, twin=twin)
        if self.library.has(key):
            return _Entry(row, key, stored=True)
        entry = self._by_key[key] = _Entry(row, key)
        return entry

    def _question_of(self, pins: tuple[Pin, ...]) -> Question:
        shared = self.settings
        return Question(
            shared.spec,
            shared.rules,
            shared.environment,
            tuple(BRANCHES),
            tuple(pin.text for pin in pins),
            all_branches=shared.all_branches,
            explain=shared.explain,
        )

    def _solved(self, entry: _Entry, answer: RowAnswer | Crash) -> None:
        """Keep what came back for a row."""
        if isinstance(answer, Crash):
            answer = refused(entry.row, f"{CRASHED}: {answer.text}", self.settings, verdict=CRASHED)
        entry.answer = answer
        if self.library is not None and entry.key is not None:
            del self._by_key[entry.key]
            if answer.document is not None and answer.verdict != "open":
                self.library.store(entry.key, answer.document)

    def _drain(self) -> None:
        """Hand out the rows that are next in order."""
        while self._queue:
            entry = self._queue[0]
            answer = entry.answer or self._repeated(entry)
            if answer is None:
                return
            self._queue.popleft()
            self.sink(entry.row, answer)

    def _repeated(self, entry: _Entry) -> RowAnswer | None:
        """The answer of a row whose case was answered before; None while it is in work."""
        twin = None if entry.twin is None else entry.twin.answer
        if twin is None and not entry.stored:
            return None
        self.served += 1
        row = entry.row
        assert self.library is not None
        assert entry.key is not None
        assert row.case is not None
        if twin is not None and twin.error is not None:
            return refused(row, twin.error.message, self.settings, twin.error.column, twin.verdict)
        exact = (entry.key, row.case.model_copy(update={"case_id": ""}))
        if (known := self._recent.get(exact)) is not None:
            self._recent.move_to_end(exact)
            return known.renamed(row)
        if twin is not None and twin.document is not None:
            result = CaseResult.model_validate_json(twin.document).model_copy(update={"case": row.case})
        else:
            found = self.library.get(self._question(row.pins), row.case)
            if found is None:
                raise InputError("lost an entry while it was in use", file=str(self.library.path))
            result = found
        answer = self._recent[exact] = answer_of(row, result, self.settings)
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return answer


@dataclass
class Summary:
    """How many rows ended how."""

    verdicts: Counter[str] = field(default_factory=Counter)

    def count(self, verdict: str) -> None:
        """Add a row."""
        self.verdicts[verdict] += 1

    def text(self, served: int | None = None) -> str:
        """The closing line; ``served`` rows came from a library."""
        count = self.verdicts
        cases = "1 case" if count.total() == 1 else f"{count.total()} cases"
        bad = "1 bad row" if count["bad"] == 1 else f"{count['bad']} bad rows"
        text = f"{cases}: {count['proven']} optimal, {count['infeasible']} infeasible, {count['open']} unproven, {bad}"
        if count[CRASHED]:
            text += f", {count[CRASHED]} crashed"
        return text if served is None else f"{text}, {served} from the library"
