"""Rows on a dask cluster: order, workers that die, leave or join, wrong workers, no cluster at all."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from operator import mul
from pathlib import Path
from pickle import PicklingError
from typing import Any

import dask
import psutil
import pytest
from distributed import Client, LocalCluster
from distributed.core import Status

import tileproof
from tileproof.hardware.errors import InputError
from tileproof.models.case import make_case
from tileproof.solver.pools import dask as module
from tileproof.solver.pools.dask import ClusterPool
from tileproof.solver.pools.ordered_rows import Crash

PID = "__import__('os').getpid()"
DIE = f"__import__('os').kill({PID}, 9)"
WAIT = "__import__('time').sleep(0.02) or 1"


def local_cluster(workers: int, **options: Any) -> Any:
    quiet = {
        "dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": False},
        "silence_logs": logging.CRITICAL,
    }
    return LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=None, **quiet, **options)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes, which are started again when they die."""
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1000 days"}), local_cluster(2) as running:
        yield running


@pytest.fixture
def address(cluster: Any) -> str:
    """The scheduler, once both worker processes are there (again)."""
    wait_for(lambda: len(cluster.scheduler.workers) == 2)
    return str(cluster.scheduler_address)


@pytest.fixture
def threads() -> Iterator[Any]:
    """Two workers inside the test process."""
    with local_cluster(2, processes=False, protocol="tcp") as running:
        yield running


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def pids(cluster: Any) -> list[int]:
    return [worker.pid for worker in cluster.workers.values()]


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def test_results_are_those_of_a_plain_loop(address: str) -> None:
    sizes = [(2, 32, 32, 64), (4, 32, 48, 0), (4, 16, 16, 1), (2, 32, 32, 64)]
    cases = [make_case(batch_a=(b,), batch_b=(b,), m=m, n=n, k=k) for b, m, n, k in sizes]
    call = partial(tileproof.solve, all_branches=False)
    with ClusterPool(call, address) as pool:
        found = list(pool.map(cases))
    timeless = {"branches": {"__all__": {"solve_ms"}}}
    assert [r.model_dump(exclude=timeless) for r in found] == [call(c).model_dump(exclude=timeless) for c in cases]


def test_order_and_count_are_exact_and_a_pool_serves_again(address: str) -> None:
    with ClusterPool(partial(mul, 7), address) as pool:
        assert list(pool.map(range(150))) == [7 * i for i in range(150)]
        assert list(pool.map([5] * 40)) == [35] * 40
        assert list(pool.map([])) == []


def test_payloads_mean_nothing_to_dask(address: str) -> None:
    # Inside its own graphs dask takes (function, argument) for a task.
    payload = (abs, -1)
    with ClusterPool(partial(mul, 1), address) as pool:
        assert list(pool.map([payload])) == [payload]


def test_an_error_is_raised_at_its_place(address: str) -> None:
    with ClusterPool(eval, address) as pool:
        results = pool.map(["1", "1 / 0", "2"])
        assert next(results) == 1
        with pytest.raises(ZeroDivisionError):
            next(results)
        with pytest.raises(PicklingError):
            list(pool.map(["lambda: 0"]))
        assert list(pool.map(["3"])) == [3]


def test_a_row_that_kills_its_workers_is_a_crash_and_costs_no_other(address: str) -> None:
    with ClusterPool(eval, address) as pool:
        payloads = [str(i) for i in range(60)]
        payloads[5] = payloads[6] = DIE
        results = list(pool.map(payloads))
    crash = Crash("its worker process died twice")
    assert results == [crash if i in (5, 6) else i for i in range(60)]


def test_workers_killed_from_outside_cost_no_row(cluster: Any, address: str) -> None:
    with ClusterPool(eval, address) as pool:
        results = pool.map(f"({i}, {WAIT})" for i in range(150))
        found = [next(results) for _ in range(20)]
        for process in pids(cluster):
            kill(process)
        found += results
    assert found == [(i, 1) for i in range(150)]


