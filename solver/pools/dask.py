"""Batches on a dask.distributed cluster, with the interface of :class:`~tileproof.solver.pools.processes.WorkerPool`.

dask blames a worker's death on every task that was there, and how often it tries again is up to the cluster. Here each
task is for one worker, and this module follows who is there: a row that was on a worker that died is tried once more,
on a worker to itself, and then reported as :class:`~.ordered_rows.Crash`. A worker process runs one row at a time,
whatever its number of threads; for all cores of a machine, start one process per core:
``dask worker tcp://scheduler:8786 --nworkers CORES --nthreads 1``.
"""

from __future__ import annotations

import logging
import queue
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, Final, Self

from ...hardware.errors import InputError
from ...models.context import MODEL_VERSION
from .local_cluster import import_distributed, local_cluster
from .ordered_rows import OrderedRows, Row, answer

__all__ = ["ClusterPool"]

#: Rows on a worker: one runs, the other saves the wait for the next (some 20 ms).
_DEPTH: Final = 2
_TCP: Final = re.compile(r"tcp://\[?([^\s/\[\]]+)\]?:(\d+)")
#: Seconds until a scheduler must answer; between looks at who is there; that a cluster may be without workers.
_CONNECT: Final = 5.0
_LOOK: Final = 0.5
_PATIENCE: Final = 30.0
_log = logging.getLogger(__name__)


