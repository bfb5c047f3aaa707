"""What the model says about a measured run.

A run whose tiling is given as a whole is evaluated. Otherwise what is known is pinned and the rest is the best choice
under the rules of the hardware alone (or those that its set names): over ASW_Basic when a tile is given, over every
branch when none is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from ...hardware import NpuSpec, get_spec
from ...hardware.errors import InputError, SpecError
from ...hardware.measured import Measurement, measured_sets
from ...models.case import BmmCase
from ...models.context import Context, Environment
from ...models.evaluation import Evaluation, evaluate_plan
from ...models.pins import Pin, parse_pins
from ...models.plan import BRANCHES, PLAN_FIELDS, BranchName, Plan
from ...models.rules import Profile
from ..search.best import evaluations, fastest, solve_branches, to_beat
from ..search.solve_branch import SolveOptions, solve_branch
from ..tables.cells import case_of
from ..tables.tilings import plan_of_cells

#: Which branches stand for a tile that is given without its branch.
_TILED: Final[tuple[BranchName, ...]] = ("asw_basic",)
#: A plan row that has these is complete enough to be evaluated as it stands.
_WHOLE: Final = ("branch", "base_m", "base_n", "base_k", "l0_buffers", "l0c_buffers", "l1_buffers")
#: Plan columns that say nothing a rule could pin.
_UNPINNED: Final = ("branch", "core_map", "out_dtype_bytes")


@dataclass(frozen=True)
class Run:
    """A measured row as the model sees it, or the reason (``left_out``) why it cannot see it."""

    row: Measurement
    case: BmmCase | None = None
    spec: NpuSpec | None = None
    environment: Environment = "profiler"
    rules: Profile = "none"
    pins: tuple[Pin, ...] = ()
    branches: tuple[BranchName, ...] = tuple(BRANCHES)
    plan: Plan | None = None
    left_out: str = ""


@dataclass(frozen=True)
class Prediction:
    """Model against measurement for one run; times in microseconds, ``base_us`` without the launch head."""

    run: Run
    evaluation: Evaluation | None = None
    base_us: float = 0.0
    head_us: float = 0.0
    left_out: str = ""

    @property
    def row(self) -> Measurement:
        """The measurement."""
        return self.run.row

    def error(self, head_us: float | None = None) -> float:
        """Relative error (model over measured, less one) with the given head, by default that of the environment."""
        head = self.head_us if head_us is None else head_us
        return (self.base_us + head) / self.row.latency_us - 1.0


def prepare(row: Measurement, hardware: str | NpuSpec | None = None, environment: Environment | None = None) -> Run:
    """Case, chip and pins of a row; ``hardware`` and ``environment`` hold instead of the row's own.

    Raises:
        InputError: a cell of the row cannot be read.
    """
    try:
        return _prepared(row, hardware, environment)
    except SpecError as error:
        return Run(row, left_out=str(error))
    except InputError as error:
        raise error.at(row.file, row.row) from None


def _prepared(row: Measurement, hardware: str | NpuSpec | None, environment: Environment | None) -> Run:
    sets = measured_sets()
    facts = sets.of(row.set)
    cells: dict[str, str | None] = {**facts.case_of(row.op, row.case)}
    reason = sets.types.get(cells.get("dtype") or "")
    if reason is not None:
        return Run(row, left_out=f"{cells['dtype']}: {reason}")
    spec = _chip(row, hardware)
    if (both := cells.pop("b", None)) is not None:
        cells |= {"batch_a": both, "batch_b": both}
    plan = {name: text for name, text in row.plan.items() if name in PLAN_FIELDS}
    return Run(
        row,
        case_of(cells),
        spec,
        environment or facts.environment,
        facts.rules,
        _pins(plan, facts.pins_of(row.op)),
        _branches(plan),
        None if any(name not in plan for name in _WHOLE) else plan_of_cells(plan),
    )


def _chip(row: Measurement, hardware: str | NpuSpec | None) -> NpuSpec:
    if isinstance(hardware, NpuSpec):
        return hardware
    known = measured_sets().chips
    return _spec(hardware or known.get(row.chip, row.chip or "ascend950pr"))


@cache
def _spec(name: str) -> NpuSpec:
    return get_spec(name)


def _pins(plan: Mapping[str, str], assumed: Iterable[str]) -> tuple[Pin, ...]:
    """Pins of the row's own columns, and those of its set that speak of other fields."""
    texts = {name: f"{name}={text}" for name, text in plan.items() if name not in _UNPINNED}
    for pin in assumed:
        texts.setdefault(pin.partition("=")[0], pin)
    return parse_pins(texts.values())


def _branches(plan: Mapping[str, str]) -> tuple[BranchName, ...]:
    named = tuple(name for name in BRANCHES if name == plan.get("branch"))
    return named or (_TILED if plan else tuple(BRANCHES))


def context_of(run: Run, spec: NpuSpec | None = None) -> Context:
    """Context of a run, on its chip or another one."""
    assert run.case is not None
    assert run.spec is not None
    return Context.of(run.case, spec or run.spec, run.rules, run.environment)


def predict(run: Run, *, time_limit: float = 60.0) -> Prediction:
    """The model's time for a run."""
    if run.left_out:
        return Prediction(run, left_out=run.left_out)
    ctx = context_of(run)
    evaluation = evaluate_plan(ctx, run.plan) if run.plan is not None else _best(ctx, run, time_limit)
    if evaluation is None:
        return Prediction(run, left_out="no plan obeys what is known about its tiling")
    if not evaluation.feasible:
        broken = ", ".join(check.rule for check in evaluation.violations)
        return Prediction(run, left_out=f"the given plan breaks {broken}")
    head = float(ctx.spec.head_us[ctx.environment])
    return Prediction(run, evaluation, ctx.us(evaluation.ticks) - ctx.us(ctx.head_ticks), head)


def _best(ctx: Context, run: Run, time_limit: float) -> Evaluation | None:
    """Least time over the branches under the pins, the likelier branch among equal ones; its plan is unique."""
    options = SolveOptions(time_limit=time_limit, tie_break=False, explain=False, pins=run.pins)
    found = evaluations(solve_branches(ctx, run.branches, options, to_beat))
    name = fastest(found)
    if name is None:
        return None
    return solve_branch(ctx, name, replace(options, tie_break=True)).evaluation or found[name]


def with_plan(prediction: Prediction) -> Run:
    """The run with the predicted plan held fixed."""
    assert prediction.evaluation is not None
    return replace(prediction.run, plan=prediction.evaluation.plan)
