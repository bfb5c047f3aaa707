"""Worker processes for batches: results in input order, a bounded window of rows in flight, crashes contained.

A worker is a fresh Python that imports the solver once and then answers calls over its pipes; it never sees the
parent's main module, so this works from a script, a notebook and the command line alike. A worker that dies loses only
the row it had: the row is tried once more on a new worker and then reported as a crash.
"""

from __future__ import annotations

import os
import selectors
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any, Final, Self

from .ordered_rows import OrderedRows, Row, answer

__all__ = ["WorkerPool", "early_worker", "serve"]

_LENGTH: Final = struct.Struct(">Q")


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
        self.input, self.output = self.process.stdin, self.process.stdout
        self.row: Row | None = None
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

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        self._selector.close()

    def map(self, payloads: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the payloads, a :class:`~.ordered_rows.Crash` where a worker died twice.

        Raises:
            Exception: whatever ``call`` raised, at the place of its row.
        """
        rows = OrderedRows(self._call, payloads)
        while not rows.finished:
            self._give(rows)
            if not rows.ready and not rows.finished:
                self._collect(rows)
            yield from rows.results()

    def _give(self, rows: OrderedRows) -> None:
        while self._idle and (row := rows.next(len(self._workers))) is not None:
            worker = self._idle.pop()
            worker.row = row
            try:
                _send(worker.input, row.message)
            except OSError:
                self._lost(worker, rows)

    def _collect(self, rows: OrderedRows) -> None:
        """Wait until a worker has something to say."""
        for key, _ in self._selector.select():
            worker: _Worker = key.data
            try:
                message = _receive(worker.output)
            except (EOFError, OSError):
                self._lost(worker, rows)
                continue
            if not worker.ready:
                worker.ready = True
                for _ in range(self._missing):
                    self._add()
                self._missing = 0
                continue
            assert worker.row is not None
            rows.answered(worker.row, message)
            worker.row = None
            self._idle.append(worker)

    def _lost(self, worker: _Worker, rows: OrderedRows) -> None:
        """Replace a dead worker."""
        self._selector.unregister(worker.output)
        self._workers.remove(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        worker.stop()
        if worker.row is not None:
            rows.lost(worker.row, died=True, how=f" (exit code {worker.process.returncode})")
        self._add()


def _send(pipe: IO[bytes], message: bytes) -> None:
    rest = memoryview(_LENGTH.pack(len(message)) + message)
    while rest:
        rest = rest[pipe.write(rest) :]
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    (length,) = _LENGTH.unpack(_read(pipe, _LENGTH.size))
    return _read(pipe, length)


def _read(pipe: IO[bytes], size: int) -> bytes:
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
    _send(target, b"")  # ready
    while True:
        try:
            message = _receive(source)
        except EOFError:
            return
        _send(target, answer(message))
