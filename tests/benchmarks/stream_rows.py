"""A long table with many repeats through ``tileproof recommend --library``: rows a second, and memory over time.

Run: ``python tests/benchmarks/stream_rows.py [--rows 100000] [--shapes 200] [--jobs 2]`` (``pip install '.[bench]'``).
The command runs as users run it. Memory is the resident set of the command and of its largest worker, sampled; it is
flat when the last quarter of the rows needs no more than the second one.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import psutil
from bench_table import show

SIZES = Path(__file__).parent.parent / "data" / "bmm_sizes.csv"
_POLL_SECONDS = 0.1


@dataclass
class Sample:
    """Rows written so far (by the size of the part file), seconds, MiB of the command and of its largest worker."""

    written: int
    seconds: float
    parent: float
    worker: float


def write_cases(path: Path, rows: int, shapes: int) -> None:
    """``rows`` cases of ``shapes`` different ones, each row with its own name."""
    with SIZES.open(newline="") as file:
        header, *cases = csv.reader(file)
    step = max(1, len(cases) // shapes)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for number, case in enumerate(islice(cycle(cases[::step][:shapes]), rows)):
            writer.writerow([f"r{number}", *case[1:]])


def mib(process: psutil.Process) -> float:
    """Resident set of a process."""
    try:
        return float(process.memory_info().rss) / 2**20
    except psutil.Error:
        return 0.0


def watch(command: list[str], part: Path) -> tuple[float, float, list[Sample]]:
    """Run the command: seconds in all and until the first row, and what it needed meanwhile."""
    samples: list[Sample] = []
    first = float("nan")
    started = time.perf_counter()
    with psutil.Popen(command) as running:
        while running.poll() is None:
            seconds = time.perf_counter() - started
            size = part.stat().st_size if part.exists() else 0
            if first != first and part.exists() and part.read_bytes()[:100_000].count(b"\n") > 1:
                first = seconds
            try:
                children = running.children()
            except psutil.Error:
                children = []
            samples.append(Sample(size, seconds, mib(running), max(map(mib, children), default=0.0)))
            time.sleep(_POLL_SECONDS if first == first else 0.02)
    return time.perf_counter() - started, first, samples


def main() -> None:
    """Run once and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--shapes", type=int, default=200, help="different cases among the rows")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cases, out = Path(folder) / "cases.csv", Path(folder) / "result.csv"
        write_cases(cases, args.rows, args.shapes)
        command = [sys.executable, "-m", "tileproof.solver.cli.main", "recommend", str(cases), "--out", str(out)]
        command += ["--plans", str(Path(folder) / "plans.csv"), "--jobs", str(args.jobs)]
        command += ["--library", str(Path(folder) / "plans.db")]
        seconds, first, samples = watch(command, Path(f"{out}.partial"))
        size = out.stat().st_size
    quarters = []
    for quarter in range(4):
        low, high = size * quarter / 4, size * (quarter + 1) / 4
        found = [sample for sample in samples if low <= sample.written < high]
        quarters.append(f"{max((s.parent for s in found), default=0):.0f}")
    worker = max(sample.worker for sample in samples)
    show(
        f"{args.rows} rows of {args.shapes} shapes, --jobs {args.jobs}, --library",
        ("rows/s", "first row, s", "command, MiB: 1st quarter", "2nd", "3rd", "4th", "largest worker, MiB"),
        [(f"{args.rows / seconds:.0f}", f"{first:.2f}", *quarters, f"{worker:.0f}")],
        markdown=False,
    )


if __name__ == "__main__":
    main()
