"""The exceptions of the package, in one family.

::

    TileproofError                 everything this package raises on purpose
    ├── InputError                 what the user gave is wrong; says where (file, row, column) and what is allowed
    │   └── SpecError              a hardware description is wrong; says where (file, section, key)
    └── InternalError              two parts of this package disagree: a defect of ours, never of the input

"Infeasible" is a result and not an exception. All of them can be sent between processes (pickled).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["InputError", "InternalError", "SpecError", "TileproofError", "close_name", "did_you_mean"]


def close_name(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is most like one that is not known, if any is as like (0 to 1, as difflib counts)."""
    return next(iter(get_close_matches(name.strip().lower(), list(known), 1, likeness)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or nothing."""
    close = close_name(name, known)
    return "" if close is None else f"; did you mean {close!r}?"


class TileproofError(Exception):
    """Base of every exception that this package raises on purpose."""


class InputError(TileproofError):
    """Something the user gave cannot be used.

    ``str()`` is one sentence with the place in front: ``cases.csv, row 3, column m: is -1, but must be positive``.

    Parameters
    ----------
    message
        What is wrong: subject, value, what is allowed.
    file, row, column
        Where, as far as known; ``row`` counts as the reader of the file counts.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | os.PathLike[str] | None = None,
        row: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = None if file is None else os.fspath(file)
        self.row = row
        self.column = column

    def at(self, file: str | os.PathLike[str], row: int, column: str | None = None) -> InputError:
        """The same with its place, known to who read the file."""
        return InputError(self.message, file=file, row=row, column=column or self.column)

    def place(self) -> str:
        """Where it is wrong, such as ``cases.csv, row 3, column m``; empty when unknown."""
        parts = [] if self.file is None else [self.file]
        if self.row is not None:
            parts.append(f"row {self.row}")
        if self.column is not None:
            parts.append(f"column {self.column}")
        return ", ".join(parts)

    def __str__(self) -> str:
        place = self.place()
        return f"{place}: {self.message}" if place else self.message


class SpecError(InputError):
    """A hardware description cannot be used: unknown name, unreadable file, or a number that makes no sense.

    ``section`` and ``key`` name the place inside a TOML or ``.ini`` file:
    ``chip.ini, section SoCInfo, key l2_size: is 0, but must be a positive whole number [B]``.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | os.PathLike[str] | None = None,
        row: int | None = None,
        column: str | None = None,
        section: str | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message, file=file, row=row, column=column)
        self.section = section
        self.key = key

    def place(self) -> str:
        """Where it is wrong, such as ``chip.ini, section SoCInfo, key l2_size``; empty when unknown."""
        parts = [super().place()]
        if self.section is not None:
            parts.append(f"section {self.section}")
        if self.key is not None:
            parts.append(f"key {self.key}")
        return ", ".join(part for part in parts if part)


class InternalError(TileproofError):
    """Two parts of this package disagree (for example solver and checker): a defect of ours.

    Parameters
    ----------
    message
        Which parts disagree about what.
    report_path
        Where the evidence was written, if it was; may be set later by who writes it.
    model
        Text of the CP-SAT model in question, if there is one.
    """

    def __init__(
        self, message: str, *, report_path: str | os.PathLike[str] | None = None, model: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.model = model
        self.report_path: str | None = None if report_path is None else os.fspath(report_path)

    def __str__(self) -> str:
        text = f"internal error: {self.message}"
        return f"{text} (report: {self.report_path})" if self.report_path else text
