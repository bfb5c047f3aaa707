"""A dask cluster of this machine, one single-threaded process per core."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import Final

from ...hardware.errors import InputError

#: Settings of a local cluster. So long after a death dask gives the worker up if it is just being started once more.
_LOCAL: Final = {"DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT": "1000 days"}


def import_distributed() -> ModuleType:
    """The package ``distributed``.

    Raises:
        InputError: it is not installed.
    """
    try:
        return import_module("distributed")
    except ModuleNotFoundError:
        raise InputError("cluster: dask is not installed; pip install 'tileproof[cluster]'") from None


@contextmanager
def local_cluster() -> Iterator[str]:
    """A cluster in a process group of its own: no worker ever imports the caller's main module or sees its Ctrl-C.

    Gives the scheduler's address; afterwards all its processes are gone.

    Raises:
        InputError: it did not start.
    """
    command = [sys.executable, "-c", f"from {__name__} import serve_cluster; serve_cluster()"]
    with (
        tempfile.TemporaryDirectory(prefix="tileproof-", ignore_cleanup_errors=True) as directory,
        subprocess.Popen(
            command,
            env={**os.environ, "DASK_TEMPORARY_DIRECTORY": directory, **_LOCAL},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            if not address:
                raise InputError("cluster: the local cluster did not start")
            yield address
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)


def serve_cluster() -> None:
    """Run a local cluster until standard input closes (the main function of its process); its address goes to stdout.

    Raises:
        InputError: dask is not installed.
    """
    target = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    cluster = import_distributed().LocalCluster(
        n_workers=import_module("dask.system").CPU_COUNT,
        threads_per_worker=1,
        # dask wants a web server even so; at any free port it never has to complain.
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        memory_limit=None,
        silence_logs=logging.CRITICAL,
    )
    print(cluster.scheduler_address, file=target, flush=True)
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)  # the parent is gone
