"""Solve one branch: bounds over structures and tile pairs, an incumbent, and CP-SAT for the rest.

The search space of a branch is a list of structures. Each is bounded point by point with the interval interpreter; only
points that may beat the incumbent go into a CP-SAT model, which proves that nothing better exists or finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from ..hardware.errors import InternalError
from ..models.branches import Branch, Decision, Structure
from ..models.context import Context
from ..models.evaluation import PREFERENCE, Evaluation, evaluate_values
from ..models.points import Array, Points, lower_bounds, reachable
from .cp_algebra import CpAlgebra, Lin, high, low
from .cpsat import Budget, Verdict, run

#: Points of the beam that looks for an incumbent, and points listed as an explicit table in a model.
_BEAM = 48
_TRIES = 16
_TABLE = 4000
_RADIX_LIMIT = 2**50
_DENSE = 16
#: Decisions that the beam completes together, in this order.
_BEAM_GROUPS = (
    ("um", "un", "uk", "l1_buffers", "ub_buffers", "iter_l1", "rows", "runs", "b_l1"),
    ("step_ka", "step_kb", "step_k", "step_part", "iter_l0"),
    ("tail_m", "tail_n"),
)


@dataclass
class Node:
    """One structure (outer decisions fixed) with its bound, and the points over its axes once they are needed."""

    structure: Structure
    bound: int
    points: Points | None = None
    bounds: Array | None = None


@dataclass
class Found:
    """A point with its exact evaluation."""

    structure: Structure
    values: dict[str, Any]
    evaluation: Evaluation

    @property
    def key(self) -> tuple[Any, ...]:
        """Order of plans: ticks, then the tie-break."""
        return (self.evaluation.ticks, self.evaluation.preference)


@dataclass
class SearchLog:
    """What the search did: models solved, and the reason each other part was left out."""

    solved: int = 0
    pruned: int = 0
    models: list[cp_model.CpModel] = field(default_factory=list)


class BranchSearch:
    """Search of one branch of one case."""

    def __init__(self, ctx: Context, branch: Branch, budget: Budget, *, keep_models: bool = False) -> None:
        self.ctx = ctx
        self.branch = branch
        self.budget = budget
        self.log = SearchLog()
        self.nodes = self._nodes()
        self.best: Found | None = None
        self._keep_models = keep_models

    # -- bounds
    def _nodes(self) -> list[Node]:
        nodes = []
        for structure in self.branch.structures(self.ctx, complete=False):
            bounds, alive = lower_bounds(self.ctx, self.branch, structure, Points({}, 1))
            if alive[0]:
                nodes.append(Node(structure, int(bounds[0])))
        return sorted(nodes, key=lambda node: node.bound)

    def _split(self, node: Node) -> None:
        """Replace a node by one for each combination of its outer decisions."""
        structure = node.structure
        self.nodes.remove(node)
        if structure.listed is not None:
            points = Points.listed(structure.outer, structure.listed)
        else:
            points = reachable(self.ctx, self.branch, structure, structure.outer)
        if not points.size:
            return
        bounds, alive = lower_bounds(self.ctx, self.branch, structure, points)
        for index in np.flatnonzero(alive):
            bound = max(node.bound, int(bounds[index]))
            self.nodes.append(Node(structure.fix(points.row(int(index))), bound))

    def _open(self, node: Node) -> None:
        """Bound a node point by point over its axes."""
        if node.points is not None:
            return
        points = reachable(self.ctx, self.branch, node.structure, node.structure.axes)
        if not points.size:
            node.points, node.bounds, node.bound = points, np.zeros(0, dtype=np.int64), 2**62
            return
        bounds, alive = lower_bounds(self.ctx, self.branch, node.structure, points)
        points, bounds = points.take(alive), bounds[alive]
        order = np.argsort(bounds, kind="stable")
        node.points, node.bounds = points.take(order), bounds[order]
        node.bound = max(node.bound, int(node.bounds[0])) if len(order) else 2**62

    @property
    def bound(self) -> int | None:
        """Least bound over all parts still open; None when nothing may be feasible."""
        return min((node.bound for node in self.nodes), default=None)

    # -- incumbent
    def _offer(self, structure: Structure, values: dict[str, Any]) -> None:
        evaluation = evaluate_values(self.ctx, self.branch, {**structure.constants, **values})
        if not evaluation.feasible:
            raise InternalError(f"{self.branch.name}: the search offers a plan that breaks {evaluation.violations[0]}")
        self._keep(Found(structure, values, evaluation))

    def _keep(self, found: Found) -> None:
        best = self.best
        if best is None or found.key < best.key:
            self.best = found

    def _beam(self, node: Node) -> None:
        """Complete the most promising points of a node, some decisions at a time, keeping the best by bound."""
        assert node.points is not None
        points = node.points.take(np.arange(min(_BEAM, node.points.size)))
        free = [d for d in node.structure.decisions if d.name not in points.columns]
        for together in _BEAM_GROUPS:
            group = [d for d in free if d.name in together]
            if not group:
                continue
            points = points.expand([d.name for d in group], _combinations(group))
            bounds, alive = lower_bounds(self.ctx, self.branch, node.structure, points)
            keep = np.flatnonzero(alive)
            keep = keep[np.argsort(bounds[keep], kind="stable")[:_BEAM]]
            points = points.take(keep)
            if not points.size:
                return
        for index in range(min(points.size, _TRIES)):
            values = points.row(index)
            evaluation = evaluate_values(self.ctx, self.branch, {**node.structure.constants, **values})
            if evaluation.feasible:
                self._keep(Found(node.structure, values, evaluation))
                return

    # -- proof
    def optimum(self, stop_above: int | None = None) -> Verdict:
        """Find and prove the least total; ``stop_above`` ends the search once the bound passes it.

        INFEASIBLE means that no plan obeys the rules, UNKNOWN that the budget ended (``best`` may still be set).
        """
        while self.nodes:
            self.nodes.sort(key=lambda node: node.bound)
            node = self.nodes[0]
            if self.best is not None and node.bound >= self.best.evaluation.ticks:
                break
            if stop_above is not None and node.bound > stop_above:
                return Verdict.UNKNOWN
            if node.structure.outer:
                self._split(node)
                continue
            if node.points is None:
                self._open(node)
                if node.points is not None and node.points.size:
                    if self.best is None or node.bound < self.best.evaluation.ticks:
                        self._beam(node)
                else:
                    self.nodes.pop(0)
                continue
            verdict = self._prove(node)
            if verdict is Verdict.UNKNOWN:
                return verdict
        return Verdict.OPTIMAL if self.best is not None else Verdict.INFEASIBLE

    def _prove(self, node: Node) -> Verdict:
        """Solve a node below the incumbent; afterwards its bound is its optimum or the incumbent."""
        while True:
            if self.budget.spent:
                return Verdict.UNKNOWN
            ceiling = None if self.best is None else self.best.evaluation.ticks - 1
            alg, values, total = self._model(node, ceiling)
            if total is None:
                verdict, solver = Verdict.INFEASIBLE, None
            else:
                if self.best is not None and isinstance(total, Lin):
                    alg.model.minimize(alg.expression(total))
                verdict, solver = self._run(alg)
            if verdict is Verdict.UNKNOWN:
                return verdict
            if verdict is Verdict.INFEASIBLE or solver is None:
                if self.best is None:
                    self.nodes.remove(node)
                else:
                    node.bound = max(node.bound, self.best.evaluation.ticks)
                return Verdict.INFEASIBLE
            point = {name: alg.value(solver, value) for name, value in values.items()}
            proven = self.best is not None and verdict is Verdict.OPTIMAL
            self._offer(node.structure, point)
            if proven:
                found = evaluate_values(self.ctx, self.branch, {**node.structure.constants, **point})
                if found.ticks != alg.value(solver, total):
                    raise InternalError(
                        f"{self.branch.name}: CP-SAT says {alg.value(solver, total)} ticks, the evaluator {found.ticks}"
                    )
                node.bound = max(node.bound, found.ticks)
                return Verdict.OPTIMAL
            if verdict is Verdict.FEASIBLE:
                return Verdict.UNKNOWN

    def _run(self, alg: CpAlgebra) -> tuple[Verdict, cp_model.CpSolver | None]:
        self.log.solved += 1
        if self._keep_models:
            self.log.models.append(alg.model)
        return run(alg.model, self.budget)

    def _model(self, node: Node, ceiling: int | None) -> tuple[CpAlgebra, dict[str, Lin], Any]:
        """Model of the points of a node that may stay at or below ``ceiling``; total is None when there are none.

        Without a ceiling only the rules are posted (a minimisation without an incumbent could overflow).
        """
        self._open(node)
        assert node.points is not None
        assert node.bounds is not None
        points = node.points
        if ceiling is not None:
            points = points.take(node.bounds <= ceiling)
        alg = CpAlgebra(ceiling)
        values: dict[str, Lin] = {}
        if not points.size:
            return alg, values, None
        domains = {d.name: d for d in node.structure.decisions}
        for name, decision in domains.items():
            column = points.columns.get(name)
            lo, hi = (int(column.min()), int(column.max())) if column is not None else (decision.lo, decision.hi)
            values[name] = alg.variable(lo, hi, name, decision.values)
        box = 1
        for column in points.columns.values():
            box *= int(column.max()) - int(column.min()) + 1
        if points.size < box and points.size <= _TABLE:
            names = list(points.columns)
            rows = np.stack([points.columns[name] for name in names], axis=1).tolist()
            alg.model.add_allowed_assignments([alg.expression(values[name]) for name in names], rows)
        mixed = {**node.structure.constants, **values}
        total = self.branch.formula(alg, self.ctx, mixed).stages.total
        if alg.violated:
            return alg, values, None
        if ceiling is not None and not alg.compare(total, "<=", ceiling):
            return alg, values, None
        return alg, values, total

    # -- one answer
    def prefer(self) -> Verdict:
        """Make the optimum unique: the smallest tie-break key among all plans of the least total."""
        assert self.best is not None
        ticks = self.best.evaluation.ticks
        for node in [n for n in self.nodes if n.structure.outer and n.bound <= ticks]:
            self._split(node)
        for node in sorted(self.nodes, key=lambda n: (-n.structure.constants.get("l0_buffers", 0), n.bound)):
            if node.bound > ticks:
                continue
            verdict = self._prefer_in(node, ticks)
            if verdict is Verdict.UNKNOWN:
                return verdict
        self._settle_l0c()
        return Verdict.OPTIMAL

    def _prefer_in(self, node: Node, ticks: int) -> Verdict:
        assert self.best is not None
        alg, values, total = self._model(node, ticks)
        if total is None:
            return Verdict.INFEASIBLE
        mixed = {**node.structure.constants, **values}
        outcome = self.branch.formula(alg, self.ctx, mixed)
        levels = []
        for name, sign in PREFERENCE:
            level = outcome.count(name) if name in outcome.counts else mixed.get(name)
            if level is not None:
                levels.append((level, sign))
        for group in _radix_groups(levels):
            if self.budget.spent:
                return Verdict.UNKNOWN
            alg.model.clear_objective()
            alg.model.minimize(alg.expression(group))
            verdict, solver = self._run(alg)
            if verdict is not Verdict.OPTIMAL or solver is None:
                return verdict
            least = alg.value(solver, group)
            alg.row(group, None, least)
            point = {name: alg.value(solver, value) for name, value in values.items()}
            self._offer(node.structure, point)
        return Verdict.OPTIMAL

    def _settle_l0c(self) -> None:
        """Two L0C buffers wherever they fit: the time is the same (see ``best_l0c``)."""
        assert self.best is not None
        values = {**self.best.structure.constants, **self.best.values}
        if values.get("l0c_buffers") != 1 or not values.get("fixpipe_unitflag"):
            return
        double = evaluate_values(self.ctx, self.branch, {**values, "l0c_buffers": 2, "fixpipe_unitflag": 0})
        if double.feasible and double.ticks == self.best.evaluation.ticks:
            self.best = Found(self.best.structure, self.best.values, double)


def _samples(decision: Decision) -> list[int]:
    """Values of a decision that the beam tries: the small ones, then ever sparser, and the largest."""
    domain = decision.domain()
    dense = 4 if decision.name.startswith("tail") else _DENSE
    if len(domain) <= dense:
        return list(domain)
    sparse = [m << e for m in (2, 3) for e in range(40) if dense < m << e < decision.hi]
    return sorted({*domain[:dense], *sparse, decision.hi})


def _combinations(decisions: Sequence[Decision]) -> Array:
    """Every combination of the samples of some decisions, one row each."""
    return np.asarray(list(product(*(_samples(d) for d in decisions))), dtype=np.int64)


def _radix_groups(levels: Sequence[tuple[Any, int]]) -> Iterable[Lin]:
    """Weighted sums that order plans by the levels; a new sum starts where the weights would pass 2^50."""
    group: list[tuple[Lin, int]] = []
    weight = 1
    for level, sign in levels:
        if not isinstance(level, Lin) or level.lo == level.hi:
            continue
        span = high(level) - low(level) + 1
        if group and weight * span > _RADIX_LIMIT:
            yield _radix(group)
            group, weight = [], 1
        group.append((level, sign))
        weight *= span
    if group:
        yield _radix(group)


def _radix(group: Sequence[tuple[Lin, int]]) -> Lin:
    total = Lin({}, 0, 0, 0)
    weight = 1
    for level, sign in reversed(group):
        digit = level - low(level) if sign < 0 else level * -1 + high(level)
        total = total + digit * weight
        weight *= high(level) - low(level) + 1
    return total
