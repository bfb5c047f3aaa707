"""Solve one branch: bounds over structures and tile pairs, an incumbent, and CP-SAT for the rest.

The search space of a branch is a list of structures. Each is bounded point by point with the interval interpreter; only
points that may beat the incumbent go into a CP-SAT model, which proves that nothing better exists or finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...hardware.errors import InternalError
from ...models.branches import Branch, Decision, Structure
from ...models.branches.base import Facts
from ...models.context import Context
from ...models.evaluation import Evaluation, evaluate_values
from ...models.fields import PREFERENCE
from ...models.points import Array, Points, evaluate_points, least_count, lower_bounds, narrowed, reachable
from ..cpsat.algebra import CpAlgebra
from ..cpsat.linear import Lin, high, low
from ..cpsat.rules_only import RulesAlgebra
from ..cpsat.run import Budget, Model, Solver, Verdict, model_text, run

#: Points of the beam that looks for an incumbent, and points listed as an explicit table in a model.
_BEAM = 48
_TRIES = 16
_FEW = 200
_CHUNK = 100_000
#: Points up to which a node is bounded out decision by decision instead of by CP-SAT.
_DEEP = 8_000
_NEVER = 2**62
_TABLE = 4000
_RADIX_LIMIT = 2**50
_DENSE, _SPARSE = 16, 4


@dataclass
class Node:
    """One structure with its bound, and the points over its outer decisions and axes once they are needed."""

    structure: Structure
    bound: int
    points: Points | None = None
    bounds: Array | None = None

    def below(self, limit: int) -> Points:
        """The points whose bound is at most ``limit``."""
        assert self.points is not None
        assert self.bounds is not None
        return self.points.take(self.bounds <= limit)


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
    models: list[Model] = field(default_factory=list)
    last: Model | None = None


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
        for whole in self.branch.structures(self.ctx, complete=False):
            structure = self.branch.held(self.ctx, whole)
            if structure is None:
                continue
            bounds, alive = lower_bounds(self.ctx, self.branch, structure, Points({}, 1))
            if alive[0]:
                nodes.append(Node(structure, int(bounds[0])))
        return sorted(nodes, key=lambda node: node.bound)

    def _open(self, node: Node) -> None:
        """Bound a node point by point: over its outer decisions, then over its axes; look for an incumbent at both."""
        if node.points is not None:
            return
        structure = node.structure
        points, bounds = Points({}, 1), np.full(1, node.bound, dtype=np.int64)
        if structure.outer:
            if structure.listed is not None:
                points = Points.listed(structure.outer, structure.listed)
            else:
                points = reachable(self.ctx, self.branch, structure, structure.outer)
            points, bounds = self._bounded(structure, points)
            self._beam(structure, points)
        axes = [d for d in structure.decisions if d.name in structure.axes]
        points, bounds = self._grow(structure, points, axes)
        node.points, node.bounds = points, bounds
        node.bound = max(node.bound, int(bounds[0])) if points.size else _NEVER
        # A few points are soon bounded out one decision at a time; a beam pays where many are left.
        if self.best is None or (points.size > _FEW and node.bound < self.best.evaluation.ticks):
            self._beam(structure, points)

    def _bounded(self, structure: Structure, points: Points) -> tuple[Points, Array]:
        """The points that may be as good as the incumbent, by ascending bound."""
        bounds, alive = lower_bounds(self.ctx, self.branch, structure, points)
        if self.best is not None:
            alive = alive & (bounds <= self.best.evaluation.ticks)
        keep = np.flatnonzero(alive)
        keep = keep[np.argsort(bounds[keep], kind="stable")]
        return points.take(keep), bounds[keep]

    def _grow(self, structure: Structure, points: Points, decisions: list[Decision]) -> tuple[Points, Array]:
        """Every value of some more decisions for every point, bounded; in chunks to keep memory small."""
        size = prod(len(d.domain()) for d in decisions)
        if points.columns:
            decisions = (
                [narrowed(self.ctx, self.branch, structure, d) for d in decisions] if size > _DENSE else decisions
            )
            rows = np.asarray(list(product(*(d.domain() for d in decisions))), dtype=np.int64)
            if not len(rows) or not points.size:
                return points.take(np.zeros(0, dtype=np.int64)), np.zeros(0, dtype=np.int64)
            step = max(1, _CHUNK // len(rows))
            names = [d.name for d in decisions]
            parts = [
                self._bounded(
                    structure, points.take(np.arange(start, min(start + step, points.size))).expand(names, rows)
                )
                for start in range(0, points.size, step)
            ]
            merged, bounds = Points.concat([p for p, _ in parts]), np.concatenate([b for _, b in parts])
            order = np.argsort(bounds, kind="stable")
            return merged.take(order), bounds[order]
        return self._bounded(structure, reachable(self.ctx, self.branch, structure, tuple(d.name for d in decisions)))

    @property
    def bound(self) -> int | None:
        """Least bound over all parts still open; None when nothing may be feasible."""
        return min((node.bound for node in self.nodes), default=None)

    # -- incumbent
    def _offer(self, structure: Structure, values: dict[str, Any], alg: CpAlgebra | None = None) -> Evaluation:
        evaluation = evaluate_values(self.ctx, self.branch, {**structure.constants, **values})
        if not evaluation.feasible:
            raise InternalError(
                f"{self.branch.name}: the search offers a plan that breaks {evaluation.violations[0]}",
                model=None if alg is None else model_text(alg.model),
            )
        self._keep(Found(structure, values, evaluation))
        return evaluation

    def _keep(self, found: Found) -> None:
        best = self.best
        if best is None or found.key < best.key:
            self.best = found

    def _beam(self, structure: Structure, points: Points) -> None:
        """Complete the most promising points, some decisions at a time, keeping the best by bound."""
        points = points.take(np.arange(min(_BEAM, points.size)))
        free = [d for d in structure.decisions if d.name not in points.columns]
        facts = self.branch.facts
        for group in _grouped(facts, free):
            if not points.size:
                return
            points = points.expand([d.name for d in group], _combinations(facts, group))
            bounds, alive = lower_bounds(self.ctx, self.branch, structure, points)
            keep = np.flatnonzero(alive)
            points = points.take(keep[np.argsort(bounds[keep], kind="stable")[:_BEAM]])
        for index in range(min(points.size, _TRIES)):
            values = points.row(index)
            evaluation = evaluate_values(self.ctx, self.branch, {**structure.constants, **values})
            if evaluation.feasible:
                self._keep(Found(structure, values, evaluation))
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
            if node.points is None:
                self._open(node)
                if node.bound == _NEVER:
                    self.nodes.pop(0)
                continue
            if self.budget.spent:
                return Verdict.UNKNOWN
            if self.best is not None and self._deepen(node):
                node.bound = max(node.bound, self.best.evaluation.ticks)
                continue
            if self._prove(node) is Verdict.UNKNOWN:
                return Verdict.UNKNOWN
        return Verdict.OPTIMAL if self.best is not None else Verdict.INFEASIBLE

    def _deepen(self, node: Node) -> bool:
        """Bound the points below the incumbent decision by decision; True when nothing better is left in the node.

        Gives up (False) when that would take too many points: then CP-SAT decides.
        """
        assert self.best is not None
        structure = node.structure
        points = node.below(self.best.evaluation.ticks - 1)
        for decision in structure.decisions:
            if decision.name in points.columns:
                continue
            values = np.asarray(decision.domain(), dtype=np.int64)[:, None]
            if points.size * len(values) > _DEEP:
                return False
            points, bounds = self._bounded(structure, points.expand([decision.name], values))
            points = points.take(bounds < self.best.evaluation.ticks)
            if not points.size:
                return True
        total, mask = evaluate_points(self.ctx, self.branch, structure, points)
        good = np.flatnonzero(mask)
        if len(good):
            self._offer(structure, points.row(int(good[np.argmin(total[good])])))
        return True

    def _prove(self, node: Node) -> Verdict:
        """Solve a node below the incumbent; afterwards its bound is its optimum or the incumbent."""
        while not self.budget.spent:
            ceiling = None if self.best is None else self.best.evaluation.ticks - 1
            alg, values, total = self._model(node, ceiling)
            verdict, solver = Verdict.INFEASIBLE, None
            if total is not None:
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
            minimised = self.best is not None
            point = {name: alg.value(solver, value) for name, value in values.items()}
            found = self._offer(node.structure, point, alg)
            if minimised and verdict is Verdict.OPTIMAL:
                if found.ticks != alg.value(solver, total):
                    ticks = alg.value(solver, total)
                    raise InternalError(
                        f"{self.branch.name}: CP-SAT says {ticks} ticks, the evaluator {found.ticks}",
                        model=model_text(alg.model),
                    )
                node.bound = max(node.bound, found.ticks)
                return Verdict.OPTIMAL
            if minimised:
                return Verdict.UNKNOWN
        return Verdict.UNKNOWN

    def _run(self, alg: CpAlgebra) -> tuple[Verdict, Solver | None]:
        self.log.solved += 1
        self.log.last = alg.model
        if self._keep_models:
            self.log.models.append(alg.model)
        return run(alg.model, self.budget)

    def _model(self, node: Node, ceiling: int | None) -> tuple[CpAlgebra, dict[str, Lin], Any]:
        """Model of the points of a node that may stay at or below ``ceiling``; total is None when there are none.

        Without a ceiling only the rules are posted (a minimisation without an incumbent could overflow).
        """
        self._open(node)
        points = node.below(_NEVER if ceiling is None else ceiling)
        # Without a ceiling a row of a huge case could leave the sound range; any plan will do, so costs are left out.
        rules_only = ceiling is None and not self.branch.cost_rules
        alg = (
            RulesAlgebra(explain=False, costs=False)
            if rules_only
            else CpAlgebra(ceiling, exact=self.branch.exact_costs)
        )
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
        for node in sorted(self.nodes, key=lambda n: (-n.structure.constants.get("l0_buffers", 0), n.bound)):
            if node.bound > ticks or self._behind(node):
                continue
            verdict = self._prefer_in(node, ticks)
            if verdict is Verdict.UNKNOWN:
                return verdict
        self._settle_l0c()
        return Verdict.OPTIMAL

    def _behind(self, node: Node) -> bool:
        """Whether the first tie-break levels (HBM bytes, L0 buffers) already rule the node out."""
        assert self.best is not None
        points = node.below(self.best.evaluation.ticks) if node.points is not None else Points({}, 1)
        if not points.size:
            return True
        least = least_count(self.ctx, self.branch, node.structure, points, "hbm_units")
        buffers = node.structure.constants.get("l0_buffers", 0)
        found = self.best.evaluation
        return (least, -buffers) > (found.hbm_units, -(found.plan.l0_buffers or 0))

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
            alg.model.minimize(alg.expression(group))
            verdict, solver = self._run(alg)
            if verdict is not Verdict.OPTIMAL or solver is None:
                return verdict
            least = alg.value(solver, group)
            alg.row(group, None, least)
            point = {name: alg.value(solver, value) for name, value in values.items()}
            self._offer(node.structure, point, alg)
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


def _grouped(facts: Facts, decisions: Sequence[Decision]) -> Iterable[list[Decision]]:
    """Decisions that the beam completes together; those in no group come last, one at a time."""
    for together in (*facts.beam, *((d.name,) for d in decisions if not any(d.name in names for names in facts.beam))):
        group = [d for d in decisions if d.name in together]
        if group:
            yield group


def _samples(decision: Decision, dense: int) -> list[int]:
    """Values of a decision that the beam tries: the small ones, then ever sparser, and the largest."""
    domain = decision.domain()
    if len(domain) <= dense:
        return list(domain)
    sparse = [m << e for m in (2, 3) for e in range(40) if dense < m << e < decision.hi]
    return sorted({*domain[:dense], *sparse, decision.hi})


def _combinations(facts: Facts, decisions: Sequence[Decision]) -> Array:
    """Every combination of the samples of some decisions, one row each."""
    samples = (_samples(d, _SPARSE if d.name in facts.sparse else _DENSE) for d in decisions)
    return np.asarray(list(product(*samples)), dtype=np.int64)


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
