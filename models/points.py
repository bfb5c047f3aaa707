"""Many points of a structure at once: bounds, exact evaluation, expansion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .algebra import ArrayAlgebra
from .branches.base import Branch, Decision, Structure
from .context import Context
from .intervals import Interval, IntervalAlgebra, ReachAlgebra

#: Sizes of a product of axes from which a first pass with the rules alone pays.
_SMALL, _LARGE = 512, 20_000

Array = np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class Points:
    """Points of a structure: columns of decided values (atoms), equally long."""

    columns: dict[str, Array]
    size: int

    @classmethod
    def product(cls, decisions: Sequence[Decision]) -> Points:
        """Every combination of the decisions' values."""
        if not decisions:
            return cls({}, 1)
        domains = [np.asarray(decision.domain(), dtype=np.int64) for decision in decisions]
        grids = np.meshgrid(*domains, indexing="ij")
        columns = {d.name: grid.reshape(-1) for d, grid in zip(decisions, grids, strict=True)}
        return cls(columns, prod(len(domain) for domain in domains))

    @classmethod
    def listed(cls, names: Sequence[str], rows: Sequence[tuple[int, ...]]) -> Points:
        """Points given row by row."""
        table = np.asarray(rows, dtype=np.int64).reshape(len(rows), len(names))
        return cls({name: table[:, i] for i, name in enumerate(names)}, len(rows))

    @classmethod
    def concat(cls, parts: Sequence[Points]) -> Points:
        """Points of several sets with the same columns."""
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
        return cls(columns, sum(part.size for part in parts))

    def take(self, index: Any) -> Points:
        """The points of an index array or mask."""
        columns = {name: column[index] for name, column in self.columns.items()}
        size = int(np.count_nonzero(index)) if getattr(index, "dtype", None) == np.bool_ else len(index)
        return Points(columns, size)

    def expand(self, names: Sequence[str], rows: Array) -> Points:
        """Each point with each row of values for more decisions (one column of ``rows`` a name)."""
        columns = {name: np.repeat(column, len(rows)) for name, column in self.columns.items()}
        columns.update({name: np.tile(rows[:, i], self.size) for i, name in enumerate(names)})
        return Points(columns, self.size * len(rows))

    def row(self, index: int) -> dict[str, int]:
        """One point as plain ints."""
        return {name: int(column[index]) for name, column in self.columns.items()}


def _mixed(structure: Structure, points: Points) -> dict[str, Any]:
    values: dict[str, Any] = dict(structure.constants)
    for decision in structure.decisions:
        column = points.columns.get(decision.name)
        if column is not None:
            values[decision.name] = column
        else:
            values[decision.name] = decision.lo if decision.lo == decision.hi else Interval(decision.lo, decision.hi)
    return values


def reachable(ctx: Context, branch: Branch, structure: Structure, names: Sequence[str]) -> Points:
    """Points over the named decisions that some plan may reach; each axis alone first where the product is large."""
    decisions = [d for d in structure.decisions if d.name in names]
    size = prod(len(d.domain()) for d in decisions)
    if size > _LARGE:
        decisions = [narrowed(ctx, branch, structure, decision) for decision in decisions]
    points = Points.product(decisions)
    return points.take(_alive(ctx, branch, structure, points)) if points.size > _SMALL else points


def narrowed(ctx: Context, branch: Branch, structure: Structure, decision: Decision) -> Decision:
    """The decision with only those values that some plan may have."""
    alive = _alive(ctx, branch, structure, Points.product([decision]))
    domain = [value for value, keep in zip(decision.domain(), alive, strict=True) if keep]
    return Decision(decision.name, decision.lo, decision.hi, tuple(domain))


def _alive(ctx: Context, branch: Branch, structure: Structure, points: Points) -> Any:
    alg = ReachAlgebra(points.size)
    branch.formula(alg, ctx, _mixed(structure, points))
    return alg.alive


def lower_bounds(
    ctx: Context, branch: Branch, structure: Structure, points: Points, only: frozenset[str] | None = None
) -> tuple[Array, Any]:
    """Lower bounds of the total (ticks) for every point, undecided decisions free, and which points may be feasible.

    ``only`` selects the rules in force.
    """
    alg = IntervalAlgebra(points.size, only)
    values = _mixed(structure, points)
    total = branch.formula(alg, ctx, values).stages.total
    return np.broadcast_to(np.asarray(total), alg.alive.shape), alg.alive


def least_count(ctx: Context, branch: Branch, structure: Structure, points: Points, name: str) -> int:
    """Least value that one of the counts may have over the points."""
    alg = ReachAlgebra(points.size)
    count = branch.formula(alg, ctx, _mixed(structure, points)).count(name)
    return int(np.min(count.lo if isinstance(count, Interval) else count))


def evaluate_points(
    ctx: Context, branch: Branch, structure: Structure, points: Points, only: frozenset[str] | None = None
) -> tuple[Array, Any]:
    """Exact totals (ticks) of complete points and whether each obeys every rule (of ``only``)."""
    alg = ArrayAlgebra(points.size, keep=only is not None)
    total = branch.formula(alg, ctx, point_values(structure, points)).stages.total
    mask = alg.mask
    if only is not None:
        mask = np.ones(points.size, dtype=bool)
        for rule in only & alg.by_rule.keys() | ({""} & alg.by_rule.keys()):
            mask &= alg.by_rule[rule]
    return np.broadcast_to(np.asarray(total), mask.shape), mask


def point_values(structure: Structure, points: Points) -> Mapping[str, Any]:
    """Constants and columns as the formulas want them."""
    return {**structure.constants, **points.columns}
