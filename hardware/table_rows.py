"""Rows of CSV tables as texts, with the line of each: the one way from a file to rows, whatever the rows mean.

A bad header is refused with its place; a bad row carries its error, so that the others can be used.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .errors import InputError, did_you_mean

__all__ = ["TextRow", "check_header", "csv_header", "csv_records", "csv_rows", "read_text", "unreadable"]

#: What else than a comma separates the columns of a table that is no CSV.
_SEPARATORS: Final = ";\t|"


@dataclass(frozen=True)
class TextRow:
    """One row as texts by column. ``number`` is its line in the file (of a Parquet file the row, from 1)."""

    number: int
    texts: dict[str, str]
    error: InputError | None = None


def read_text(path: str | os.PathLike[str]) -> str:
    """Text of a file, with the ends of lines that it has.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            return stream.read()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(file: str | os.PathLike[str], error: OSError | ValueError) -> InputError:
    """What to say of a file that could not be read."""
    if isinstance(error, UnicodeDecodeError):
        return InputError(f"is not UTF-8 text ({error.reason} at byte {error.start})", file=file)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return InputError(f"cannot be read: {reason}", file=file)


def csv_records(lines: Iterable[str], file: str) -> Iterator[tuple[int, list[str]]]:
    """Records that are not blank, each with its first line.

    Raises:
        InputError: it is no CSV.
    """
    line = 1
    reader = csv.reader(lines, strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"is no CSV ({error})", file=file, row=line) from None


def csv_header(records: Iterator[tuple[int, list[str]]], file: str) -> list[str]:
    """The columns, which the first record names.

    Raises:
        InputError: there is none.
    """
    first = next(records, None)
    if first is None:
        raise InputError("the file is empty; the first line must name the columns", file=file)
    return [name.strip() for name in first[1]]


def csv_rows(header: Sequence[str], records: Iterable[tuple[int, list[str]]], file: str) -> Iterator[TextRow]:
    """The rows below a header."""
    for number, cells in records:
        error = None
        if len(cells) != len(header):
            error = InputError(f"{len(cells)} cells, but the header has {len(header)}", file=file, row=number)
        yield TextRow(number, dict(zip(header, (cell.strip() for cell in cells), strict=False)), error)


def check_header(
    header: Sequence[str],
    known: Sequence[str] | None,
    file: str,
    row: int | None,
    *,
    said: str = "is not known",
    allowed: str = "",
) -> list[InputError]:
    """See that a header names columns, each once; the errors are those of unknown columns.

    Args:
        header: the columns.
        known: those that are known; None takes every one.
        file: the table, for messages.
        row: the line of the header, if it has one.
        said: what to say of an unknown column, before the one that may be meant.
        allowed: what to say after it.

    Raises:
        InputError: the columns are not separated by commas, or one is there twice.
    """
    unknown = [name for name in header if known is not None and name not in known]
    if len(header) == 1 and any(separator in header[0] for separator in _SEPARATORS):
        raise InputError("the columns are not separated by commas", file=file, row=row)
    twice = next((name for name, count in Counter(header).items() if count > 1), None)
    if twice is not None:
        shown = twice if known is not None and twice in known else repr(twice)
        raise InputError("is there more than once", file=file, row=row, column=shown)
    return [
        InputError(f"{said}{did_you_mean(name, known or ())}{allowed}", file=file, row=row, column=repr(name))
        for name in unknown
    ]
