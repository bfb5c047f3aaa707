"""Which runs to measure next: those that settle which tiling is best, then those that pin down a weak constant.

The times of candidate tilings are taken as normal around the model's, with a covariance from three sources: the
constants (each within its span), an error of the model itself, and the noise of a measurement. The model's error is
mostly one for a case; a smaller part belongs to the block shape and a still smaller one to the tiling. A run is worth
the time that the better choice it allows saves on average (the knowledge gradient of one observation).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import erf, exp, pi, sqrt
from typing import Any, Final

import numpy as np

from ...hardware import NpuSpec
from ...models.case import BmmCase
from ...models.context import Context, Environment
from ...models.evaluation import evaluate_plan
from ...models.pins import parse_pins
from ...models.plan import BRANCHES, Plan
from ...models.rules import Profile
from ..describe import deciding_parameters
from ..search.branches import breaks_entry
from ..search.solve_branch import SolveOptions, solve_branch
from .constants import spec_at
from .spans import Span
from .timing import Array

#: Relative error of the model that all tilings of a case share (together about that of the validation), that of one
#: block shape, and that of one tiling.
CASE_ERROR: Final = 0.03
BLOCK_ERROR: Final = 0.01
TILING_ERROR: Final = 0.003
#: Relative noise of a measurement.
NOISE: Final = 0.01
#: A run that saves less than this share of a case's time on average settles no choice.
_WORTH: Final = 2e-4
#: Spans of one constant whose ends are solved for more candidates.
_ENDS: Final = 3
#: A span is taken as four standard deviations.
_DEVIATIONS: Final = 4.0


@dataclass(frozen=True)
class Candidate:
    """A tiling of a case that could be run."""

    case: BmmCase
    plan: Plan
    time_us: float
    slopes: tuple[float, ...]


@dataclass(frozen=True)
class Experiment:
    """One proposed run with the reason for it."""

    candidate: Candidate
    reason: str


def propose(
    cases: Sequence[BmmCase],
    spans: Sequence[Span],
    *,
    spec: NpuSpec,
    rules: Profile = "none",
    environment: Environment = "profiler",
    count: int = 5,
    options: SolveOptions | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> list[Experiment]:
    """The runs to measure, most valuable first; fewer than ``count`` when there are no more candidates."""
    options = options or SolveOptions(time_limit=20.0)
    options = replace(options, explain=False, tie_break=True, pins=(), dump_models=None)
    candidates: list[Candidate] = []
    for done, case in enumerate(cases):
        if progress is not None:
            progress(done, case.case_id)
        candidates += _candidates(Context.of(case, spec, rules, environment), spans, options)
    belief = _Belief(candidates, spans)
    chosen: list[Experiment] = []
    while len(chosen) < min(count, len(candidates)):
        run, reason = belief.next([c.candidate for c in chosen])
        belief.observe(run)
        chosen.append(Experiment(candidates[run], reason))
    return chosen


def _candidates(ctx: Context, spans: Sequence[Span], options: SolveOptions) -> list[Candidate]:
    """Best plans of every branch, of the ends of the strongest spans, and probes with smaller tiles."""
    names = [name for name in BRANCHES if not breaks_entry(ctx, name)]
    ends = [[_at(ctx, {span: end}) for end in span.ends] for span in spans]
    plans: dict[Plan, None] = {}

    def offer(context: Context, name: Any, settings: SolveOptions) -> None:
        found = solve_branch(context, name, settings).evaluation
        if found is not None:
            plans[found.plan] = None

    for name in names:
        offer(ctx, name, options)
    if not plans:
        return []
    best = min(plans, key=lambda plan: evaluate_plan(ctx, plan).ticks)
    moves = [abs(_us(slow, best) - _us(fast, best)) for fast, slow in ends]
    for index in sorted(range(len(spans)), key=lambda i: -moves[i])[:_ENDS]:
        for context in ends[index]:
            offer(context, best.branch, options)
    for field in ("base_m", "base_n", "base_k"):
        half = (getattr(best, field) or 0) // 2
        if half:
            offer(ctx, best.branch, replace(options, pins=parse_pins([f"{field}<={half}"])))
    result = []
    for plan in plans:
        slopes = tuple((_us(slow, plan) - _us(fast, plan)) / _DEVIATIONS for fast, slow in ends)
        result.append(Candidate(ctx.case, plan, _us(ctx, plan), slopes))
    return result


def _at(ctx: Context, values: dict[Span, float]) -> Context:
    spec = spec_at(ctx.spec, {span.constant: value for span, value in values.items()})
    return Context.of(ctx.case, spec, ctx.profile, ctx.environment)


def _us(ctx: Context, plan: Plan) -> float:
    return ctx.us(evaluate_plan(ctx, plan).ticks)


class _Belief:
    """Joint normal belief about the times of the candidates and the constants (in standard deviations)."""

    def __init__(self, candidates: Sequence[Candidate], spans: Sequence[Span]) -> None:
        self.candidates = candidates
        self.spans = spans
        self.times = np.array([c.time_us for c in candidates])
        slopes = np.array([c.slopes for c in candidates]).reshape(len(candidates), len(spans))
        own = np.outer(self.times, self.times) * [[_likeness(a, b) for b in candidates] for a in candidates]
        self.covariance: Array = np.block([[slopes @ slopes.T + own, slopes], [slopes.T, np.eye(len(spans))]])
        self.slopes = slopes
        self.groups: dict[BmmCase, list[int]] = {}
        for index, candidate in enumerate(candidates):
            self.groups.setdefault(candidate.case, []).append(index)

    def _noise(self, run: int) -> float:
        return float(self.covariance[run, run] + (NOISE * self.times[run]) ** 2)

    def observe(self, run: int) -> None:
        """Take in that a run will be measured (its result does not matter to the covariance)."""
        column = self.covariance[:, run]
        self.covariance = self.covariance - np.outer(column, column) / self._noise(run)

    def next(self, done: Sequence[Candidate]) -> tuple[int, str]:
        """The most valuable run that is not done, and why."""
        open_runs = [i for i, c in enumerate(self.candidates) if c not in done]
        worth = {run: self._choice_worth(run) for run in open_runs}
        run = max(open_runs, key=lambda i: worth[i][0])
        gain, leader, rival = worth[run]
        if gain > _WORTH:
            return run, self._choice_reason(run, leader, rival)
        weakest = int(np.argmax([self._weight(j) for j in range(len(self.spans))])) if self.spans else None
        if weakest is None:
            return run, "next best candidate; no constant is uncertain"
        run = max(open_runs, key=lambda i: float(self._told(i, weakest)))
        return run, self._constant_reason(run, weakest)

    def _choice_worth(self, run: int) -> tuple[float, int, int]:
        """Mean saving (share of the time) of the choice that a run settles best: (saving, leader, rival)."""
        best = (0.0, run, run)
        for group in self.groups.values():
            leader = min(group, key=lambda i: float(self.times[i]))
            for rival in group:
                if rival != leader:
                    apart = float(self.times[rival] - self.times[leader])
                    moved = self.covariance[run, rival] - self.covariance[run, leader]
                    deviation = abs(float(moved)) / sqrt(self._noise(run))
                    saving = _expected_saving(apart, deviation) / float(self.times[leader])
                    if saving > best[0]:
                        best = (saving, leader, rival)
        return best

    def _choice_reason(self, run: int, leader: int, rival: int) -> str:
        one, two = self.candidates[leader], self.candidates[rival]
        before = self._doubt(leader, rival)
        column = self.covariance[:, run]
        after_covariance = self.covariance - np.outer(column, column) / self._noise(run)
        spread = _spread(after_covariance, leader, rival)
        kept = self._causes(leader, rival)
        here = self.candidates[run].case == one.case
        way = "" if here else f" through what it tells about {self._messenger(run, leader, rival)}"
        return (
            f"settles case {one.case.case_id or '1'}{way}: {one.plan.branch} ({deciding_parameters(one.plan)}) at "
            f"{one.time_us:.2f} us against {two.plan.branch} ({deciding_parameters(two.plan)}) at "
            f"{two.time_us:.2f} us; the order is wrong with {100 * before:.0f} % probability ({kept}); the difference "
            f"is known to +-{2 * _spread(self.covariance, leader, rival):.2f} us now, +-{2 * spread:.2f} us after this "
            f"run"
        )

    def _messenger(self, run: int, leader: int, rival: int) -> str:
        """The constant through which a run of another case bears on a choice."""
        told = np.abs((self.slopes[rival] - self.slopes[leader]) * self.covariance[len(self.times) :, run])
        return self.spans[int(np.argmax(told))].constant.name

    def _causes(self, leader: int, rival: int) -> str:
        """The constants that move the difference most."""
        moves = np.abs(self.slopes[rival] - self.slopes[leader]) * np.sqrt(np.diag(self.covariance)[len(self.times) :])
        order = [int(j) for j in np.argsort(-moves)[:2] if moves[j] > 1e-3 * self.times[leader]]
        names = " and ".join(self.spans[j].constant.name for j in order)
        return f"by {names} and the model's own error" if names else "by the model's own error"

    def _doubt(self, leader: int, rival: int) -> float:
        spread = _spread(self.covariance, leader, rival)
        return _normal(-float(self.times[rival] - self.times[leader]) / spread) if spread else 0.0

    def _weight(self, constant: int) -> float:
        """Largest share of a best plan's time that a constant still leaves open."""
        left = sqrt(max(0.0, float(self.covariance[len(self.times) + constant, len(self.times) + constant])))
        leaders = [min(group, key=lambda i: float(self.times[i])) for group in self.groups.values()]
        return max(abs(float(self.slopes[i, constant])) / float(self.times[i]) for i in leaders) * left

    def _told(self, run: int, constant: int) -> float:
        """Variance of a constant that a run takes away."""
        return float(self.covariance[len(self.times) + constant, run] ** 2) / self._noise(run)

    def _constant_reason(self, run: int, constant: int) -> str:
        span = self.spans[constant]
        index = len(self.times) + constant
        now = float(self.covariance[index, index])
        after = max(0.0, now - self._told(run, constant))
        half = (span.high - span.low) / 2 / span.constant.own
        return (
            f"pins down {span.constant.name}, which leaves +-{200 * self._weight(constant):.1f} % of a best plan's "
            f"time open: known to +-{100 * half * sqrt(now):.1f} % now, +-{100 * half * sqrt(after):.1f} % after this "
            f"run"
        )


def _likeness(one: Candidate, two: Candidate) -> float:
    """Covariance of the model's own relative errors for two tilings."""
    if one.case != two.case:
        return 0.0
    a, b = one.plan, two.plan
    block = (a.branch, a.base_m, a.base_n, a.l1_form, a.full_load) == (
        b.branch,
        b.base_m,
        b.base_n,
        b.l1_form,
        b.full_load,
    )
    return CASE_ERROR**2 + block * BLOCK_ERROR**2 + (a == b) * TILING_ERROR**2


def _spread(covariance: Array, one: int, two: int) -> float:
    return sqrt(max(0.0, float(covariance[one, one] + covariance[two, two] - 2 * covariance[one, two])))


def _expected_saving(apart: float, deviation: float) -> float:
    """Mean of what is saved when a rival ``apart`` behind may come out ahead after news of a deviation."""
    if deviation <= 0:
        return 0.0
    z = apart / deviation
    return deviation * exp(-z * z / 2) / sqrt(2 * pi) - apart * _normal(-z)


def _normal(z: float) -> float:
    return 0.5 * (1 + erf(z / sqrt(2)))
