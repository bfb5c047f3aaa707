"""The implementation branches by name; a branch is loaded when it is asked for."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ..branch_names import BRANCHES, names

if TYPE_CHECKING:
    from .base import Branch, Decision, Structure

__all__ = ["BRANCHES", "BRANCH_OF", "Branch", "Decision", "Structure", "likely_first", "registered"]

_loaded: Final[dict[str, "Branch"]] = {}


class _Branches(Mapping[str, "Branch"]):
    """The branch of a name."""

    def __getitem__(self, name: str) -> "Branch":
        if name not in _loaded:
            if name not in names:
                raise KeyError(name)
            _loaded[name] = import_module(f".{name}", __name__).BRANCH
        return _loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(names)

    def __len__(self) -> int:
        return len(names)


BRANCH_OF: Final[Mapping[str, "Branch"]] = _Branches()


def likely_first(names: Iterable[str]) -> list[str]:
    """Branches in the order in which to solve them when the later ones may be stopped early."""
    asked = set(names)
    return sorted((name for name in BRANCHES if name in asked), key=lambda name: -BRANCH_OF[name].facts.likely)


@contextmanager
def registered(branch: "Branch") -> Iterator[None]:
    """One more branch, the last of the tables, while the context lasts.

    Columns of tables are named when ``solver.tables`` is loaded: enter the context before.
    """
    if branch.name in names:
        raise ValueError(f"there is a branch {branch.name!r} already")
    names.append(branch.name)
    _loaded[branch.name] = branch
    try:
        yield
    finally:
        names.remove(branch.name)
        del _loaded[branch.name]


def __getattr__(name: str) -> Any:
    if name not in ("Branch", "Decision", "Structure"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(".base", __name__), name)
    return value
