"""The enumerator: the same question answered without CP-SAT, by listing plans.

``exhaustive`` lists every plan of the complete search space (all fields, nothing left out as dominated); parts are
only skipped when a capacity is exceeded with everything still undecided at its smallest. Otherwise interval bounds skip
parts that cannot hold a plan as good as the best one seen. Points are worked in chunks, so memory stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...models.algebra import ArrayAlgebra
from ...models.branches import Branch, Structure
from ...models.branches.base import NARROW, Wide
from ...models.context import Context
from ...models.evaluation import Evaluation, evaluate_values
from ...models.fields import PREFERENCE
from ...models.points import Array, Points, evaluate_points, lower_bounds, point_values

_CHUNK = 200_000


@dataclass
class Enumeration:
    """What the enumerator found: the best plan, how many plans were evaluated, and whether all were covered.

    ``examined`` counts partial plans that were bounded, too.
    """

    best: Evaluation | None
    plans: int
    complete: bool
    examined: int


class Enumerator:
    """Lists the plans of one branch of one case.

    ``ceiling`` (ticks) skips plans slower than it; ``budget`` is a number of plans, partial ones included, after which
    the listing ends; ``only`` asks for a plan that obeys just these rules, in the wide search space (to re-check a
    conflict); ``first`` ends the listing at the first plan; ``chunk`` is how many plans are worked at once.
    ``progress`` is told the plans examined so far.
    """

    def __init__(
        self,
        ctx: Context,
        branch: Branch,
        *,
        exhaustive: bool = False,
        ceiling: int | None = None,
        budget: int | None = None,
        only: frozenset[str] | None = None,
        first: bool = False,
        chunk: int = _CHUNK,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.ctx = ctx
        self.branch = branch
        self.exhaustive = exhaustive
        self.ceiling = ceiling
        self.budget = budget
        self.only = only
        self.first = first
        self.progress = progress
        self.best: Evaluation | None = None
        self.plans = 0
        self.examined = 0
        self._chunk = chunk if budget is None else max(1, min(budget, chunk))
        self._cut = False

    def run(self) -> Enumeration:
        """List the plans."""
        wide = NARROW if self.only is None else Wide(free=True)
        for whole in self.branch.structures(self.ctx, complete=True, wide=wide):
            structure = whole if self.exhaustive else self.branch.held(self.ctx, whole, self.only)
            if structure is None:
                continue
            for points in self._leaves(structure):
                self._judge(structure, points)
                if self.first and self._found:
                    return self._listed(complete=False)
            if self._cut:
                return self._listed(complete=False)
        return self._listed(complete=True)

    def _listed(self, *, complete: bool) -> Enumeration:
        return Enumeration(self.best, self.plans, complete, self.examined)

    def _leaves(self, structure: Structure) -> Iterator[Points]:
        """Chunks of complete points, depth first.

        The stack holds points, how many decisions they have, and the first value of the next one still to be tried.
        """
        stack = [(Points({}, 1), 0, 0)]
        while stack:
            if self.budget is not None and self.examined > self.budget:
                self._cut = True
                return
            points, depth, first = stack.pop()
            if depth == len(structure.decisions):
                yield points
                continue
            # Some points with all their values at once, or one point with some of its values.
            decision = structure.decisions[depth]
            domain = decision.domain()
            values = np.asarray(domain[first : first + self._chunk], dtype=np.int64)[:, None]
            step = min(max(1, self._chunk // len(values)), points.size)
            part = points.take(np.arange(step))
            if step < points.size:
                stack.append((points.take(np.arange(step, points.size)), depth, 0))
            if first + len(values) < len(domain):
                stack.append((part, depth, first + len(values)))
            more = self._pruned(structure, part.expand([decision.name], values))
            if more.size:
                stack.append((more, depth + 1, 0))

    def _pruned(self, structure: Structure, points: Points) -> Points:
        self.examined += points.size
        if self.progress is not None:
            self.progress(self.examined)
        if self.exhaustive:
            alg = ArrayAlgebra(points.size, only=("cap.",))
            least = {d.name: d.domain()[0] for d in structure.decisions if d.name not in points.columns}
            self.branch.formula(alg, self.ctx, {**point_values(structure, points), **least})
            return points.take(alg.mask)
        bounds, alive = lower_bounds(self.ctx, self.branch, structure, points, self.only)
        limit = self.best.ticks if self.best is not None and self._found else self.ceiling
        return points.take(alive & (bounds <= limit) if limit is not None else alive)

    @property
    def _found(self) -> bool:
        """Whether a plan at or below the ceiling is known."""
        return self.best is not None and (self.ceiling is None or self.best.ticks <= self.ceiling)

    def _judge(self, structure: Structure, points: Points) -> None:
        self.plans += points.size
        total, mask = evaluate_points(self.ctx, self.branch, structure, points, self.only)
        good = np.flatnonzero(mask)
        if not len(good):
            return
        least = int(total[good].min())
        if self.best is not None and least > self.best.ticks:
            return
        ties = points.take(good[total[good] == least])
        chosen = ties.row(self._preferred(structure, ties))
        found = evaluate_values(self.ctx, self.branch, {**structure.constants, **chosen})
        if self.best is None or (found.ticks, found.preference) < (self.best.ticks, self.best.preference):
            self.best = found

    def _preferred(self, structure: Structure, points: Points) -> int:
        """Index of the point that the tie-break prefers among equally fast ones of one structure."""
        alg = ArrayAlgebra(points.size)
        values = point_values(structure, points)
        outcome = self.branch.formula(alg, self.ctx, values)
        keys: list[Array] = []
        for name, sign in PREFERENCE:
            level = outcome.count(name) if name in outcome.counts else values.get(name)
            if level is not None:
                keys.append(np.broadcast_to(np.asarray(level) * -sign, alg.mask.shape))
        return int(np.lexsort(keys[::-1])[0])
