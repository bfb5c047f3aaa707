"""The best over all branches: who wins, what may still win, and solving branches no further than that takes.

The winner is the first branch, in the order of ``BRANCHES``, within a thousandth of the least latency: a later branch
must be that much faster than an earlier one (design section 8). Needs OR-Tools only where branches are solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ...models.branches import likely_first
from ...models.context import MODEL_VERSION, Context
from ...models.evaluation import Evaluation
from ...models.plan import BRANCHES, BranchName
from ...models.rules import rule_info
from ..result import BranchResult, BufferUse, CaseResult, Status

if TYPE_CHECKING:
    from .solve_branch import Solved, SolveOptions

__all__ = [
    "Stop",
    "assemble",
    "each_solved",
    "evaluations",
    "fastest",
    "least_optimum",
    "least_ticks",
    "optimum_ticks",
    "solve_branches",
    "to_beat",
    "to_equal",
    "to_win",
    "winner_of",
    "wins",
]

#: 1000 * T <= 1001 * T_min wins.
_TOLERANCE: Final = (1000, 1001)

#: From the least latency so far (ticks) to the largest one of another branch that still matters.
Stop = Callable[[int], int]


# -- who wins
def wins(ticks: int, least: int) -> bool:
    """Whether a latency is near enough to the least one to win, when no earlier branch does."""
    return _TOLERANCE[0] * ticks <= _TOLERANCE[1] * least


def winner_of(ticks: Mapping[BranchName, int]) -> BranchName | None:
    """The winner among branches with these latencies; None when there are none."""
    least = min(ticks.values(), default=0)
    return next((name for name in BRANCHES if name in ticks and wins(ticks[name], least)), None)


def evaluations(solved: Mapping[BranchName, Solved]) -> dict[BranchName, Evaluation]:
    """The best plan of every branch that has one."""
    return {name: one.evaluation for name, one in solved.items() if one.evaluation is not None}


def fastest(found: Mapping[BranchName, Evaluation]) -> BranchName | None:
    """The branch of least latency, the first one among equal ones; it need not be the winner."""
    return min((name for name in BRANCHES if name in found), key=lambda name: found[name].ticks, default=None)


def least_ticks(result: CaseResult) -> int | None:
    """Least latency over all branches, which may be a little below the winner's."""
    return min((b.latency_ticks for b in result.branches.values() if b.latency_ticks is not None), default=None)


def optimum_ticks(result: BranchResult) -> int | None:
    """Proven optimum of a branch; None when there is none or it is not known."""
    return result.latency_ticks if result.status is Status.OPTIMAL else None


def _decided(result: BranchResult) -> bool:
    return result.status not in (Status.FEASIBLE, Status.UNKNOWN)


def _may_win(result: BranchResult, least: int) -> bool:
    """Whether an undecided branch may still be near enough to the least latency, by its bound."""
    return not _decided(result) and (result.bound_ticks is None or wins(result.bound_ticks, least))


def assemble(ctx: Context, solved: Mapping[BranchName, Solved]) -> CaseResult:
    """The result of a case: its winner, and whether that is proven."""
    found = evaluations(solved)
    known = {name: evaluation.ticks for name, evaluation in found.items()}
    results = {name: one.result for name, one in solved.items()}
    winner = winner_of(known)
    if winner is None:
        verdict = "infeasible" if all(r.status is Status.INFEASIBLE for r in results.values()) else "open"
    else:
        verdict = "open" if any(_may_win(r, min(known.values())) for r in results.values()) else "proven"
    return CaseResult(
        case=ctx.case,
        hardware=ctx.spec.name,
        rules=ctx.profile,
        environment=ctx.environment,
        tick=f"{ctx.cycles_per_tick} cycle",
        model_version=MODEL_VERSION,
        winner=winner,
        verdict=verdict,
        branches=results,
        buffers=[] if winner is None else _buffers(found[winner]),
    )


def _buffers(evaluation: Evaluation) -> list[BufferUse]:
    """Both sides of every capacity rule of a plan."""
    return [
        BufferUse(rule=c.rule, used=c.left, available=c.right, unit=rule_info(c.rule).unit)
        for c in evaluation.checks
        if c.rule.startswith("cap.") and c.operator == "<="
    ]


# -- how far to solve a branch
def to_win(least: int) -> int:
    """Up to what may still be the winner."""
    return least * _TOLERANCE[1] // _TOLERANCE[0]


def to_equal(least: int) -> int:
    """Up to what is as fast as the fastest so far."""
    return least


def to_beat(least: int) -> int:
    """Up to what is faster than the fastest so far."""
    return least - 1


def each_solved(
    ctx: Context,
    names: Iterable[BranchName],
    options: SolveOptions,
    stop: Stop | None = None,
    least: int | None = None,
) -> Iterator[tuple[BranchName, Solved]]:
    """Solve branches in the order given.

    With ``stop`` one ends as ``dominated`` once its bound passes what matters beside the latencies found before it, or
    beside ``least`` ticks.
    """
    from .solve_branch import solve_branch

    for name in names:
        solved = solve_branch(ctx, name, options, None if stop is None or least is None else stop(least))
        if solved.evaluation is not None:
            ticks = solved.evaluation.ticks
            least = ticks if least is None else min(least, ticks)
        yield name, solved


def solve_branches(
    ctx: Context, names: Iterable[BranchName], options: SolveOptions, stop: Stop | None = None
) -> dict[BranchName, Solved]:
    """Solve branches, the likely winner first; in the order of ``BRANCHES``."""
    solved = dict(each_solved(ctx, likely_first(names), options, stop))
    return {name: solved[name] for name in BRANCHES if name in solved}


def least_optimum(ctx: Context, options: SolveOptions, known: Mapping[BranchName, BranchResult]) -> int | None:
    """Least optimum over all branches in ticks, some being solved already; None when it is not known or there is none.

    A branch is left once it is shown to be no faster than the best so far.
    """
    best = min((ticks for one in known.values() if (ticks := optimum_ticks(one)) is not None), default=None)
    rest = likely_first(name for name in BRANCHES if name not in known)
    results = [*known.values(), *(one.result for _, one in each_solved(ctx, rest, options, to_beat, best))]
    if not all(_decided(one) for one in results):
        return None
    return min((ticks for one in results if (ticks := optimum_ticks(one)) is not None), default=None)
