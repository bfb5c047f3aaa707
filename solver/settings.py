"""What is asked about by name, and what all rows of a batch share.

Light: OR-Tools is loaded where rows are solved, not where they are read.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ..hardware import NpuSpec, get_spec
from ..hardware.errors import InputError
from ..models.context import ENVIRONMENTS, Environment
from ..models.rules import PROFILES, Profile

if TYPE_CHECKING:
    from .search.solve_branch import SolveOptions

__all__ = ["Settings", "environment_of", "profile_of", "settings_of", "spec_of", "unpacked"]


def profile_of(name: str) -> Profile:
    """The profile of policy rules with a name.

    Raises:
        InputError: there is none.
    """
    for profile in PROFILES:
        if profile == name:
            return profile
    raise InputError(f"rules: {name!r} is not known; allowed: {', '.join(PROFILES)}")


def environment_of(name: str) -> Environment:
    """The environment with a name.

    Raises:
        InputError: there is none.
    """
    for environment in ENVIRONMENTS:
        if environment == name:
            return environment
    raise InputError(f"environment: {name!r} is not known; allowed: {', '.join(ENVIRONMENTS)}")


def spec_of(hardware: str | os.PathLike[str] | NpuSpec) -> NpuSpec:
    """The chip: as it is given, or by its name or its file.

    Raises:
        InputError: there is no such chip, or the file is none.
    """
    return hardware if isinstance(hardware, NpuSpec) else get_spec(hardware)


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
    profile, launched = profile_of(rules), environment_of(environment)
    return Settings(spec_of(hardware), profile, launched, time_limit, all_branches, explain)
