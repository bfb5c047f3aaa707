"""The two questions the package answers in Python: ``solve`` and ``evaluate``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..hardware import NpuSpec
from ..hardware.errors import InputError
from ..models.case import BmmCase
from ..models.context import MODEL_VERSION, Context, Environment
from ..models.evaluation import Evaluation, evaluate_plan
from ..models.pins import Pin, parse_pins
from ..models.plan import BRANCHES, BranchName, Plan
from ..models.rules import Profile, rule_info
from .result import BranchResult, BufferUse, CaseResult, Status
from .settings import environment_of, profile_of, spec_of

if TYPE_CHECKING:
    from .library import PlanLibrary
    from .search.solve_branch import Solved, SolveOptions

#: A later branch must be this much faster than an earlier one to win: 1000 * T <= 1001 * T_min (design section 8).
_TOLERANCE = (1000, 1001)


@dataclass(frozen=True)
class PlanEvaluation:
    """A plan judged: latency in microseconds, stages, rule checks."""

    plan: Plan
    latency_us: float
    latency_ticks: int
    bottleneck: str
    stages_us: dict[str, float]
    feasible: bool
    violations: list[str]
    evaluation: Evaluation


def make_context(
    case: BmmCase,
    hardware: str | os.PathLike[str] | NpuSpec = "ascend950pr",
    rules: str = "v0.4",
    environment: str = "profiler",
) -> Context:
    """Context of a case.

    Raises:
        InputError: the hardware, the rules profile or the environment is not known.
    """
    profile, launched = profile_of(rules), environment_of(environment)
    return Context.of(case, spec_of(hardware), profile, launched)


def solve(
    case: BmmCase,
    *,
    hardware: str | os.PathLike[str] | NpuSpec = "ascend950pr",
    rules: Profile = "v0.4",
    environment: Environment = "profiler",
    branches: Sequence[BranchName] = BRANCHES,
    pins: Sequence[str | Pin] | Mapping[str, Any] = (),
    options: SolveOptions | None = None,
    all_branches: bool = True,
    on_branch: Callable[[BranchName, BranchResult], None] | None = None,
    library: PlanLibrary | None = None,
) -> CaseResult:
    """Best tiling of every asked branch, and the winner.

    Args:
        case: the problem.
        hardware: name of a chip, a file (``.toml`` or the vendor's ``.ini``), or a spec.
        rules: profile of policy rules: ``v0.4``, ``source`` or ``none``.
        environment: what the launch head and the state of L2 are: ``profiler``, ``cold``, ``warm`` or ``resident``.
        branches: branches to consider.
        pins: what is fixed or bounded: texts like ``"base_m=128"``, ``"base_k=64..256"``, ``"base_m=base_n"``, or a
            mapping of field to value or (low, high).
        options: time limit, tie-break, explanations, model dump.
        all_branches: solve every branch out; otherwise stop one as ``dominated`` once it cannot win.
        on_branch: called after each branch (progress).
        library: where a proven answer is looked up first, and kept.

    Raises:
        InputError: an argument is not known, or the library is damaged.
    """
    from .search.solve_branch import SolveOptions, solve_branch

    for name in branches:
        if name not in BRANCHES:
            raise InputError(f"branch: {name!r} is not known; allowed: {', '.join(BRANCHES)}")
    ctx = make_context(case, hardware, rules, environment)
    options = options or SolveOptions()
    if pins:
        options = replace(options, pins=(*options.pins, *parse_pins(pins)))
    question = None
    if library is not None:
        from .library import Question

        texts = tuple(pin.text for pin in options.pins)
        how = (all_branches, options.tie_break, options.explain)
        question = Question(ctx.spec, rules, environment, tuple(branches), texts, *how)
        if options.dump_models is None and (known := library.get(question, ctx.case)) is not None:
            return known
    solved: dict[BranchName, Solved] = {}
    for name in _order(ctx, branches, all_branches):
        ticks = [s.evaluation.ticks for s in solved.values() if s.evaluation is not None]
        stop_above = None
        if not all_branches and ticks:
            stop_above = min(ticks) * _TOLERANCE[1] // _TOLERANCE[0]
        solved[name] = solve_branch(ctx, name, options, stop_above)
        if options.dump_models is not None:
            _dump(ctx, name, solved[name], options)
        if on_branch is not None:
            on_branch(name, solved[name].result)
    result = assemble(ctx, {name: solved[name] for name in BRANCHES if name in solved})
    if options.pins:
        price = _price_of_pins(ctx, result, branches, options)
        result = result.model_copy(update={"pins": [pin.text for pin in options.pins], "price_of_pins_us": price})
    if library is not None and question is not None:
        library.put(question, result)
    return result


def _price_of_pins(
    ctx: Context, result: CaseResult, branches: Sequence[BranchName], options: SolveOptions
) -> float | None:
    """How much longer the best plan takes with the pins, in microseconds; None when that is not known."""
    if result.best is None:
        return None
    without = solve(
        ctx.case,
        hardware=ctx.spec,
        rules=ctx.profile,
        environment=ctx.environment,
        branches=branches,
        options=replace(options, pins=(), tie_break=False, explain=False, dump_models=None),
        all_branches=False,
    )
    return None if "open" in (result.verdict, without.verdict) else _least_us(result) - _least_us(without)


def _least_us(result: CaseResult) -> float:
    """Least latency over all branches, which may be a little below the winner's."""
    return min(branch.latency_us for branch in result.branches.values() if branch.latency_us is not None)


def _order(ctx: Context, branches: Sequence[BranchName], all_branches: bool) -> list[BranchName]:
    """Order of solving: as listed, or the likely winner first when branches may be stopped early."""
    chosen = [name for name in BRANCHES if name in branches]
    if all_branches:
        return chosen
    likely: tuple[BranchName, ...] = ("special", "asw_basic", "to_matmul", "iter_batch", "merge_batch", "stream_k")
    return [name for name in likely if name in chosen]


def assemble(ctx: Context, solved: dict[BranchName, Solved]) -> CaseResult:
    """Arbitrate: the first branch, in order, within a thousandth of the least latency."""
    known = {name: s.evaluation.ticks for name, s in solved.items() if s.evaluation is not None}
    winner: BranchName | None = None
    if known:
        limit = min(known.values()) * _TOLERANCE[1]
        winner = next(name for name, ticks in known.items() if _TOLERANCE[0] * ticks <= limit)
    statuses = {s.result.status for s in solved.values()}
    if winner is None:
        verdict = "infeasible" if statuses <= {Status.INFEASIBLE} else "open"
    else:
        verdict = "open" if any(_may_win(s, min(known.values())) for s in solved.values()) else "proven"
    best = solved[winner].evaluation if winner is not None else None
    return CaseResult(
        case=ctx.case,
        hardware=ctx.spec.name,
        rules=ctx.profile,
        environment=ctx.environment,
        tick=f"{ctx.cycles_per_tick} cycle",
        model_version=MODEL_VERSION,
        winner=winner,
        verdict=verdict,
        branches={name: s.result for name, s in solved.items()},
        buffers=buffer_use(best) if best is not None else [],
    )


def _may_win(solved: Solved, least: int) -> bool:
    """Whether an unfinished branch may still be as good as the least latency (ticks), by its bound."""
    if solved.result.status not in (Status.FEASIBLE, Status.UNKNOWN):
        return False
    bound = solved.result.bound_ticks
    return bound is None or _TOLERANCE[0] * bound <= _TOLERANCE[1] * least


def buffer_use(evaluation: Evaluation) -> list[BufferUse]:
    """Both sides of every capacity rule of a plan."""
    return [
        BufferUse(rule=c.rule, used=c.left, available=c.right, unit=rule_info(c.rule).unit)
        for c in evaluation.checks
        if c.rule.startswith("cap.") and c.operator == "<="
    ]


def evaluate(
    case: BmmCase,
    plan: Plan,
    *,
    hardware: str | os.PathLike[str] | NpuSpec = "ascend950pr",
    rules: Profile = "none",
    environment: Environment = "profiler",
) -> PlanEvaluation:
    """Latency and legality of a plan as it stands.

    Raises:
        InputError: an argument is not known, or the plan lacks a field that its branch needs.
    """
    ctx = make_context(case, hardware, rules, environment)
    evaluation = evaluate_plan(ctx, plan)
    return PlanEvaluation(
        plan=evaluation.plan,
        latency_us=ctx.us(evaluation.ticks),
        latency_ticks=evaluation.ticks,
        bottleneck=evaluation.bottleneck,
        stages_us={name: ctx.us(ticks) for name, ticks in evaluation.stages.items() if name != "total"},
        feasible=evaluation.feasible,
        violations=[check.rule for check in evaluation.violations],
        evaluation=evaluation,
    )


def _dump(ctx: Context, name: BranchName, solved: Solved, options: SolveOptions) -> None:
    from .cpsat.evidence import file_stem, model_text

    assert options.dump_models is not None
    folder = options.dump_models
    folder.mkdir(parents=True, exist_ok=True)
    stem = file_stem(ctx, name, options.pins)
    for index, model in enumerate(solved.models):
        # Not export_to_file, which only returns False when it cannot write.
        (folder / f"{stem}_{index}.pbtxt").write_text(model_text(model), encoding="utf-8")
