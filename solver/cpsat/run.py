"""One CP-SAT run with the profile of record."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ortools.sat.python import cp_model

from ...hardware.errors import InternalError
from .evidence import model_text

#: Parameters of every answer of record. ``presolve_inclusion_work_limit = 0`` avoids a wrong optimum of OR-Tools 9.15.
PROFILE: Final[dict[str, int | bool]] = {
    "num_workers": 1,
    "linearization_level": 0,
    "presolve_inclusion_work_limit": 0,
    "random_seed": 1,
    "symmetry_level": 0,
    "catch_sigint_signal": False,
}


class Verdict(Enum):
    """What a run showed."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass
class Budget:
    """Time left for a branch: a deterministic limit and a wall-clock fuse, both in seconds."""

    deterministic: float
    deadline: float

    @classmethod
    def of(cls, seconds: float) -> Budget:
        """A budget of ``seconds`` of deterministic time, fused at the same wall time."""
        return cls(seconds, time.monotonic() + seconds)

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.deterministic <= 0 or time.monotonic() >= self.deadline


def run(model: cp_model.CpModel, budget: Budget) -> tuple[Verdict, cp_model.CpSolver]:
    """Solve a model and charge the budget.

    Raises:
        InternalError: OR-Tools refuses the model.
    """
    solver = cp_model.CpSolver()
    for name, value in PROFILE.items():
        setattr(solver.parameters, name, value)
    solver.parameters.max_deterministic_time = max(budget.deterministic, 1e-3)
    solver.parameters.max_time_in_seconds = max(budget.deadline - time.monotonic(), 1e-3)
    status = solver.solve(model)
    budget.deterministic -= solver.deterministic_time
    if status == cp_model.MODEL_INVALID:
        raise InternalError(f"OR-Tools refuses the model: {model.validate()}", model=model_text(model))
    return {
        cp_model.OPTIMAL: Verdict.OPTIMAL,
        cp_model.FEASIBLE: Verdict.FEASIBLE,
        cp_model.INFEASIBLE: Verdict.INFEASIBLE,
    }.get(status, Verdict.UNKNOWN), solver
