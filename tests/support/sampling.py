"""Random points of a branch's search space, and the forms it consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tileproof.models.branches import Branch, Structure
from tileproof.models.context import Context
from tileproof.models.points import Points, evaluate_points

#: Constants of a structure that do not change the form of its formula.
_MINOR = ("l0_buffers", "l0c_buffers", "fixpipe_unitflag", "grid_k", "single_core_k", "iter_l1", "iter_l0", "fold")


def form_of(structure: Structure) -> str:
    """Name of the form: the constants that change the formula, and whether tails may be split."""
    words = [str(v) for k, v in structure.constants.items() if k not in _MINOR and isinstance(v, str)]
    if any(d.name == "tail_m" for d in structure.decisions):
        words.append("tail")
    return "-".join(words)


def forms(ctx: Context, branch: Branch, *, complete: bool = True) -> dict[str, list[Structure]]:
    """Structures of the search space by form."""
    result: dict[str, list[Structure]] = {}
    for structure in branch.structures(ctx, complete=complete):
        result.setdefault(form_of(structure), []).append(structure)
    return result


def draw(structure: Structure, rng: np.random.Generator, size: int) -> Points:
    """Random points: each decision uniform for some, with small values preferred for the others."""
    columns: dict[str, Any] = {}
    for decision in structure.decisions:
        domain = decision.domain()
        uniform = rng.integers(0, len(domain), size)
        small = np.minimum(np.exp(rng.random(size) * np.log(len(domain) + 1)).astype(np.int64) - 1, len(domain) - 1)
        index = np.where(rng.random(size) < 0.4, uniform, small)
        # A domain may be very wide: it is not written out.
        listed = decision.values is not None
        columns[decision.name] = np.asarray(domain, dtype=np.int64)[index] if listed else index + decision.lo
    return Points(columns, size)


def feasible(
    ctx: Context,
    branch: Branch,
    structures: Sequence[Structure],
    rng: np.random.Generator,
    wanted: int,
    where: Callable[[Points], Any] | None = None,
    tries: int = 4000,
) -> list[tuple[Structure, dict[str, int]]]:
    """Up to ``wanted`` random points that obey every rule, spread over the structures; ``where`` selects among them."""
    found: list[tuple[Structure, dict[str, int]]] = []
    share = max(1, -(-wanted // len(structures)))
    for _ in range(3):
        for index in rng.permutation(len(structures)):
            if len(found) >= wanted:
                return found[:wanted]
            structure = structures[int(index)]
            points = draw(structure, rng, tries)
            _, mask = evaluate_points(ctx, branch, structure, points)
            if where is not None:
                mask = mask & where(points)
            chosen = rng.permutation(np.flatnonzero(mask))[:share]
            found += [(structure, points.row(int(i))) for i in chosen]
    return found[:wanted]
