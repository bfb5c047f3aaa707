"""Worker processes: order, crashes, errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from operator import mul, truediv

import pytest

from tileproof.solver.pools.ordered_rows import Crash
from tileproof.solver.pools.processes import WorkerPool, early_worker


def test_results_come_in_input_order_for_any_number_of_workers() -> None:
    for jobs in (1, 3):
        with WorkerPool(partial(mul, 7), jobs) as pool:
            assert list(pool.map(range(200))) == [7 * i for i in range(200)]


def test_a_dead_worker_loses_only_its_row() -> None:
    # os._exit ends the worker at once; the row is tried twice, the others are done.
    with WorkerPool(eval, 2) as pool:
        results = list(pool.map(["1 + 1", "__import__('os')._exit(3)", "2", "3"] * 2))
    assert [isinstance(result, Crash) for result in results] == [False, True, False, False] * 2


def test_an_error_is_raised_at_its_place() -> None:
    with WorkerPool(partial(truediv, 1.0), 2) as pool:
        results = pool.map([2.0, 0.0, 4.0])
        assert next(results) == 0.5
        with pytest.raises(ZeroDivisionError):
            next(results)


def test_rows_are_read_as_they_are_needed() -> None:
    taken = 0

    def rows() -> Iterator[int]:
        nonlocal taken
        for i in range(10_000):
            taken += 1
            yield i

    with WorkerPool(partial(mul, 2), 1) as pool:
        results = pool.map(rows())
        assert [next(results) for _ in range(5)] == [0, 2, 4, 6, 8]
        assert taken < 200


def test_a_worker_that_was_started_early_joins_the_pool() -> None:
    with early_worker(["json"]), WorkerPool(partial(mul, 3), 2, preload=["json"]) as pool:
        time.sleep(0.5)  # its first words and its first answer may arrive together
        assert list(pool.map(range(50))) == [3 * i for i in range(50)]
        assert list(pool.map([])) == []
        assert list(pool.map([1])) == [3]
