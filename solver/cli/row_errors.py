"""Errors of rows on stderr: one line each, up to as many as anybody reads."""

from __future__ import annotations

from typing import Final

from .shell import say_error

#: Errors that are said one by one; a table of a million rows with a misspelt key would say as many.
MOST_ERRORS: Final = 100


class RowErrors:
    """Says what is wrong with rows; ``where`` tells in which place the reasons of all rows stand."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._count = 0

    def say(self, error: Exception) -> None:
        """One more row with an error."""
        self._count += 1
        if self._count <= MOST_ERRORS:
            say_error(str(error))
        elif self._count == MOST_ERRORS + 1:
            say_error(f"more than {MOST_ERRORS} rows have errors; {self._where} holds the reason of each")
