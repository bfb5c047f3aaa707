"""The rows of a batch on their way through workers: a window of rows in flight, one more try, results in input order.

A pool asks :class:`OrderedRows` for the next row whenever it has a worker for one, and tells it how the row ended: it
was answered, or its worker was lost. What a worker is and how rows reach it is up to the pool (:mod:`.processes`,
:mod:`.dask`); rows travel as bytes, which :func:`answer` turns into an answer at the other end.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Crash", "OrderedRows", "Row", "answer"]

#: Rows read ahead of the oldest unfinished one, for each worker: bounds memory, keeps workers busy.
_WINDOW: Final = 32
_ATTEMPTS: Final = 2
#: Held by the row that runs in this process.
_running = threading.Lock()


@dataclass(frozen=True)
class Crash:
    """A row whose worker died twice."""

    text: str


@dataclass
class Row:
    """A row that is not answered: its place in the input, its call as bytes, and how many workers died of it."""

    number: int
    message: bytes
    deaths: int = 0


class OrderedRows:
    """The rows of a batch: read as needed, tried again where a worker was lost, handed out in order.

    Args:
        call: what to run for each payload; importable by name (a module-level function) and pure.
        payloads: read one by one, as workers get free.
    """

    def __init__(self, call: Callable[[Any], Any], payloads: Iterable[Any]) -> None:
        self._call = call
        self._source = iter(payloads)
        self._exhausted = False
        self._read = self._written = 0
        self._again: deque[Row] = deque()
        self._suspects: deque[Row] = deque()
        self._done: dict[int, tuple[bool, Any]] = {}

    def next(self, workers: int, *, idle: bool = True) -> Row | None:
        """A row for a worker, if there is one within the window of so many workers.

        A row that a worker may have died of is only for a worker that is ``idle``. Until it has one there are no
        others, or no worker would ever be idle.
        """
        if self._suspects:
            return self._suspects.popleft() if idle else None
        if self._again:
            return self._again.popleft()
        if self._exhausted or self._read - self._written >= _WINDOW * workers:
            return None
        try:
            payload = next(self._source)
        except StopIteration:
            self._exhausted = True
            return None
        row = Row(self._read, pickle.dumps((self._call, payload), protocol=pickle.HIGHEST_PROTOCOL))
        self._read += 1
        return row

    def answered(self, row: Row, message: bytes) -> None:
        """A worker sent its :func:`answer` for the row."""
        try:
            ok, result = pickle.loads(message)
        except Exception as error:
            ok, result = False, error
        self._done[row.number] = (ok, result)

    def failed(self, row: Row, error: Exception) -> None:
        """The row has no answer and will get none."""
        self._done[row.number] = (False, error)

    def lost(self, row: Row, *, died: bool, how: str = "") -> None:
        """The row has no worker any more; it gets another one unless its workers keep dying (of what ``how`` says)."""
        row.deaths += died
        if row.deaths >= _ATTEMPTS:
            self._done[row.number] = (True, Crash(f"its worker process died twice{how}"))
        elif row.deaths:
            self._suspects.append(row)
        else:
            self._again.append(row)

    @property
    def ready(self) -> bool:
        """The next result in order is there."""
        return self._written in self._done

    @property
    def finished(self) -> bool:
        """All rows have been handed out."""
        return self._exhausted and self._written == self._read

    def results(self) -> Iterator[Any]:
        """The results that come next in order, as far as they are there; a :class:`Crash` where a worker died twice.

        Raises:
            Exception: whatever the call raised, at the place of its row.
        """
        while self.ready:
            ok, result = self._done.pop(self._written)
            self._written += 1
            if not ok:
                raise result
            yield result


def answer(message: bytes) -> bytes:
    """Run the call of a row, in a worker: pickled, whether it went well, and its result or its error."""
    reply: tuple[bool, Any]
    try:
        call, payload = pickle.loads(message)
        with _running:
            reply = (True, call(payload))
    except Exception as error:
        reply = (False, error)
    return pickle.dumps(reply, protocol=pickle.HIGHEST_PROTOCOL)
