"""The plan that uncertain constants cannot upset: least worst-case regret over the corners of their intervals.

At every corner (each constant at one end of its span) the best plan is solved for. The regret of a plan at a corner is
how much slower it is there than that best plan. The plan whose largest regret is least is found by the same exact
search as any optimum, its objective being the largest regret: the answer is a minimax over *all* plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ...hardware import NpuSpec
from ...hardware.errors import InputError
from ...models.branches import likely_first
from ...models.case import BmmCase
from ...models.context import Context, Environment
from ...models.evaluation import Evaluation, evaluate_plan
from ...models.pins import LATENCY
from ...models.plan import BRANCHES, BranchName, Plan
from ...models.rules import Profile
from ..api import make_context
from ..cpsat.run import Budget, Verdict
from ..search.best import evaluations, fastest, solve_branches, to_beat, to_equal, winner_of
from ..search.branch_search import BranchSearch
from ..search.branches import asked_branch, breaks_entry
from ..search.solve_branch import SolveOptions, solve_branch
from .constants import Constant, spec_at
from .robust_branch import RegretBranch
from .spans import Span, spans_of

#: Constants at the corners: 2^3 = 8 corners.
MOST_CONSTANTS = 3
#: A constant that moves no candidate by more than this share of its time is held.
_INFLUENCE = 1e-5


@dataclass(frozen=True)
class Corner:
    """One corner: values of the constants, and times (us) of the best plan, of the answer and of the nominal winner."""

    values: dict[str, float]
    best_us: float
    best_branch: BranchName
    robust_us: float
    nominal_us: float


@dataclass(frozen=True)
class RobustChoice:
    """The answer. Regrets in microseconds, at the worst corner; ``proven`` when no plan has a smaller one."""

    plan: Plan
    nominal: Plan
    robust_at_nominal_us: float
    nominal_us: float
    regret_us: float
    nominal_regret_us: float
    proven: bool
    spans: tuple[Span, ...]
    held: tuple[Span, ...]
    corners: tuple[Corner, ...]

    @property
    def nominal_can_lose(self) -> bool:
        """Whether another plan is faster than the nominal winner at some corner."""
        return self.nominal_regret_us > 0

    def to_json(self) -> dict[str, Any]:
        """Plain data as ``--json`` prints it."""
        return {
            "branch": self.plan.branch,
            "plan": self.plan.model_dump(mode="json"),
            "latency_us": self.robust_at_nominal_us,
            "worst_regret_us": self.regret_us,
            "proven": self.proven,
            "nominal_can_lose": self.nominal_can_lose,
            "nominal_worst_regret_us": self.nominal_regret_us,
            "nominal_latency_us": self.nominal_us,
            "same_plan": self.plan == self.nominal,
            "constants": [
                {"name": s.constant.name, "low": s.low, "high": s.high, "own": s.constant.own, "why": s.why}
                for s in self.spans
            ],
            "held": [s.constant.name for s in self.held],
            "corners": [
                {
                    "values": c.values, "best_us": c.best_us, "best_branch": c.best_branch, "robust_us": c.robust_us,
                    "nominal_us": c.nominal_us,
                }
                for c in self.corners
            ],
        }  # fmt: skip


def robust(
    case: BmmCase,
    spans: Sequence[Span] | None = None,
    *,
    hardware: str | NpuSpec = "ascend950pr",
    rules: Profile = "v0.4",
    environment: Environment = "profiler",
    branches: Sequence[BranchName] = BRANCHES,
    most: int = MOST_CONSTANTS,
    options: SolveOptions | None = None,
) -> RobustChoice | None:
    """Plan of least worst-case regret; ``None`` when no branch has a plan (or none was found in the time limit).

    Args:
        case: the problem.
        spans: intervals of constants, by default those of the chip's confidence marks.
        most: constants at the corners, the most influential ones; the others are held at their values.

    Raises:
        InputError: an argument is not known.
    """
    ctx = make_context(case, hardware, rules, environment)
    options = replace(options or SolveOptions(), tie_break=False, explain=False, dump_models=None)
    if any(pin.field == LATENCY for pin in options.pins):
        raise InputError(f"a pin on {LATENCY} says nothing about uncertain constants; drop it or --robust")
    names = [name for name in BRANCHES if name in branches and not breaks_entry(ctx, name)]
    winners = evaluations(solve_branches(ctx, names, options))
    if not winners:
        return None
    spans = spans_of(ctx.spec) if spans is None else list(spans)
    moving, held = _influential(ctx, spans, list(winners.values()), most)
    settings, contexts = _corners(ctx, moving)
    best = [_best(context, names, options) for context in contexts]
    least = [found for found in best if found is not None]
    if len(least) < len(best):
        return None
    nominal = _nominal(ctx, winners, options)
    answer, proven = _minimax(ctx, contexts, [e.ticks for e in least], names, options)
    if answer is None:
        return None
    at_nominal = [_ticks(context, nominal) for context in contexts]
    at_answer = [_ticks(context, answer) for context in contexts]
    if _regret(at_answer, least) == _regret(at_nominal, least):  # no better than the nominal winner: keep that
        answer, at_answer = nominal, at_nominal
    corners = tuple(
        Corner(values, context.us(e.ticks), e.plan.branch, context.us(r), context.us(n))
        for values, context, e, r, n in zip(settings, contexts, least, at_answer, at_nominal, strict=True)
    )
    us = contexts[0].us
    return RobustChoice(
        plan=answer,
        nominal=nominal,
        robust_at_nominal_us=ctx.us(_ticks(ctx, answer)),
        nominal_us=ctx.us(_ticks(ctx, nominal)),
        regret_us=us(_regret(at_answer, least)),
        nominal_regret_us=us(_regret(at_nominal, least)),
        proven=proven,
        spans=tuple(moving),
        held=tuple(held),
        corners=corners,
    )


def _best(ctx: Context, names: Sequence[BranchName], options: SolveOptions) -> Evaluation | None:
    """The fastest plan over all branches."""
    found = evaluations(solve_branches(ctx, names, options, to_equal))
    name = fastest(found)
    return None if name is None else found[name]


def _nominal(ctx: Context, winners: Mapping[BranchName, Evaluation], options: SolveOptions) -> Plan:
    """The plan that ``solve`` names."""
    winner = winner_of({name: found.ticks for name, found in winners.items()})
    assert winner is not None
    solved = solve_branch(ctx, winner, replace(options, tie_break=True))
    assert solved.evaluation is not None
    return solved.evaluation.plan


def _regret(ticks: Sequence[int], least: Sequence[Evaluation]) -> int:
    """Largest regret over the corners."""
    return max(here - best.ticks for here, best in zip(ticks, least, strict=True))


def _influential(
    ctx: Context, spans: Sequence[Span], candidates: Sequence[Evaluation], most: int
) -> tuple[list[Span], list[Span]]:
    """The spans that move the candidates' times most, and the others."""
    moves = []
    for span in spans:
        fast, slow = (_moved(ctx, {span.constant: end}) for end in span.ends)
        moves.append(max(abs(_us(slow, e.plan) - _us(fast, e.plan)) / ctx.us(e.ticks) for e in candidates))
    order = sorted(range(len(spans)), key=lambda i: -moves[i])[:most]
    chosen = [spans[i] for i in sorted(order) if moves[i] > _INFLUENCE]
    return chosen, [span for span in spans if span not in chosen]


