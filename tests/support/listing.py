"""Which rules every plan of a small case breaks, by listing them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tileproof.models.algebra import ArrayAlgebra
from tileproof.models.branches import BRANCH_OF
from tileproof.models.branches.base import Wide
from tileproof.models.context import Context
from tileproof.models.pins import Pin, PinnedBranch
from tileproof.models.plan import BranchName
from tileproof.models.points import Points, point_values

_CHUNK = 100_000


class _Collector(ArrayAlgebra):
    """Truth of every rule for every plan, and both sides of the rules in ``watched``."""

    def __init__(self, size: int, watched: str | None) -> None:
        super().__init__(size, keep=True)
        self.watched = watched
        self.excess: Any = np.zeros(size, dtype=np.int64)

    def rule(self, rule_id: str, left: Any, operator: str, right: Any) -> None:
        super().rule(rule_id, left, operator, right)
        if rule_id == self.watched:
            over, under = left - right, right - left
            for amount in {"<=": [over], ">=": [under], "==": [over, under]}[operator]:
                self.excess = np.maximum(self.excess, amount)


class Listing:
    """Every plan of the wide search space of a branch with its pins, as the set of rules it breaks."""

    def __init__(self, ctx: Context, name: BranchName, pins: tuple[Pin, ...]) -> None:
        self.ctx = ctx
        self.branch = PinnedBranch(BRANCH_OF[name], pins)
        #: Distinct sets of broken rules.
        self.broken: set[frozenset[str]] = set()
        for alg in self._chunks(None):
            names = sorted(alg.by_rule)
            table = np.stack([np.broadcast_to(alg.by_rule[name], alg.mask.shape) for name in names], axis=1)
            for row in np.unique(table, axis=0):
                self.broken.add(frozenset(name for name, holds in zip(names, row, strict=True) if not holds))

    def _chunks(self, watched: str | None) -> Iterable[_Collector]:
        for structure in self.branch.structures(self.ctx, complete=True, wide=Wide(free=True)):
            parts = [Points({}, 1)]
            for decision in structure.decisions:
                values = np.asarray(decision.domain(), dtype=np.int64)[:, None]
                step = max(1, _CHUNK // len(values))
                parts = [
                    part.take(np.arange(start, min(start + step, part.size))).expand([decision.name], values)
                    for part in parts
                    for start in range(0, part.size, step)
                ]
            for part in parts:
                alg = _Collector(part.size, watched)
                self.branch.entry(alg, self.ctx)
                self.branch.formula(alg, self.ctx, point_values(structure, part))
                yield alg

    def feasible(self, rules: Iterable[str]) -> bool:
        """Whether some plan obeys all of these rules (the others may be broken)."""
        asked = frozenset(rules)
        return any(not (asked & broken) for broken in self.broken)

    @property
    def rules(self) -> frozenset[str]:
        """Rules that some plan breaks; the others never matter."""
        return frozenset().union(*self.broken)

    def least_excess(self, rule: str) -> int | None:
        """Least amount by which a plan breaks ``rule`` while it obeys every other one; None if there is no such plan."""
        best: int | None = None
        for alg in self._chunks(rule):
            good = np.ones(alg.mask.shape, dtype=bool)
            for name, holds in alg.by_rule.items():
                # Leaving the search space ("") is no rule that could be waived.
                if name != rule:
                    good &= holds
            if good.any():
                least = int(np.broadcast_to(alg.excess, alg.mask.shape)[good].min())
                best = least if best is None else min(best, least)
        return best
