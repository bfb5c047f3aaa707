"""Rows of a profiler export that are not used, counted by operator and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

#: Rows that are named for one operator and reason.
_NAMED: Final = 3
#: Characters of a detail; a broken cell may have any length.
_LENGTH: Final = 120


class Unusable(Exception):
    """Why a row cannot be used: the reason in words that rows share, and what is particular to this one."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason} ({detail})" if detail else reason)
        self.reason = reason
        self.detail = detail if len(detail) <= _LENGTH else f"{detail[:_LENGTH]}..."


class LeftOut:
    """Collects the rows that are left out, to be said in one line for each operator and reason."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], list[str]] = {}
        self._others: Counter[str] = Counter()

    def add(self, kind: str, row: int, why: Unusable) -> None:
        """A row of an operator of the matmul family."""
        named = self._rows.setdefault((kind, why.reason), [])
        named.append(f"row {row}: {why.detail}" if why.detail else f"row {row}")

    def add_other(self, kind: str) -> None:
        """A row of an operator that is no matmul of any kind."""
        self._others[kind or "(no OP Type)"] += 1

    @property
    def count(self) -> int:
        """Rows that are left out."""
        return sum(map(len, self._rows.values())) + self._others.total()

    def say(self, file: str, used: int, note: Callable[[str], None]) -> None:
        """Tell every operator and reason with its count; nothing when every row is used."""
        for (kind, reason), named in self._rows.items():
            more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            where = "; ".join(named[:_NAMED]) + more
            note(f"{file}: {kind}: {_rows(len(named))} left out, because {reason} ({where})")
        if self._others:
            ranked = sorted(self._others.items(), key=lambda item: (-item[1], item[0]))
            counts = ", ".join(f"{kind} {count}" for kind, count in ranked)
            note(f"{file}: {_rows(self._others.total())} left out, because the operator is no matmul: {counts}")
        if self.count:
            note(f"{file}: {used} of {_rows(used + self.count)} used")


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count} rows are"
