"""Solve one branch of one case and say what was shown."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from ..models.algebra import IntAlgebra, RuleCheck
from ..models.branches import BRANCH_OF
from ..models.context import Context
from ..models.evaluation import Evaluation
from ..models.plan import BranchName
from ..models.rules import rule_info
from .cpsat import Budget, Verdict
from .errors import RowOverflow
from .result import BranchResult, ConflictMember, Status
from .search import BranchSearch


@dataclass
class SolveOptions:
    """How to solve: seconds for a branch (deterministic time, fused at the same wall time) and what to keep."""

    time_limit: float = 60.0
    tie_break: bool = True
    dump_models: Path | None = None


@dataclass
class Solved:
    """A branch result together with the evaluation behind it."""

    result: BranchResult
    evaluation: Evaluation | None = None
    bound_ticks: int | None = None
    models: list[object] = field(default_factory=list)


def entry_checks(ctx: Context, name: BranchName) -> tuple[RuleCheck, ...]:
    """Rules of a branch that depend on the case alone."""
    alg = IntAlgebra()
    BRANCH_OF[name].entry(alg, ctx)
    return tuple(alg.checks)


def entry_conflict(ctx: Context, name: BranchName) -> list[ConflictMember]:
    """The case rules that fail; each of them alone rules the branch out."""
    members = []
    for check in entry_checks(ctx, name):
        if not check.holds:
            info = rule_info(check.rule)
            numbers = f"{check.left} {check.operator} {check.right} is false"
            repair = (
                f"without this policy rule ({info.profile}) the branch may be possible"
                if info.kind == "policy"
                else "no plan of this branch can obey it for this case"
            )
            members.append(ConflictMember(rule=check.rule, kind=info.kind, text=f"{info.text}: {numbers}", repair=repair))
    return members


def solve_branch(ctx: Context, name: BranchName, options: SolveOptions, stop_above: int | None = None) -> Solved:
    """Solve one branch to proven optimality, infeasibility or the time limit.

    ``stop_above`` (ticks) ends it as ``dominated`` once its bound passes that value.
    """
    started = time.perf_counter()

    def done(status: Status, search: BranchSearch | None = None, **fields: object) -> Solved:
        found = search.best if search is not None else None
        evaluation = found.evaluation if found is not None else None
        bound = search.bound if search is not None else None
        if evaluation is not None and bound is not None:
            bound = min(bound, evaluation.ticks)
        if status is Status.OPTIMAL and evaluation is not None:
            bound = evaluation.ticks
        result = BranchResult(
            status=status,
            latency_us=None if evaluation is None else ctx.us(evaluation.ticks),
            latency_ticks=None if evaluation is None else evaluation.ticks,
            bound_us=None if bound is None else ctx.us(bound),
            bound_ticks=bound,
            bottleneck=None if evaluation is None else evaluation.bottleneck,
            stages_us=None if evaluation is None else stages_us(ctx, evaluation),
            plan=None if evaluation is None else evaluation.plan,
            solve_ms=round((time.perf_counter() - started) * 1e3, 3),
            **fields,  # type: ignore[arg-type]
        )
        return Solved(result, evaluation, bound, list(search.log.models) if search is not None else [])

    conflict = entry_conflict(ctx, name)
    if conflict:
        return done(Status.INFEASIBLE, conflict=conflict)
    budget = Budget.of(options.time_limit)
    search: BranchSearch | None = None
    try:
        search = BranchSearch(ctx, BRANCH_OF[name], budget, keep_models=options.dump_models is not None)
        verdict = search.optimum(stop_above)
        if verdict is Verdict.OPTIMAL and options.tie_break:
            search.prefer()
    except RowOverflow as error:
        return done(Status.FEASIBLE if search is not None and search.best else Status.UNKNOWN, search, reason=str(error))
    if verdict is Verdict.INFEASIBLE:
        return done(Status.INFEASIBLE, conflict=[])
    if verdict is Verdict.OPTIMAL:
        reason = f"{search.log.solved} CP-SAT runs" if search.log.solved else "the plan meets the analytic bound"
        return done(Status.OPTIMAL, search, reason=reason)
    if stop_above is not None and search.bound is not None and search.bound > stop_above:
        search.best = None
        return done(Status.DOMINATED, search, reason="its bound is above the winner's latency")
    return done(Status.FEASIBLE if search.best else Status.UNKNOWN, search, reason="time limit")


def stages_us(ctx: Context, evaluation: Evaluation) -> dict[str, float]:
    """Every stage of a plan in microseconds."""
    return {name: ctx.us(ticks) for name, ticks in evaluation.stages.items() if name != "total"}
