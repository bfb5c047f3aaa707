"""Solve one branch of one case and say what was shown."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...hardware.errors import InternalError
from ...models.context import Context
from ...models.evaluation import Evaluation
from ...models.pins import Pin
from ...models.plan import BranchName
from ..cpsat.errors import RowOverflow, TooHard
from ..cpsat.run import Budget, Model, Verdict, model_text
from ..result import BranchResult, Status
from .branch_search import BranchSearch
from .branches import asked_branch, breaks_entry
from .evidence import write_evidence
from .explain import Explainer


@dataclass
class SolveOptions:
    """How to solve.

    ``time_limit`` in seconds for a branch (deterministic time, fused at the same wall time); ``tie_break`` makes the
    plan unique; ``explain`` finds minimal conflicts of infeasible branches; ``pins`` are rules of the user;
    ``dump_models`` is a folder for the CP-SAT models.
    """

    time_limit: float = 60.0
    tie_break: bool = True
    explain: bool = True
    pins: tuple[Pin, ...] = ()
    dump_models: Path | None = None


@dataclass
class Solved:
    """A branch result together with the evaluation behind it."""

    result: BranchResult
    evaluation: Evaluation | None = None
    bound_ticks: int | None = None
    models: list[Model] = field(default_factory=list)


def _explained(
    ctx: Context, name: BranchName, options: SolveOptions, search: BranchSearch | None = None
) -> dict[str, Any]:
    """Conflict fields of an infeasible branch."""
    if not options.explain:
        return {}
    try:
        conflicts = Explainer(ctx, name, options.pins).conflicts()
    except RowOverflow as error:
        return {"conflict": [], "reason": f"too large to explain: {error}"}
    except TooHard as error:
        return {"conflict": [], "reason": f"too hard to explain: {error}"}
    if not conflicts:
        last = search.log.last if search is not None else None
        model = model_text(last) if last is not None else None
        raise InternalError(f"{name}: the search finds no plan, the explainer one", model=model)
    first, *others = conflicts
    policy_only = all(conflict.policy_only for conflict in conflicts)
    without = None
    if all(any(member.kind == "policy" for member in conflict.members) for conflict in conflicts):
        relaxed = replace(options, tie_break=False, explain=False, dump_models=None)
        without = solve_branch(Context.of(ctx.case, ctx.spec, "none", ctx.environment), name, relaxed).result.latency_us
    return {
        "conflict": first.members,
        "other_conflicts": others,
        "policy_only": policy_only,
        "without_policy_us": without,
    }


def solve_branch(ctx: Context, name: BranchName, options: SolveOptions, stop_above: int | None = None) -> Solved:
    """Solve one branch to proven optimality, infeasibility or the time limit.

    ``stop_above`` (ticks) ends it as ``dominated`` once its bound passes that value.

    Raises:
        InternalError: two parts of this package disagree; ``report_path`` says where the evidence is.
    """
    try:
        return _solve_branch(ctx, name, options, stop_above)
    except InternalError as error:
        write_evidence(error, ctx, name, options.pins, options.dump_models)
        raise


def _solve_branch(ctx: Context, name: BranchName, options: SolveOptions, stop_above: int | None) -> Solved:
    started = time.perf_counter()

    def done(status: Status, search: BranchSearch | None = None, **fields: Any) -> Solved:
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
            **fields,
        )
        return Solved(result, evaluation, bound, list(search.log.models) if search is not None else [])

    if breaks_entry(ctx, name):
        return done(Status.INFEASIBLE, **_explained(ctx, name, options))
    branch, budget = asked_branch(name, options.pins), Budget.of(options.time_limit)
    search: BranchSearch | None = None
    try:
        search = BranchSearch(ctx, branch, budget, keep_models=options.dump_models is not None)
        verdict = search.optimum(stop_above)
        if verdict is Verdict.OPTIMAL and options.tie_break:
            search.prefer()
    except RowOverflow as error:
        return done(
            Status.FEASIBLE if search is not None and search.best else Status.UNKNOWN, search, reason=str(error)
        )
    if verdict is Verdict.INFEASIBLE:
        return done(Status.INFEASIBLE, **_explained(ctx, name, options, search))
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