class _Worker:
    """A worker process and the rows it has, by their futures."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.rows: dict[Any, Row] = {}
        #: False while dask would not let it begin a row.
        self.running = True

    def has_place(self, rows: int) -> bool:
        """It has ``rows`` rows and can take another."""
        return self.running and len(self.rows) == rows and not any(row.deaths for row in self.rows.values())


class ClusterPool:
    """Runs ``call(payload)`` for many payloads on a dask.distributed cluster; use as a context manager.

    ``call`` must be importable by name (a module-level function) and pure; payloads and results are pickled. Workers
    may join and leave; one with another model version gets no rows. Closing the pool gives up what is in flight: a
    local cluster is gone at once, a worker elsewhere finishes the row that it runs.

    Args:
        call: what to run.
        address: ``local``, for one single-threaded process per core, or the scheduler's ``tcp://host:port``.

    Raises:
        InputError: dask is not installed; the address makes no sense or no scheduler answers there; the cluster has no
            workers, or one without tileproof or with another model version.
    """

    def __init__(self, call: Callable[[Any], Any], address: str) -> None:
        if address != "local" and not _TCP.fullmatch(address):
            raise InputError(f"cluster: {address!r} is no address; allowed: local or tcp://host:port")
        self._distributed = import_distributed()
        self._call = call
        self._address = address
        self._workers: dict[str, _Worker] = {}
        self._refused: dict[str, str] = {}
        self._finished: queue.SimpleQueue[tuple[_Worker, Any]] = queue.SimpleQueue()
        self._next_look = self._last_worker = time.monotonic()
        with ExitStack() as stack:
            stack.enter_context(self._distributed.utils.silence_logging_cmgr(logging.CRITICAL))
            logging.getLogger("asyncio").addFilter(_is_news)
            scheduler = stack.enter_context(local_cluster()) if address == "local" else address
            self._client = stack.enter_context(_client(self._distributed, scheduler))
            rows = OrderedRows(call, ())
            while not self._workers:
                for reason in self._look(rows):
                    raise InputError(reason)
                if not self._workers:
                    time.sleep(_LOOK)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def map(self, payloads: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the payloads, a :class:`~.ordered_rows.Crash` where a worker died twice.

        Raises:
            InputError: the scheduler went away, or all workers did.
            Exception: whatever ``call`` raised, at the place of its row.
        """
        rows = OrderedRows(self._call, payloads)
        try:
            while not rows.finished:
                self._advance(rows)
                yield from rows.results()
        finally:
            self._withdraw()

    def _advance(self, rows: OrderedRows) -> None:
        """Give out rows and wait until something has happened."""
        try:
            self._give(rows)
            if not rows.ready and not rows.finished:
                self._collect(rows)
        except Exception:
            if self._client.status == "closed":
                raise self._gone() from None
            raise

    def _gone(self) -> InputError:
        return InputError(f"cluster: the scheduler at {self._address} went away")

    def _give(self, rows: OrderedRows) -> None:
        """Fill the workers up; every one gets a first row before any gets a second."""
        for depth in range(_DEPTH):
            for worker in self._workers.values():
                if worker.has_place(depth):
                    row = rows.next(len(self._workers), idle=not depth)
                    if row is None:
                        return
                    # As bytes: dask looks for keys and tasks of its own inside what it is given.
                    future = self._client.submit(
                        answer, row.message, workers=[worker.address], allow_other_workers=False, pure=False
                    )
                    worker.rows[future] = row
                    future.add_done_callback(partial(self._notice, worker))

    def _notice(self, worker: _Worker, future: Any) -> None:
        self._finished.put((worker, future))

    def _collect(self, rows: OrderedRows) -> None:
        """Wait for rows to finish, and see from time to time who is there."""
        with suppress(queue.Empty):
            finished = [self._finished.get(timeout=_LOOK)]
            finished += [self._finished.get() for _ in range(self._finished.qsize())]
            self._take([(worker, future) for worker, future in finished if future in worker.rows], rows)
        if time.monotonic() >= self._next_look:
            for reason in self._look(rows):
                _log.warning(reason)

    def _take(self, finished: list[tuple[_Worker, Any]], rows: OrderedRows) -> None:
        """Fetch what there is, all answers at once."""
        ready: list[tuple[_Worker, Any]] = []
        for worker, future in finished:
            if (status := future.status) == "finished":
                ready.append((worker, future))
            else:
                self._failed(worker.rows.pop(future), future.exception() if status == "error" else None, rows)
        if not ready:
            return
        futures = [future for _, future in ready]
        try:
            messages = self._client.sync(self._client.gather, futures, callback_timeout=_LOOK)
        except Exception:
            # The network is slow, or a worker left before it could hand over; then the next look takes its rows back.
            for worker, future in ready:
                self._notice(worker, future)
        else:
            for (worker, future), message in zip(ready, messages, strict=True):
                rows.answered(worker.rows.pop(future), message)

    def _failed(self, row: Row, error: Any, rows: OrderedRows) -> None:
        if error is None:  # the connection broke for a moment, or someone restarted the cluster
            rows.lost(row, died=False)
        elif isinstance(error, self._distributed.KilledWorker):
            rows.lost(row, died=True)
        else:
            rows.failed(row, error)

    def _look(self, rows: OrderedRows) -> list[str]:
        """Take back the rows of workers that left and admit those that came; why some of them were not admitted."""
        self._next_look = time.monotonic() + _LOOK
        if self._client.status == "closed":
            raise self._gone()
        if self._client.status == "running":
            with suppress(OSError):  # the client connects again, and closes when that takes too long
                return self._follow(self._client.scheduler_info(n_workers=-1)["workers"], rows)
        return []

    def _follow(self, present: dict[str, Any], rows: OrderedRows) -> list[str]:
        """The same, for what the scheduler says of its workers."""
        for worker in list(self._workers.values()):
            if worker.address not in present:
                died = bool(worker.rows) and not self._retired(worker.address)
                del self._workers[worker.address]
                self._take_back(worker, list(worker.rows), rows, died=died)
            else:
                worker.running = present[worker.address]["status"] == "running"
                if not worker.running:
                    self._take_back(worker, self._stranded(worker), rows, died=False)
        self._refused = {address: reason for address, reason in self._refused.items() if address in present}
        known = self._workers.keys() | self._refused.keys()
        new = [address for address, it in present.items() if it["status"] == "running" and address not in known]
        reasons = self._admit(new) if new else {}
        self._refused |= reasons
        if self._workers:
            self._last_worker = time.monotonic()
        elif time.monotonic() > self._last_worker + _PATIENCE:
            nobody = f"cluster: {self._address} has had no worker for {_PATIENCE:.0f} s"
            raise InputError(next(iter(self._refused.values()), nobody))
        return list(reasons.values())

    def _retired(self, address: str) -> bool:
        """A worker that is gone was told to go."""
        events = self._client.get_events(address) or ()
        return any(event.get("action") == "remove-worker" and event.get("expected") for _, event in events)

    def _stranded(self, worker: _Worker) -> list[Any]:
        """What a worker had not begun when it stopped accepting work (its memory is nearly full)."""
        begun = self._client.processing([worker.address]).get(worker.address, ()) if worker.rows else ()
        return [future for future in worker.rows if future.status == "pending" and future.key not in begun]

    def _take_back(self, worker: _Worker, futures: list[Any], rows: OrderedRows, *, died: bool) -> None:
        for future in futures:
            # A row that has finished is not what the worker died of.
            rows.lost(worker.rows.pop(future), died=died and future.status == "pending")
        if futures:
            self._client.cancel(futures)

    def _admit(self, addresses: list[str]) -> dict[str, str]:
        """Take on workers that have this module and this model version; the others with the reason why not."""
        # Asked for with a function of the standard library, which every worker has.
        answers = self._client.run(resolve_name, f"{__name__}:MODEL_VERSION", workers=addresses, on_error="return")
        reasons = {}
        for address, version in answers.items():
            if version == MODEL_VERSION:
                self._workers[address] = _Worker(address)
            elif isinstance(version, OSError):
                continue  # it left while it was asked
            elif isinstance(version, Exception):
                reasons[address] = f"cluster: worker {address} cannot import this tileproof ({version})"
            else:
                reasons[address] = f"cluster: worker {address} has model version {version}; this is {MODEL_VERSION}"
        return reasons

    def _withdraw(self) -> None:
        """Give up what is in flight."""
        futures = [future for worker in self._workers.values() for future in worker.rows]
        for worker in self._workers.values():
            worker.rows.clear()
        if futures and self._client.status == "running":
            with suppress(OSError):
                self._client.cancel(futures)


def _is_news(record: logging.LogRecord) -> bool:
    """Not what asyncio has to say about dask fetching an answer that was lost."""
    return not record.exc_info or type(record.exc_info[1]).__name__ != "AllExit"


@contextmanager
def _client(distributed: ModuleType, address: str) -> Iterator[Any]:
    try:
        _hear(address)
        client = distributed.Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError, OverflowError, ImportError):
        raise InputError(f"cluster: no scheduler answers at {address}") from None
    try:
        yield client
    finally:
        with suppress(OSError):
            client.close()


def _hear(address: str) -> None:
    """Make sure that something speaks first at the address, as schedulers do: dask's client would wait for ever."""
    place = _TCP.fullmatch(address)
    assert place is not None
    with socket.create_connection((place[1], int(place[2])), timeout=_CONNECT) as connection:
        if not connection.recv(1):
            raise ConnectionError