def test_an_answer_that_died_with_its_worker_is_found_again(
    cluster: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = ClusterPool._take
    calls = 0

    def late(self: ClusterPool, finished: Any, rows: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            left = finished[0][0].address
            (process,) = [nanny.pid for nanny in cluster.workers.values() if nanny.worker_address == left]
            kill(process)
            wait_for(lambda: left not in cluster.scheduler.workers)
        take(self, finished, rows)

    monkeypatch.setattr(ClusterPool, "_take", late)
    with ClusterPool(partial(mul, 2), address) as pool:
        assert list(pool.map(range(20))) == [2 * i for i in range(20)]


def test_rows_are_read_as_they_are_needed(address: str) -> None:
    taken = 0

    def rows() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "__import__('time').sleep(2)" if taken == 1 else "0"

    with ClusterPool(eval, address) as pool:
        assert next(pool.map(rows())) is None
        assert taken <= 2 * 32


def test_workers_that_join_get_rows(threads: Any) -> None:
    worker = "__import__('distributed').get_worker().address"
    with ClusterPool(eval, threads.scheduler_address) as pool:
        results = pool.map(f"({worker}, {WAIT})" for _ in range(2000))
        next(results)
        threads.scale(3)
        seen: set[str] = set()
        while len(seen) < 3:
            seen.add(next(results)[0])
        results.close()


def test_a_worker_that_is_told_to_go_did_not_die(threads: Any) -> None:
    with ClusterPool(eval, threads.scheduler_address) as pool:
        results = pool.map(["0"] + ["__import__('time').sleep(0.3)"] * 3)
        assert next(results) == 0
        worker = list(pool._workers.values())[1]
        for row in worker.rows.values():
            row.deaths = 1
        assert worker.rows
        threads.sync(threads.scheduler.retire_workers, workers=[worker.address])
        assert list(results) == [None] * 3
        assert worker.address not in pool._workers


def test_a_worker_that_accepts_no_work_keeps_no_row(threads: Any) -> None:
    with ClusterPool(eval, threads.scheduler_address) as pool:
        worker = threads.workers[0]
        threads.loop.add_callback(setattr, worker, "status", Status.paused)
        wait_for(lambda: threads.scheduler.workers[worker.address].status == Status.paused)
        assert list(pool.map(["7"] * 10)) == [7] * 10
        assert not pool._workers[worker.address].running


def test_a_restarted_cluster_costs_no_row(cluster: Any, address: str) -> None:
    with ClusterPool(eval, address) as pool, Client(address, set_as_default=False) as other:
        results = pool.map(f"({i}, {WAIT})" for i in range(150))
        found = [next(results) for _ in range(10)]
        other.restart(wait_for_workers=False)
        found += results
    assert found == [(i, 1) for i in range(150)]


def test_wrong_workers_are_named(address: str, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "MODEL_VERSION", "0")
        with pytest.raises(InputError) as caught:
            ClusterPool(eval, address)
    assert "cluster: worker tcp://127.0.0.1:" in str(caught.value)
    assert str(caught.value).endswith("has model version 1; this is 0")
    with ClusterPool(eval, address) as pool:
        first, second = list(pool._workers)
        hide = "__import__('sys').modules.update({'tileproof.solver.pools.dask': None})"
        pool._client.run(eval, hide, workers=[first])
        with pytest.raises(InputError, match=f"worker {first} cannot import this tileproof"):
            ClusterPool(eval, address)
        # One that turns up in mid-run gets no rows; the others go on.
        del pool._workers[first]
        assert len(list(pool.map([WAIT] * 60))) == 60
        assert list(pool._workers) == [second]
        said = [record.message for record in caplog.records if record.name == module.__name__]
        assert said == [pool._refused[first]]
        kill(pool._client.run(os.getpid, workers=[first])[first])


@pytest.mark.parametrize("address", ["", "here", "tcp://", "tcp://host", "host:8786", "tcp://host:8786/x", "local "])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(InputError, match="is no address; allowed: local or tcp://host:port"):
        ClusterPool(eval, address)


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CONNECT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for number in (port, 1, 99999):
            with pytest.raises(InputError) as caught:
                ClusterPool(eval, f"tcp://127.0.0.1:{number}")
            assert str(caught.value) == f"cluster: no scheduler answers at tcp://127.0.0.1:{number}"


def test_a_cluster_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    with local_cluster(0) as empty, pytest.raises(InputError) as caught:
        ClusterPool(eval, empty.scheduler_address)
    assert str(caught.value) == f"cluster: {empty.scheduler_address} has had no worker for 0 s"


def test_a_scheduler_that_goes_away(threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CONNECT", 2.0)
    with ClusterPool(eval, threads.scheduler_address) as pool:
        results = pool.map([WAIT] * 2000)
        next(results)
        threads.close()
        with pytest.raises(InputError, match=r"cluster: the scheduler at tcp://127.0.0.1:\d+ went away"):
            list(results)


def test_dask_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError) as caught:
        ClusterPool(eval, "local")
    assert str(caught.value) == "cluster: dask is not installed; pip install 'tileproof[cluster]'"


def test_a_local_cluster_works_from_a_plain_script_and_leaves_nothing(tmp_path: Path) -> None:
    # No "if __name__ == '__main__'": workers must not run the script again. Killed rows must not fill stderr.
    script = tmp_path / "script.py"
    script.write_text(
        "from tileproof.solver.pools.dask import ClusterPool\n"
        "print('once')\n"
        "with ClusterPool(eval, 'local') as pool:\n"
        f"    print(list(pool.map(['1', {DIE!r}, '2'])))\n"
        f"    print(next(pool.map([{PID!r}])))\n"
        "    pool.map(['__import__(\"time\").sleep(100)'] * 5)\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    once, results, process = done.stdout.splitlines()
    assert (once, done.stderr) == ("once", "")
    assert results == "[1, Crash(text='its worker process died twice'), 2]"
    wait_for(lambda: not psutil.pid_exists(int(process)) or psutil.Process(int(process)).status() == "zombie")
    assert list(tmp_path.iterdir()) == [script]
