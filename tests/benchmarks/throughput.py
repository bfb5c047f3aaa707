"""Throughput of ``tileproof recommend`` on a table of cases: rows a second, time to the first row, memory.

Run: ``python tests/benchmarks/throughput.py [--jobs 1 2] [--every 4] [--markdown]`` (``pip install '.[bench]'``). The command
runs as users run it, start-up included. The first row is in the growing ``FILE.partial`` or, where the whole table is
written at the end, in FILE. Memory is the largest sum of the resident sets of the process and its workers, sampled.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench_table import show

try:
    import psutil
except ImportError:
    sys.exit("psutil is not installed: pip install '.[bench]'")

SIZES = Path(__file__).parent.parent / "data" / "bmm_sizes.csv"
#: Listing the child processes takes milliseconds of the machine that is measured.
_POLL_SECONDS = 0.1


@dataclass
class Run:
    """Wall seconds in all and until the first row, peak MiB of all processes and of the largest one, exit code."""

    seconds: float
    first_row: float
    all_mib: float
    largest_mib: float
    code: int


def write_cases(path: Path, every: int) -> int:
    """Every n-th collected shape as the command's input; their number."""
    with SIZES.open(newline="") as file:
        header, *rows = csv.reader(file)
    chosen = rows[::every]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *chosen])
    return len(chosen)


def has_row(out: Path) -> bool:
    """Whether a row after the header has been written."""
    for path in (out.with_name(f"{out.name}.partial"), out):
        if path.exists() and path.read_bytes().count(b"\n") > 1:
            return True
    return False


def resident_mib(process: psutil.Process) -> list[float]:
    """Resident sets of a process and what it started."""
    sizes = []
    try:
        for one in (process, *process.children(recursive=True)):
            sizes.append(one.memory_info().rss / 2**20)
    except psutil.NoSuchProcess:
        pass
    return sizes


def measure(command: list[str], out: Path) -> Run:
    """Run the command and watch it."""
    with tempfile.TemporaryFile() as messages:
        started = time.perf_counter()
        child = psutil.Popen(command, stdout=messages, stderr=messages)
        first, everything, largest = 0.0, 0.0, 0.0
        while child.poll() is None:
            sizes = resident_mib(child)
            everything, largest = max(everything, sum(sizes)), max([largest, *sizes])
            if not first and has_row(out):
                first = time.perf_counter() - started
            time.sleep(_POLL_SECONDS)
        seconds = time.perf_counter() - started
        if not out.exists():
            messages.seek(0)
            sys.exit(messages.read().decode()[-2000:])
    return Run(seconds, first or seconds, everything, largest, child.returncode)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], help="numbers of workers to try")
    parser.add_argument("--every", type=int, default=4, help="take every n-th shape")
    parser.add_argument("--rules", default="v0.4", choices=("v0.4", "source", "none"))
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        cases = Path(folder, "cases.csv")
        count = write_cases(cases, args.every)
        for jobs in args.jobs:
            out = Path(folder, f"result_{jobs}.csv")
            command = [str(Path(sys.executable).with_name("tileproof")), "recommend", str(cases), "--out", str(out)]
            run = measure([*command, "--rules", args.rules, "--jobs", str(jobs)], out)
            cells = (run.seconds, count / run.seconds, run.first_row, run.all_mib, run.largest_mib)
            rows.append([str(jobs), *(f"{cell:.1f}" for cell in cells), str(run.code)])
    header = ["jobs", "s in all", "rows/s", "s to first row", "peak MiB, all", "largest process", "exit code"]
    show(f"recommend, {count} shapes, rules {args.rules}", header, rows, markdown=args.markdown)


if __name__ == "__main__":
    main()
