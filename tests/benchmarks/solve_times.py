"""Times and memory of proven solves over the collected shapes: one worker, one table.

Run: ``python tests/benchmarks/solve_times.py [--rules none] [--every 1] [--markdown]``. Times are wall milliseconds and
include bounds, incumbent, model building, CP-SAT and the re-check of every answer; "in CP-SAT" is the share of OR-Tools
in the sum of them, the rest is ours. The tie-break is listed apart, "whole solve" is every branch of a case. The first case
is solved once before the clock starts (imports). Memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import csv
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench_table import show
from ortools.sat.python import cp_model

from tileproof import BmmCase, solve
from tileproof.models.plan import BRANCHES, BranchName
from tileproof.solver.api import make_context
from tileproof.solver.search.branches import breaks_entry
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch

SIZES = Path(__file__).parent.parent / "data" / "bmm_sizes.csv"
_HEADER = (
    "branch", "solved", "median", "95 %", "99 %", "worst", "worst case", "in CP-SAT", "with tie-break: median", "95 %",
    "worst",
)  # fmt: skip


@dataclass
class Times:
    """Milliseconds of one branch: of every proof, of proof and tie-break, and of CP-SAT within the proofs."""

    proof: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    in_cpsat: float = 0.0


class Stopwatch:
    """Milliseconds spent inside OR-Tools."""

    def __init__(self) -> None:
        self.ms = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count every solve of the block."""
        plain = cp_model.CpSolver.solve

        def timed(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            status = plain(*args, **kwargs)
            self.ms += (time.perf_counter() - begin) * 1e3
            return status

        cp_model.CpSolver.solve = timed  # type: ignore[method-assign]
        try:
            yield
        finally:
            cp_model.CpSolver.solve = plain  # type: ignore[method-assign]


def read_cases(every: int) -> list[BmmCase]:
    """Every n-th collected shape."""
    cases = []
    with SIZES.open(newline="") as file:
        for row in list(csv.DictReader(file))[::every]:
            fields = {name: value for name, value in row.items() if value != ""}
            for side in ("batch_a", "batch_b"):
                fields[side] = tuple(int(dim) for dim in row[side].split("x"))  # type: ignore[assignment]
            cases.append(BmmCase.model_validate(fields))
    return cases


def quantile(values: list[float], share: float) -> float:
    """Value below which ``share`` of the sorted values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class SolveTimes:
    """The measurement: branches one by one, then whole cases."""

    def __init__(self, hardware: str, rules: Any) -> None:
        self.hardware = hardware
        self.rules = rules
        self.times: dict[BranchName, Times] = defaultdict(Times)
        self.total: list[float] = []
        self.winners: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()

    def measure(self, case: BmmCase) -> None:
        """One case."""
        for name in BRANCHES:
            if not breaks_entry(make_context(case, self.hardware, self.rules), name):
                self._branch(case, name)
        begin = time.perf_counter()
        result = solve(case, rules=self.rules, hardware=self.hardware)
        self.total.append((time.perf_counter() - begin) * 1e3)
        self.winners[str(result.winner)] += 1
        self.statuses.update(f"{name} {branch.status.value}" for name, branch in result.branches.items())

    def _branch(self, case: BmmCase, name: BranchName) -> None:
        times, watch = self.times[name], Stopwatch()
        with watch.watching():
            times.proof.append(self._solved(case, name, tie_break=False))
        times.in_cpsat += watch.ms
        times.whole.append(self._solved(case, name, tie_break=True))
        times.cases.append(case.case_id)

    def _solved(self, case: BmmCase, name: BranchName, *, tie_break: bool) -> float:
        """Milliseconds of one solve."""
        begin = time.perf_counter()
        ctx = make_context(case, self.hardware, self.rules)
        solve_branch(ctx, name, SolveOptions(tie_break=tie_break, explain=False))
        return (time.perf_counter() - begin) * 1e3

    def rows(self) -> list[list[str]]:
        """One row a branch, and one of whole cases."""
        rows = []
        for name in BRANCHES:
            times = self.times[name]
            if not times.proof:
                continue
            slowest = max(range(len(times.proof)), key=times.proof.__getitem__)
            cells = [f"{quantile(times.proof, q):.1f}" for q in (0.5, 0.95, 0.99, 1)]
            both = [f"{quantile(times.whole, q):.1f}" for q in (0.5, 0.95, 1)]
            share = f"{100 * times.in_cpsat / sum(times.proof):.0f} %"
            rows.append([name, str(len(times.proof)), *cells, times.cases[slowest], share, *both])
        whole = [f"{quantile(self.total, q):.1f}" for q in (0.5, 0.95, 1)]
        rows.append(["whole solve", str(len(self.total)), *[""] * 6, *whole])
        return rows


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", default="v0.4", choices=("v0.4", "source", "none"))
    parser.add_argument("--hardware", default="ascend950pr")
    parser.add_argument("--every", type=int, default=1, help="take every n-th shape")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    args = parser.parse_args()
    cases = read_cases(args.every)
    solve(cases[0], rules=args.rules, hardware=args.hardware)
    times = SolveTimes(args.hardware, args.rules)
    started = time.perf_counter()
    for case in cases:
        times.measure(case)
    title = f"{len(cases)} shapes, {args.hardware}, rules {args.rules}; ms, one worker"
    show(title, _HEADER, times.rows(), markdown=args.markdown)
    print("\nwinners:", ", ".join(f"{name} {count}" for name, count in times.winners.most_common()))
    print("statuses:", ", ".join(f"{text} {count}" for text, count in sorted(times.statuses.items())))
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    print(f"{time.perf_counter() - started:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
