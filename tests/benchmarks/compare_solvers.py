"""Our solver against others on one branch: time to the optimum, proof, regret.

Run: ``python tests/benchmarks/compare_solvers.py [--seconds 10] [--markdown] [--per-case]`` (``pip install '.[bench]'``).
Every solver works on the same search space and latency model, on one thread, for at most ``--seconds`` a case; building its
model counts. The plans are evaluated again by ``tileproof.evaluate``; regret is against our proven optimum. A solver that
claims another optimum is named below the table: one of the two is wrong then.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from bench_table import show
from rivals import SAME, SOLVERS, Attempt, judged_ticks, run

from tileproof import BmmCase
from tileproof.models.branches import BRANCH_OF
from tileproof.solver.api import make_context

#: Shapes from small to large: of examples/cases.csv (named), tests/data/bmm_sizes.csv (s..), tests/support/bmm_cases.py.
CASES = (
    BmmCase(case_id="s2", batch_a=17, batch_b=17, m=1, n=32, k=96, dtype="int8", bias="int32"),
    BmmCase(case_id="asw broadcast a", batch_a=1, batch_b=20, m=64, n=200, k=256),
    BmmCase(case_id="vision_hf32", batch_a=96, batch_b=96, m=196, n=196, k=64, dtype="hf32"),
    BmmCase(case_id="asw", batch_a=3, batch_b=3, m=500, n=600, k=700),
    BmmCase(case_id="mla_absorb_q", batch_a=128, batch_b=128, m=64, n=512, k=128, dtype="bf16"),
    BmmCase(case_id="cross_broadcast", batch_a=(6, 1), batch_b=(1, 6), m=256, n=512, k=512),
    BmmCase(case_id="attention_decode_qk", batch_a=512, batch_b=512, m=1, n=4096, k=128, dtype="bf16", trans_b=True),
    BmmCase(case_id="shared_weight_bias", batch_a=128, batch_b=1, m=64, n=1024, k=1024, bias="fp32"),
    BmmCase(case_id="moe_experts_up", batch_a=64, batch_b=64, m=128, n=2816, k=1024, dtype="bf16"),
    BmmCase(case_id="attention_prefill_qk", batch_a=64, batch_b=64, m=2048, n=2048, k=128, dtype="bf16", trans_b=True),
    BmmCase(case_id="moe_experts_fp8", batch_a=32, batch_b=32, m=256, n=2048, k=2048, dtype="fp8_e4m3", trans_b=True),
    BmmCase(case_id="asw above L2", batch_a=2, batch_b=2, m=8192, n=8192, k=40000),
)


@dataclass
class Judged:
    """One solver on one case: seconds until the optimum and in all, regret (None without a plan)."""

    attempt: Attempt
    regret: float | None
    to_optimum: float | None

    @property
    def wrong(self) -> bool:
        """Whether it claims something else than our proof."""
        if self.attempt.infeasible or (self.regret is not None and self.regret < 0):
            return True
        return self.attempt.proven and (self.regret is None or self.regret > SAME)


class Comparison:
    """All solvers on all cases of one branch."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.branch = BRANCH_OF[args.branch]
        self.cases = [case for case in CASES if args.case in (None, case.case_id)]
        self.solvers = {name: solver for name, solver in SOLVERS.items() if args.solver is None or args.solver in name}
        self.solvers = {"tileproof": SOLVERS["tileproof"], **self.solvers}
        self.results: dict[str, dict[str, Judged]] = {name: {} for name in self.solvers}

    def run(self) -> None:
        """Run everything, case by case, so that a slow machine slows all solvers alike."""
        for solver in self.solvers.values():
            self._attempt(solver, CASES[0], min(2.0, self.args.seconds))
        for case in self.cases:
            optimum = None
            for name, solver in self.solvers.items():
                attempt = self._attempt(solver, case, self.args.seconds)
                ticks = [
                    (second, judged_ticks(case, self.args.rules, self.branch, item)) for second, item in attempt.found
                ]
                if name == "tileproof":
                    if not attempt.proven or attempt.infeasible:
                        print(f"{case.case_id}: left out, we prove no optimum: {attempt.note}", file=sys.stderr)
                        break
                    optimum = ticks[-1][1]
                self.results[name][case.case_id] = self._judged(attempt, ticks, optimum)
                print(f"{case.case_id}: {name} {attempt.seconds:.2f} s {attempt.note}", file=sys.stderr)

    def _attempt(self, solver: Callable[..., None], case: BmmCase, limit: float) -> Attempt:
        # A new context each time: it keeps what was derived.
        return run(solver, make_context(case, rules=self.args.rules), self.branch, limit)

    @staticmethod
    def _judged(attempt: Attempt, ticks: Sequence[tuple[float, int | None]], optimum: int | None) -> Judged:
        assert optimum is not None
        legal = [(second, t / optimum - 1) for second, t in ticks if t is not None]
        reached = [second for second, regret in legal if regret <= SAME]
        return Judged(attempt, min((r for _, r in legal), default=None), min(reached, default=None))

    # -- tables
    def summary(self) -> tuple[list[str], list[list[str]]]:
        """One row a solver: medians over the cases (the ratio is a geometric mean, ``>`` where the limit ended a run)."""
        header = ["solver", "optimum found", "proven", "s to optimum", "s in all", "regret", "worst", "in all / ours"]
        return header, [self._row(name, list(judged.items())) for name, judged in self.results.items()]

    def _row(self, name: str, items: list[tuple[str, Judged]]) -> list[str]:
        judged = [j for _, j in items]
        notes = {j.attempt.note for j in judged}
        if len(notes) == 1 and "is not installed" in (note := notes.pop()):
            return [name, note, *[""] * 6]
        total = len(judged)
        regrets = [j.regret if j.regret is not None else math.inf for j in judged]
        base = {case: j.attempt.seconds for case, j in self.results["tileproof"].items()}
        reached = [j.to_optimum for j in judged if j.to_optimum is not None]
        whole = [math.log(j.attempt.seconds / base[case]) for case, j in items]
        at_least = "" if all(j.attempt.proven for j in judged) else "> "
        return [
            name,
            f"{len(reached)} of {total}",
            f"{sum(j.attempt.proven and not j.wrong for j in judged)} of {total}",
            _seconds(reached),
            _seconds([j.attempt.seconds for j in judged]),
            _percent(median(regrets)),
            _percent(max(regrets)),
            f"{at_least}{math.exp(sum(whole) / total):.3g}",
        ]

    def per_case(self) -> tuple[list[str], list[list[str]]]:
        """One row a case: seconds in all (``*`` proven) and regret."""
        rows = []
        for case in self.results["tileproof"]:
            cells = []
            for judged in self.results.values():
                j = judged[case]
                regret = "" if j.regret is not None and abs(j.regret) <= SAME else f" {_percent(j.regret)}"
                cells.append(f"{j.attempt.seconds:.2f}{'*' if j.attempt.proven else ''}{regret}")
            rows.append([case, *cells])
        return ["case", *self.results], rows

    def remarks(self) -> Iterable[str]:
        """Disagreements and models that a solver refused."""
        for name, judged in self.results.items():
            for case, j in judged.items():
                if j.wrong:
                    yield f"DISAGREEMENT {name}, {case}: proven {j.attempt.proven}, infeasible {j.attempt.infeasible}, regret {j.regret}"
                elif j.attempt.note and "is not installed" not in j.attempt.note:
                    yield f"{name}, {case}: {j.attempt.note}"


