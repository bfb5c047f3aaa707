"""CP-SAT runs: of record, and those of explanations. Other rooms name OR-Tools' types by the aliases here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from ortools.sat.python import cp_model

from ...hardware.errors import InternalError

#: A model, what solves it and holds its solution, and a 0/1 variable.
Model = cp_model.CpModel
Solver = cp_model.CpSolver
Literal = cp_model.IntVar

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


def model_text(model: Model) -> str:
    """A CP-SAT model as protobuf text (``.pbtxt``)."""
    return f"{str(model.proto).rstrip()}\n"


def run(model: Model, budget: Budget) -> tuple[Verdict, Solver]:
    """Solve a model and charge the budget.

    Raises:
        InternalError: OR-Tools refuses the model.
    """
    solver = _solver(
        max_deterministic_time=max(budget.deterministic, 1e-3),
        max_time_in_seconds=max(budget.deadline - time.monotonic(), 1e-3),
    )
    verdict = _solved(solver, model)
    budget.deterministic -= solver.deterministic_time
    return verdict, solver


def run_unpresolved(model: Model, seconds: float) -> tuple[Verdict, Solver]:
    """Solve a model without presolve, within ``seconds`` of deterministic time.

    Raises:
        InternalError: OR-Tools refuses the model.
    """
    solver = _solver(cp_model_presolve=False, max_deterministic_time=seconds)
    return _solved(solver, model), solver


def run_held(model: Model, held: Mapping[str, Literal], seconds: float) -> tuple[Verdict, frozenset[str]]:
    """Solve a model with the literals held true; when it is infeasible, also which of them suffice for that.

    That is OR-Tools' word alone: it may leave some out, and a literal that was not held is named ``?``.

    Raises:
        InternalError: OR-Tools refuses the model.
    """
    model.clear_assumptions()
    model.add_assumptions(list(held.values()))
    verdict, solver = run_unpresolved(model, seconds)
    if verdict is not Verdict.INFEASIBLE:
        return verdict, frozenset()
    names = {literal.index: name for name, literal in held.items()}
    return verdict, frozenset(names.get(index, "?") for index in solver.sufficient_assumptions_for_infeasibility())


def _solver(**parameters: Any) -> Solver:
    solver = Solver()
    for name, value in (*PROFILE.items(), *parameters.items()):
        setattr(solver.parameters, name, value)
    return solver


def _solved(solver: Solver, model: Model) -> Verdict:
    status = solver.solve(model)
    if status == cp_model.MODEL_INVALID:
        raise InternalError(f"OR-Tools refuses the model: {model.validate()}", model=model_text(model))
    return {
        cp_model.OPTIMAL: Verdict.OPTIMAL,
        cp_model.FEASIBLE: Verdict.FEASIBLE,
        cp_model.INFEASIBLE: Verdict.INFEASIBLE,
    }.get(status, Verdict.UNKNOWN)
