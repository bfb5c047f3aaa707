"""What all rows of a batch share. Light: OR-Tools is loaded where rows are solved, not where they are read."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ..hardware import NpuSpec
from ..models.case import make_case
from ..models.context import Environment
from ..models.rules import Profile
from .api import make_context

if TYPE_CHECKING:
    from .search.solve_branch import SolveOptions

__all__ = ["Settings", "settings_of", "unpacked"]


@dataclass(frozen=True)
class Settings:
    """Chip, rules, environment, and how to solve; ``time_limit`` in seconds for one branch of one case."""

    spec: NpuSpec
    rules: Profile
    environment: Environment
    time_limit: float
    all_branches: bool
    explain: bool

    @property
    def options(self) -> SolveOptions:
        """The part that the solver takes."""
        from .search.solve_branch import SolveOptions

        return SolveOptions(time_limit=self.time_limit, explain=self.explain)

    def packed(self) -> bytes:
        """The settings as bytes, which travel with every row; see :func:`unpacked`."""
        return pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=4)
def unpacked(packed: bytes) -> Settings:
    """The settings of :meth:`Settings.packed`: for equal bytes the same object, so that a worker's caches stay warm."""
    settings: Settings = pickle.loads(packed)
    return settings


def settings_of(
    hardware: str, rules: str, environment: str, time_limit: float, *, all_branches: bool, explain: bool = False
) -> Settings:
    """Settings by name; ``explain`` finds out why branches are infeasible, which costs time.

    Raises:
        InputError: the hardware, the rules profile or the environment is not known.
    """
    context = make_context(make_case(m=1, n=1, k=1), hardware, rules, environment)  # type: ignore[arg-type]
    return Settings(context.spec, context.profile, context.environment, time_limit, all_branches, explain)