def _seconds(values: list[float]) -> str:
    return f"{median(values):.2f}" if values else "–"


def _percent(value: float | None) -> str:
    if value is None or math.isinf(value):
        return "no plan"
    return "0" if abs(value) <= SAME else f"{float(f'{100 * value:.2g}'):g} %"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--branch", default="asw_basic", choices=("asw_basic", "iter_batch", "merge_batch", "stream_k"))
    parser.add_argument("--rules", default="none", choices=("v0.4", "source", "none"))
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of each solver on each case, seconds")
    parser.add_argument("--case", help="only this case")
    parser.add_argument("--solver", help="only solvers with this text in their name, and ours")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--per-case", action="store_true", help="also print a row for each case")
    args = parser.parse_args()
    comparison = Comparison(args)
    comparison.run()
    if not comparison.results["tileproof"]:
        parser.exit(1, "no case left\n")
    title = f"{len(comparison.results['tileproof'])} cases, {args.branch}, rules {args.rules}, {args.seconds:g} s, one thread"
    show(title, *comparison.summary(), markdown=args.markdown)
    if args.per_case:
        show("\nseconds (* proven), regret", *comparison.per_case(), markdown=args.markdown)
    for remark in comparison.remarks():
        print(remark)


if __name__ == "__main__":
    main()