def _moved(ctx: Context, values: dict[Constant, float]) -> Context:
    return Context.of(ctx.case, spec_at(ctx.spec, values), ctx.profile, ctx.environment)


def _us(ctx: Context, plan: Plan) -> float:
    return ctx.us(_ticks(ctx, plan))


def _ticks(ctx: Context, plan: Plan) -> int:
    return evaluate_plan(ctx, plan).ticks


def _corners(ctx: Context, spans: Sequence[Span]) -> tuple[list[dict[str, float]], list[Context]]:
    """Values and contexts of all corners, in one common tick."""
    values = [dict(zip((s.constant for s in spans), ends, strict=True)) for ends in product(*(s.ends for s in spans))]
    contexts = [_moved(ctx, one) for one in values]
    tick = max(context.cycles_per_tick for context in (ctx, *contexts))
    named = [{one.name: value for one, value in corner.items()} for corner in values]
    return named, [replace(context, cycles_per_tick=tick) for context in contexts]


def _minimax(
    ctx: Context, contexts: Sequence[Context], least: Sequence[int], names: Sequence[BranchName], options: SolveOptions
) -> tuple[Plan | None, bool]:
    """The plan of least largest regret over all branches, and whether that is proven."""
    best: tuple[int, Plan] | None = None
    proven = True
    common = replace(ctx, cycles_per_tick=contexts[0].cycles_per_tick)
    for name in likely_first(names):
        regret = RegretBranch(asked_branch(name, options.pins), contexts, least)
        search = BranchSearch(common, regret, Budget.of(options.time_limit))
        stop = None if best is None else to_beat(best[0])
        verdict = search.optimum(stop)
        ended = stop is not None and search.bound is not None and search.bound > stop
        if verdict is Verdict.UNKNOWN and not ended:
            proven = False
        if search.best is None or (best is not None and search.best.evaluation.ticks >= best[0]):
            continue
        if verdict is Verdict.OPTIMAL:
            search.prefer()
        best = (search.best.evaluation.ticks, search.best.evaluation.plan)
    return (None if best is None else best[1]), proven
