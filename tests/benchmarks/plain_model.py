"""A branch as one plain model: every structure side by side, a literal for each, one total to minimise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tileproof.models.branches import Branch
from tileproof.models.branches.base import Decision, Structure
from tileproof.models.context import Context


class PlainModel:
    """The complete search space of a branch over a modelling algebra (``CpmpyAlgebra``, ``HighsAlgebra``)."""

    def __init__(self, alg: Any, ctx: Context, branch: Branch) -> None:
        self.structures: Sequence[Structure] = branch.structures(ctx, complete=True)
        self.decisions = {d.name: alg.decision(d) for d in union_of_decisions(self.structures)}
        self.chosen = alg.exactly_one(len(self.structures))
        totals = []
        for structure, literal in zip(self.structures, self.chosen, strict=True):
            values = {d.name: self.decisions[d.name] for d in structure.decisions}
            with alg.where(literal):
                totals.append(branch.formula(alg, ctx, {**structure.constants, **values}).stages.total)
        alg.minimise(totals, self.chosen)

    def point(self, value_of: Callable[[Any], int]) -> dict[str, Any]:
        """Constants and decisions of a solution; ``value_of`` gives the integer of a decision or literal."""
        position = max(range(len(self.chosen)), key=lambda i: value_of(self.chosen[i]))
        structure = self.structures[position]
        return {**structure.constants, **{d.name: value_of(self.decisions[d.name]) for d in structure.decisions}}


class SingleStructure:
    """A branch with one of its structures only."""

    def __init__(self, branch: Branch, position: int) -> None:
        self._branch = branch
        self._position = position

    def structures(self, ctx: Context, *, complete: bool) -> list[Structure]:
        """The one structure."""
        return [self._branch.structures(ctx, complete=complete)[self._position]]

    def formula(self, *args: Any) -> Any:
        """That of the branch."""
        return self._branch.formula(*args)


def union_of_decisions(structures: Sequence[Structure]) -> list[Decision]:
    """One decision a name that covers its domains in all structures."""
    found: dict[str, Decision] = {}
    for structure in structures:
        for d in structure.decisions:
            known = found.get(d.name, d)
            values = None if d.values is None or known.values is None else tuple(sorted({*d.values, *known.values}))
            found[d.name] = Decision(d.name, min(d.lo, known.lo), max(d.hi, known.hi), values)
    return list(found.values())
