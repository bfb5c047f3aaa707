"""Solvers of one branch of one case with a clock: ours, and what one would try instead.

Each takes the context, the branch and a number of seconds (building included) and returns what it tried, found and
claims. All run on one thread with fixed seeds. None but ours uses its bounds, beam or hints.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from plain_model import PlainModel, SingleStructure, union_of_decisions

from tileproof import BmmCase, evaluate
from tileproof.models.algebra import IntAlgebra
from tileproof.models.branches import Branch
from tileproof.models.context import Context
from tileproof.models.evaluation import evaluate_values
from tileproof.models.plan import Plan
from tileproof.models.points import Points, evaluate_points
from tileproof.models.rules import Profile
from tileproof.solver.api import make_context
from tileproof.solver.proof.enumerator import Enumerator
from tileproof.solver.result import Status
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch

#: Regret below which two optima are the same: HiGHS knows no whole ticks.
SAME = 1e-5
_SEED = 1
_SAMPLES = 4096
#: Plans that an enumerator lists between two looks at the clock.
_LISTED = 50_000


class _TimeUp(Exception):
    """The seconds are used up."""


@dataclass
class Attempt:
    """What a solver did: improvements as (seconds, plan or point of the search space), its proof, its end.

    ``infeasible`` is the claim that there is no plan at all.
    """

    started: float = field(default_factory=time.perf_counter)
    found: list[tuple[float, Plan | dict[str, Any]]] = field(default_factory=list)
    proven: bool = False
    infeasible: bool = False
    seconds: float = 0.0
    note: str = ""

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self.started

    def offer(self, point: Plan | dict[str, Any]) -> None:
        """A better plan than before."""
        self.found.append((self.elapsed, point))


Solver = Callable[[Context, Branch, float, Attempt], None]


def run(solver: Solver, ctx: Context, branch: Branch, limit: float) -> Attempt:
    """Let a solver work; a missing dependency or a model that it refuses becomes a note."""
    attempt = Attempt()
    try:
        solver(ctx, branch, limit, attempt)
    except _TimeUp:
        pass
    except ImportError as error:
        attempt.note = f"{error.name} is not installed"
    except Exception as error:
        attempt.note = f"{type(error).__name__}: {error}"
    attempt.seconds = attempt.elapsed
    return attempt


def judged_ticks(case: BmmCase, rules: Profile, branch: Branch, item: Plan | dict[str, Any]) -> int | None:
    """Ticks of a plan, or of a point of the search space, by the public evaluator; None if it breaks a rule."""
    if not isinstance(item, Plan):
        item = evaluate_values(make_context(case, rules=rules), branch, item).plan
    judged = evaluate(case, item, rules=rules)
    return judged.latency_ticks if judged.feasible else None


def ours(ctx: Context, branch: Branch, limit: float, attempt: Attempt) -> None:
    """Our solver without the tie-break; its optimum counts from the end of the proof on."""
    result = solve_branch(ctx, branch.name, SolveOptions(time_limit=limit, tie_break=False, explain=False)).result
    if result.plan is not None:
        attempt.offer(result.plan)
    attempt.proven = result.status is Status.OPTIMAL
    attempt.infeasible = result.status is Status.INFEASIBLE


def _enumerate(ctx: Context, branch: Branch, limit: float, attempt: Attempt, *, exhaustive: bool) -> None:
    best = None

    def look(_: int = 0) -> None:
        nonlocal best
        if enumerator.best is not best:
            best = enumerator.best
            assert best is not None
            attempt.offer(best.plan)
        if attempt.elapsed > limit:
            raise _TimeUp

    enumerator = Enumerator(ctx, branch, exhaustive=exhaustive, chunk=_LISTED, progress=look)
    enumerator.run()
    attempt.proven = True
    look()


def enumerator_bounds(ctx: Context, branch: Branch, limit: float, attempt: Attempt) -> None:
    """Our enumerator: lists the plans, interval bounds skip what cannot beat the best one seen."""
    _enumerate(ctx, branch, limit, attempt, exhaustive=False)


def enumerator_all(ctx: Context, branch: Branch, limit: float, attempt: Attempt) -> None:
    """Brute force: every plan, with NumPy."""
    _enumerate(ctx, branch, limit, attempt, exhaustive=True)


def _cpmpy(ctx: Context, branch: Branch, limit: float, attempt: Attempt, ceiling: int | None = None) -> int | None:
    """Solve the plain cpmpy model below ``ceiling`` with CP-SAT as it comes; the least total found."""
    import cpmpy as cp
    from cpmpy_algebra import CpmpyAlgebra
    from ortools.sat.python import cp_model

    alg = CpmpyAlgebra()
    model = PlainModel(alg, ctx, branch)
    if ceiling is not None:
        alg.constraints.append(alg.total < ceiling)
    solver = cp.SolverLookup.get("ortools", cp.Model(alg.constraints, minimize=alg.total))

    class Watch(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            attempt.offer(model.point(lambda x: x if isinstance(x, int) else self.value(solver.solver_var(x))))

    left = limit - attempt.elapsed
    if left <= 0:
        raise _TimeUp
    solved = solver.solve(time_limit=left, num_workers=1, solution_callback=Watch())
    status = solver.status().exitstatus.name
    attempt.proven = status in ("OPTIMAL", "UNSATISFIABLE")
    attempt.infeasible = status == "UNSATISFIABLE" and ceiling is None
    return int(solver.objective_value()) if solved else ceiling


def cpmpy_joint(ctx: Context, branch: Branch, limit: float, attempt: Attempt) -> None:
    """cpmpy, all structures in one model."""
    _cpmpy(ctx, branch, limit, attempt)


def cpmpy_one_by_one(ctx: Context, branch: Branch, limit: float, attempt: Attempt) -> None:
    """cpmpy, a model for each structure in turn, which must beat the best total so far."""
    best = None
    impossible = True
    for position in range(len(branch.structures(ctx, complete=True))):
        best = _cpmpy(ctx, SingleStructure(branch, position), limit, attempt, best)
        impossible = impossible and attempt.infeasible
        attempt.infeasible = False
        if not attempt.proven:
            return
    attempt.infeasible = impossible


def highs(ctx: Context, branch: Branch, limit: float, attempt: Attempt) -> None:
    """HiGHS on the linearised model, all structures in one."""
    import highspy
    from highs_algebra import HighsAlgebra

    alg = HighsAlgebra(ctx.us(1))
    model = PlainModel(alg, ctx, branch)
    solver = highspy.Highs()
    solver.silent()
    solver.passModel(alg.model())
    for option, value in (("threads", 1), ("mip_rel_gap", 0.0), ("mip_feasibility_tolerance", 1e-9)):
        solver.setOptionValue(option, value)

    def improved(event: Any) -> None:
        columns = event.data_out.mip_solution
        attempt.offer(model.point(lambda x: alg.integer_value(x, columns)))

    solver.cbMipImprovingSolution.subscribe(improved)
    left = limit - attempt.elapsed
    if left <= 0:
        raise _TimeUp
    solver.setOptionValue("time_limit", left)
    solver.run()
    status = solver.getModelStatus()
    attempt.proven = status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
    attempt.infeasible = status == highspy.HighsModelStatus.kInfeasible


def random_search(ctx: Context, branch: Branch, limit: float, attempt: Attempt) -> None:
    """Uniform random points of random structures, thousands at once with NumPy."""
    rng = np.random.default_rng(_SEED)
    structures = branch.structures(ctx, complete=True)
    least = None
    while attempt.elapsed < limit:
        structure = structures[rng.integers(len(structures))]
        columns = {d.name: rng.choice(np.asarray(d.domain(), dtype=np.int64), _SAMPLES) for d in structure.decisions}
        points = Points(columns, _SAMPLES)
        total, mask = evaluate_points(ctx, branch, structure, points)
        good = np.flatnonzero(mask)
        if len(good) and (least is None or total[good].min() < least):
            best = good[total[good].argmin()]
            least = total[best]
            attempt.offer({**structure.constants, **points.row(int(best))})


def annealing(ctx: Context, branch: Branch, limit: float, attempt: Attempt) -> None:
    """scipy's dual annealing over the unit cube: one axis chooses the structure, one each the value of a decision.

    The energy is the logarithm of the time, plus a penalty for each broken rule that grows with the excess.
    """
    from scipy.optimize import dual_annealing

    structures = branch.structures(ctx, complete=True)
    decisions = union_of_decisions(structures)
    least = math.inf

    def chosen(share: float, options: Any) -> Any:
        return options[min(int(share * len(options)), len(options) - 1)]

    def energy(shares: Any) -> float:
        nonlocal least
        if attempt.elapsed > limit:
            raise _TimeUp
        structure = chosen(shares[0], structures)
        axes = dict(zip((d.name for d in decisions), shares[1:], strict=True))
        point = {**structure.constants, **{d.name: chosen(axes[d.name], d.domain()) for d in structure.decisions}}
        alg = IntAlgebra()
        ticks = branch.formula(alg, ctx, point).stages.total
        broken = [check for check in alg.checks if not check.holds]
        if not broken and ticks < least:
            least = ticks
            attempt.offer(point)
        return math.log(ticks) + sum(1 + abs(math.log((c.left + 1) / (c.right + 1))) for c in broken)

    cube = [(0.0, 1.0)] * (len(decisions) + 1)
    rng = np.random.default_rng(_SEED)
    # The energy is piecewise constant, so a gradient search after each jump would only cost evaluations.
    dual_annealing(energy, cube, maxiter=10**9, maxfun=10**12, no_local_search=True, rng=rng)


#: Every solver by its name in the table; ours first.
SOLVERS: dict[str, Solver] = {
    "tileproof": ours,
    "own enumerator, with bounds": enumerator_bounds,
    "own enumerator, all plans": enumerator_all,
    "cpmpy + CP-SAT, one model": cpmpy_joint,
    "cpmpy + CP-SAT, by structure": cpmpy_one_by_one,
    "HiGHS (MIP)": highs,
    "random search": random_search,
    "simulated annealing": annealing,
}
