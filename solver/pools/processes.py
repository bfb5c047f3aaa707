"""Worker processes for batches: results in input order, a bounded window of rows in flight, crashes contained.

A worker is a fresh Python that imports the solver once and then answers calls over its pipes; it never sees the
parent's main module, so this works from a script, a notebook and the command line alike. A worker that dies loses only
the row it had: the row is tried once more on a new worker and then reported as :class:`Crash`.
"""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

_LENGTH: Final = struct.Struct(">Q")
#: Rows read ahead of the oldest unfinished one, for each worker: bounds memory, keeps workers busy.
_WINDOW: Final = 32
_ATTEMPTS: Final = 2


@dataclass(frozen=True)
class Crash:
    """A row whose worker died twice."""

    text: str


class _Worker:
    """One process and the row it works on."""

    def __init__(self, preload: Sequence[str]) -> None:
        code = "import sys; from tileproof.solver.pools.processes import serve; serve(sys.argv[1:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *preload],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # the selector must see whatever has not been read
            # A group of its own: Ctrl-C in a terminal reaches the parent, which decides what it means.
            process_group=0 if os.name == "posix" else None,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input: BinaryIO = self.process.stdin  # type: ignore[assignment]
        self.output: BinaryIO = self.process.stdout  # type: ignore[assignment]
        self.row: _Row | None = None
        self.ready = False

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.input.close()
        self.output.close()


#: Workers started before their pool.
_early: list[_Worker] = []


@contextmanager
def early_worker(preload: Sequence[str]) -> Iterator[None]:
    """Start a worker while the parent is still loading; the first pool made in this block takes it over."""
    worker = _Worker(preload)
    _early.append(worker)
    try:
        yield
    finally:
        if worker in _early:
            _early.remove(worker)
            worker.stop()


@dataclass
class _Row:
    number: int
    payload: Any
    attempts: int = 0


class WorkerPool:
    """A number of workers that run ``call(payload)`` for many payloads; use as a context manager.

    ``call`` must be importable by name (a module-level function) and pure; payloads and results are pickled. Workers
    import the modules ``preload`` while they wait for their first row.
    """

    def __init__(self, call: Callable[[Any], Any], jobs: int, *, preload: Sequence[str] = ()) -> None:
        self._call = call
        self._preload = preload
        self._selector = selectors.DefaultSelector()
        self._idle: list[_Worker] = []
        self._workers: list[_Worker] = []
        # The others follow when the first one is ready: loading at once, they would keep the first row waiting.
        self._missing = jobs - 1
        self._add()

    def _add(self) -> None:
        worker = _early.pop() if _early else _Worker(self._preload)
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        self._idle.append(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.stop()
        self._selector.close()

    def map(self, payloads: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the payloads, a :class:`Crash` where a worker died twice.

        Raises:
            Exception: whatever ``call`` raised, at the place of its row.
        """
        source = iter(payloads)
        waiting: deque[_Row] = deque()
        done: dict[int, Any] = {}
        read = written = 0
        exhausted = False
        while True:
            while not exhausted and not waiting and self._idle and read - written < _WINDOW * len(self._workers):
                try:
                    waiting.append(_Row(read, next(source)))
                    read += 1
                except StopIteration:
                    exhausted = True
                self._dispatch(waiting, done)
            self._dispatch(waiting, done)
            while written in done:
                ok, result = done.pop(written)
                written += 1
                if not ok:
                    raise result
                yield result
            if exhausted and written == read:
                return
            if written not in done and len(self._idle) < len(self._workers):
                self._collect(waiting, done)

    def _dispatch(self, waiting: deque[_Row], done: dict[int, Any]) -> None:
        while waiting and self._idle:
            worker, row = self._idle.pop(), waiting.popleft()
            worker.row = row
            row.attempts += 1
            try:
                _send(worker.input, (self._call, row.payload))
            except OSError:
                self._lost(worker, waiting, done)

    def _collect(self, waiting: deque[_Row], done: dict[int, Any]) -> None:
        for key, _ in self._selector.select():
            worker: _Worker = key.data
            try:
                answer = _receive(worker.output)
            except (EOFError, OSError):
                self._lost(worker, waiting, done)
                continue
            if not worker.ready:
                worker.ready = True
                for _ in range(self._missing):
                    self._add()
                self._missing = 0
                continue
            assert worker.row is not None
            done[worker.row.number] = answer
            worker.row = None
            self._idle.append(worker)

    def _lost(self, worker: _Worker, waiting: deque[_Row], done: dict[int, Any]) -> None:
        """Replace a dead worker; its row is tried again or given up."""
        row = worker.row
        self._selector.unregister(worker.output)
        self._workers.remove(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        worker.stop()
        if row is not None:
            if row.attempts < _ATTEMPTS:
                waiting.appendleft(row)
            else:
                code = worker.process.returncode
                done[row.number] = (True, Crash(f"its worker process died twice (exit code {code})"))
        self._add()


def _send(pipe: BinaryIO, message: Any) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    rest = memoryview(_LENGTH.pack(len(data)) + data)
    while rest:
        rest = rest[pipe.write(rest) :]
    pipe.flush()


def _receive(pipe: BinaryIO) -> Any:
    (length,) = _LENGTH.unpack(_read(pipe, _LENGTH.size))
    return pickle.loads(_read(pipe, length))


def _read(pipe: BinaryIO, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        block = pipe.read(size - len(data))
        if not block:
            raise EOFError
        data += block
    return bytes(data)


def serve(preload: Sequence[str] = ()) -> None:
    """Answer calls from standard input until it closes (the worker's main loop)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    for module in preload:
        import_module(module)
    _send(target, None)  # ready
    while True:
        try:
            call, payload = _receive(source)
        except EOFError:
            return
        try:
            answer = (True, call(payload))
        except Exception as error:
            answer = (False, error)
        _send(target, answer)
