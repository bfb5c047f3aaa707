"""Times of proven solves over the collected shapes: one worker, one table.

Run: ``python tests/benchmarks/solve_times.py [--rules none] [--every 1]``. Times are wall milliseconds and include bounds,
incumbent, model building, CP-SAT and the re-check of every answer; the tie-break is listed apart. The first case is solved
once before the clock starts (imports).
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tileproof import BmmCase, solve
from tileproof.models.branches import BRANCH_OF
from tileproof.models.context import Context
from tileproof.models.plan import BRANCHES
from tileproof.solver.api import make_context
from tileproof.solver.branch import SolveOptions, breaks_entry, solve_branch

SIZES = Path(__file__).parent.parent / "data" / "bmm_sizes.csv"


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


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", default="v0.4", choices=("v0.4", "source", "none"))
    parser.add_argument("--hardware", default="ascend950pr")
    parser.add_argument("--every", type=int, default=1, help="take every n-th shape")
    args = parser.parse_args()
    cases = read_cases(args.every)
    solve(cases[0], rules=args.rules, hardware=args.hardware)
    proof: dict[str, list[float]] = defaultdict(list)
    whole: dict[str, list[float]] = defaultdict(list)
    total: list[float] = []
    statuses: Counter[tuple[str, str]] = Counter()
    winners: Counter[str] = Counter()
    worst: dict[str, tuple[float, str]] = {}
    started = time.perf_counter()
    for case in cases:
        ctx: Context = make_context(case, args.hardware, args.rules)
        for name in BRANCHES:
            if breaks_entry(ctx, name):
                continue
            ctx = make_context(case, args.hardware, args.rules)
            begin = time.perf_counter()
            solve_branch(ctx, BRANCH_OF[name].name, SolveOptions(tie_break=False, explain=False))
            middle = time.perf_counter()
            ctx = make_context(case, args.hardware, args.rules)
            solve_branch(ctx, name, SolveOptions(explain=False))
            proof[name].append((middle - begin) * 1e3)
            whole[name].append((time.perf_counter() - middle) * 1e3)
            worst[name] = max(worst.get(name, (0.0, "")), (proof[name][-1], case.case_id))
        begin = time.perf_counter()
        result = solve(case, rules=args.rules, hardware=args.hardware)
        total.append((time.perf_counter() - begin) * 1e3)
        winners[str(result.winner)] += 1
        for name, branch in result.branches.items():
            statuses[name, branch.status.value] += 1
    table = Table(title=f"{len(cases)} shapes, {args.hardware}, rules {args.rules}; ms, one worker")
    for column in (
        "branch",
        "solved",
        "median",
        "95 %",
        "99 %",
        "worst",
        "worst case",
        "with tie-break: median",
        "95 %",
        "worst",
    ):
        table.add_column(column, justify="left" if column in ("branch", "worst case") else "right")
    for name in BRANCHES:
        if not proof[name]:
            continue
        times = [f"{quantile(proof[name], q):.1f}" for q in (0.5, 0.95, 0.99)]
        both = [f"{quantile(whole[name], q):.1f}" for q in (0.5, 0.95)]
        table.add_row(
            name,
            str(len(proof[name])),
            *times,
            f"{max(proof[name]):.1f}",
            worst[name][1],
            *both,
            f"{max(whole[name]):.1f}",
        )
    cells = [f"{quantile(total, q):.1f}" for q in (0.5, 0.95, 0.99)]
    table.add_row("whole solve", str(len(total)), "", "", "", "", "", cells[0], cells[1], f"{max(total):.1f}")
    console = Console(width=150)
    console.print(table)
    console.print("winners:", dict(winners.most_common()))
    console.print("statuses:", {f"{name} {status}": n for (name, status), n in sorted(statuses.items())})
    print(f"{time.perf_counter() - started:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
