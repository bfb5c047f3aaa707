"""Where rows are worked on: in this process, in worker processes, or on a cluster; results in input order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final, Protocol, Self

from .processes import WorkerPool, early_worker

__all__ = ["PRELOAD", "Executor", "InProcess", "default_jobs", "early_start", "open_executor"]

#: What a worker loads before its first row.
PRELOAD: Final = (
    "tileproof.solver.search.solve_branch",
    "tileproof.solver.review.advice",
    "tileproof.solver.batch.recommend",
)

#: Starting a worker costs about as much as a few rows; unless asked for, it must have so many.
_WORTH: Final = 8
_BLOCK: Final = 2**20


class Executor(Protocol):
    """Runs one pure function for many payloads; use as a context manager."""

    def map(self, payloads: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the payloads; a ``Crash`` (of ``ordered_rows``) where a worker died twice."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class InProcess:
    """Runs ``call`` here, one payload after the other."""

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, payloads: Iterable[Any]) -> Iterator[Any]:
        """Results in the order of the payloads."""
        return map(self._call, payloads)


def default_jobs(rows: int | None, worth: int = _WORTH) -> int:
    """Processes for a number of rows (None: not known): the cores, but one for ``worth`` rows at most."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if rows is None else max(1, min(cores, rows // worth))


def early_start(path: Path, jobs: str | None, preload: tuple[str, ...]) -> AbstractContextManager[None]:
    """Start a worker before the rows of a file are read, when it looks as if one will be needed.

    ``jobs`` is what was asked for, unchecked. Loading OR-Tools takes a worker a second, and that much the first row.
    """
    if jobs == "1" or path.suffix.lower() not in (".csv", ".jsonl") or not path.is_file():
        return nullcontext()
    with path.open("rb") as stream:
        lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(_BLOCK), b""))
    return early_worker(preload) if lines > 2 and (jobs or default_jobs(lines) > 1) else nullcontext()


def open_executor(
    call: Callable[[Any], Any], *, jobs: int, cluster: str | None = None, preload: tuple[str, ...] = ()
) -> Executor:
    """The executor for ``jobs`` processes (1 is this one), or for a dask cluster.

    Args:
        call: a pure function of a module.
        jobs: how many processes, at least 1.
        cluster: ``local`` or the scheduler's ``tcp://host:port``; then ``jobs`` does not count.
        preload: modules that worker processes import before their first row.

    Raises:
        InputError: dask is not installed, or the cluster cannot be used.
    """
    if cluster is not None:
        from .dask import ClusterPool

        return ClusterPool(call, cluster)
    return InProcess(call) if jobs == 1 else WorkerPool(call, jobs, preload=preload)
