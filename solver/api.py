"""The two questions the package answers in Python: ``solve`` and ``evaluate``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..hardware import NpuSpec
from ..hardware.errors import InputError
from ..models.branches import likely_first
from ..models.case import BmmCase
from ..models.context import Context, Environment
from ..models.evaluation import Evaluation, evaluate_plan
from ..models.pins import Pin, parse_pins
from ..models.plan import BRANCHES, BranchName, Plan
from ..models.rules import Profile
from .result import BranchResult, CaseResult
from .search.best import assemble, each_solved, least_ticks, to_win
from .settings import environment_of, profile_of, spec_of

if TYPE_CHECKING:
    from .library import PlanLibrary, Question
    from .search.solve_branch import Solved, SolveOptions


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
    from .search.solve_branch import SolveOptions

    for name in branches:
        if name not in BRANCHES:
            raise InputError(f"branch: {name!r} is not known; allowed: {', '.join(BRANCHES)}")
    ctx = make_context(case, hardware, rules, environment)
    options = options or SolveOptions()
    if pins:
        options = replace(options, pins=(*options.pins, *parse_pins(pins)))
    question = None
    if library is not None:
        question = _question(ctx, branches, options, all_branches=all_branches)
        if options.dump_models is None and (known := library.get(question, ctx.case)) is not None:
            return known
    asked = [name for name in BRANCHES if name in branches]
    order, stop = (asked, None) if all_branches else (likely_first(asked), to_win)
    solved: dict[BranchName, Solved] = {}
    for name, one in each_solved(ctx, order, options, stop):
        solved[name] = one
        if options.dump_models is not None:
            _dump(ctx, name, one, options)
        if on_branch is not None:
            on_branch(name, one.result)
    result = assemble(ctx, {name: solved[name] for name in asked})
    if options.pins:
        price = _price_of_pins(ctx, result, branches, options)
        result = result.model_copy(update={"pins": [pin.text for pin in options.pins], "price_of_pins_us": price})
    if library is not None and question is not None:
        library.put(question, result)
    return result


def _question(ctx: Context, branches: Sequence[BranchName], options: SolveOptions, *, all_branches: bool) -> Question:
    """What a library is asked."""
    from .library import Question

    texts = tuple(pin.text for pin in options.pins)
    how = (all_branches, options.tie_break, options.explain)
    return Question(ctx.spec, ctx.profile, ctx.environment, tuple(branches), texts, *how)


def _price_of_pins(
    ctx: Context, result: CaseResult, branches: Sequence[BranchName], options: SolveOptions
) -> float | None:
    """How much longer the best plan takes with the pins, in microseconds; None when that is not known."""
    held = least_ticks(result)
    if held is None:
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
    free = least_ticks(without)
    if free is None or "open" in (result.verdict, without.verdict):
        return None
    return ctx.us(held) - ctx.us(free)


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
    from .cpsat.run import model_text
    from .search.evidence import file_stem

    assert options.dump_models is not None
    folder = options.dump_models
    folder.mkdir(parents=True, exist_ok=True)
    stem = file_stem(ctx, name, options.pins)
    for index, model in enumerate(solved.models):
        # Not export_to_file, which only returns False when it cannot write.
        (folder / f"{stem}_{index}.pbtxt").write_text(model_text(model), encoding="utf-8")
