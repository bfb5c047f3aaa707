"""Times of fixed plans on chips with other constants: the integer model, evaluated again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...hardware import NpuSpec
from ...models.algebra import IntAlgebra
from ...models.branches import BRANCH_OF
from ...models.plan import Plan
from .constants import Constant, spec_at
from .predict import Run, context_of

Array = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

#: Counter of an export -> stage of the model.
STAGE_OF = {"mac_us": "mmad", "mte1_us": "mte1", "mte2_us": "mte2", "fixpipe_us": "fixpipe"}
#: Finite-difference step of a scale.
_STEP = 1e-3


@dataclass(frozen=True)
class Quantity:
    """One number that was measured: the total time of a run, or (``stage``) the busy time of a pipe."""

    run: int
    stage: str
    measured: float
    share: float = 1.0


class Timing:
    """Runs with whole plans, and what was measured about each."""

    def __init__(self, runs: Sequence[Run], spec: NpuSpec) -> None:
        self.runs = list(runs)
        self.spec = spec
        self._values = []
        for run in self.runs:
            assert run.plan is not None
            self._values.append(BRANCH_OF[run.plan.branch].values(context_of(run, spec), run.plan))
        self.quantities = [quantity for index, run in enumerate(self.runs) for quantity in _quantities(index, run)]
        self.measured = np.array([q.measured for q in self.quantities])

    def predicted(self, spec: NpuSpec) -> Array:
        """The model's value of every measured quantity, microseconds."""
        stages = []
        for run, values in zip(self.runs, self._values, strict=True):
            assert run.plan is not None
            ctx = context_of(run, spec)
            outcome = BRANCH_OF[run.plan.branch].formula(IntAlgebra(), ctx, values)
            stages.append((outcome.stages, float(1 / ctx.ticks_per_us)))
        return np.array([getattr(stages[q.run][0], q.stage) * stages[q.run][1] * q.share for q in self.quantities])

    def at(self, constants: Sequence[Constant], scales: Array) -> Array:
        """Relative errors with the constants at these scales."""
        spec = spec_at(self.spec, {c: c.value(float(x)) for c, x in zip(constants, scales, strict=True)})
        errors: Array = self.predicted(spec) / self.measured - 1.0
        return errors

    def jacobian(self, constants: Sequence[Constant], scales: Array, errors: Array | None = None) -> Array:
        """Derivatives of the relative errors by the scales; a step leads inside the bounds."""
        base = self.at(constants, scales) if errors is None else errors
        columns = []
        for index, one in enumerate(constants):
            step = _STEP if scales[index] + _STEP <= one.high else -_STEP
            moved = scales.copy()
            moved[index] += step
            columns.append((self.at(constants, moved) - base) / step)
        return np.stack(columns, axis=1) if columns else np.zeros((len(base), 0))


def _quantities(index: int, run: Run) -> list[Quantity]:
    """Total and counters of a run. The Fixpipe counter of a unit-flag kernel counts waiting and is left out."""
    assert run.plan is not None
    found = [Quantity(index, "total", run.row.latency_us)]
    for counter, value in run.row.counters.items():
        if counter == "fixpipe_us" and run.plan.fixpipe_unitflag:
            continue
        share = 1.0 if counter == "mte2_us" else _share_of_busiest(run, run.plan)
        found.append(Quantity(index, STAGE_OF[counter], value, share))
    return found


def _share_of_busiest(run: Run, plan: Plan) -> float:
    """Mean work of the launched cores over that of the busiest one: counters are means over cores."""
    if plan.branch != "asw_basic" or plan.m_cnt is None or plan.n_cnt is None or plan.used_core_num is None:
        return 1.0
    assert run.case is not None
    blocks = plan.m_cnt * plan.n_cnt * run.case.batch
    rounds = -(-blocks // plan.used_core_num)
    return min(1.0, blocks / (rounds * max(run.row.cores or 0, plan.used_core_num)))
