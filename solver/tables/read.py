"""Tables of cases in: CSV, JSON Lines and Parquet, read row by row so that memory does not grow with the file.

A row is a dictionary of texts, whatever the format, so that one parser decides what a cell means and a message can name
the line (CSV, JSON Lines) or the row (Parquet).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ...hardware.errors import InputError, did_you_mean
from ...hardware.table_rows import TextRow, check_header, csv_header, csv_records, csv_rows, unreadable
from ...models.case import BmmCase
from ...models.pins import Pin
from .cells import case_of, pin_of_cell
from .columns import BOTH, CASE_COLUMNS, PIN_COLUMNS
from .formats import Format, format_of, import_parquet

__all__ = ["CaseReader", "CaseRow", "Scan", "TextRow", "TextRows", "read_cases", "scan"]

_REQUIRED: Final = ("m", "n", "k")
_KNOWN: Final = (*CASE_COLUMNS, BOTH, *PIN_COLUMNS)
_ALLOWED: Final = f"allowed: {', '.join((*CASE_COLUMNS, BOTH))}, and pin_ before a plan field"
_BOTH_GIVEN: Final = "b stands for the batch of A and B; give b, or batch_a and batch_b"
#: Rows of a Parquet file in memory at once.
_BATCH: Final = 1024


@dataclass(frozen=True)
class CaseRow:
    """One row of a case table. ``number`` is its line in the file, the header being line 1."""

    file: str
    number: int
    cells: Mapping[str, str]
    case: BmmCase | None
    error: InputError | None
    pins: tuple[Pin, ...] = ()


# -- rows of text
class TextRows:
    """Rows of a table file; iterate over it once.

    ``header`` holds the columns; it is ``None`` for JSON Lines, where every row names its own.

    Args:
        path: the file.
        what: what a row is, for messages.
        form: its format; by default its ending tells it.

    Raises:
        InputError: the file cannot be read, is empty, has no rows, or is damaged (on construction or while iterating).
    """

    def __init__(self, path: Path, what: str = "case", form: Format | None = None) -> None:
        self.file = str(path)
        self.format = form or format_of(path)
        self.header: list[str] | None = None
        if self.format == "csv":
            records = _records(path)
            self.header = csv_header(records, self.file)
            self._rows = csv_rows(self.header, records, self.file)
            self._none = f"there is no {what} below the header"
        elif self.format == "jsonl":
            self._rows = _json_rows(path)
            self._none = f"the file is empty; every line must be a {what} as a JSON object"
        else:
            self.header, self._rows = _parquet_rows(path)
            self._none = f"there is no {what} in it"

    def __iter__(self) -> Iterator[TextRow]:
        first = next(self._rows, None)
        if first is None:
            raise InputError(self._none, file=self.file)
        yield first
        yield from self._rows


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    file = str(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            yield from csv_records(stream, file)
    except (OSError, ValueError) as error:
        raise unreadable(file, error) from None


def _json_rows(path: Path) -> Iterator[TextRow]:
    file = str(path)
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield _json_row(file, number, line)
    except OSError as error:
        raise unreadable(file, error) from None


def _json_row(file: str, number: int, line: bytes) -> TextRow:
    try:
        pairs = json.loads(line.decode("utf-8-sig"), object_pairs_hook=tuple)
    except UnicodeDecodeError as error:
        return TextRow(number, {}, InputError(f"is not UTF-8 text ({error.reason})", file=file, row=number))
    except RecursionError:
        return TextRow(number, {}, InputError("is no JSON: nested too deeply", file=file, row=number))
    except ValueError as error:
        reason = getattr(error, "msg", error)
        return TextRow(number, {}, InputError(f"is no JSON: {reason}", file=file, row=number))
    if not isinstance(pairs, tuple):
        text = 'is no JSON object; write {"m": 64, "n": 64, "k": 64} on one line'
        return TextRow(number, {}, InputError(text, file=file, row=number))
    return _typed_row(file, number, pairs)


def _typed_row(file: str, number: int, pairs: Iterable[tuple[str, Any]]) -> TextRow:
    """A row of values with types, as texts."""
    texts: dict[str, str] = {}
    error = None
    for name, value in pairs:
        try:
            if name in texts:
                raise InputError("is there more than once")
            texts[name] = _text_of(value)
        except InputError as wrong:
            error = error or wrong.at(file, number, name)
            texts[name] = ""
    return TextRow(number, texts, error)


def _text_of(value: object) -> str:
    """The text that a CSV cell would have."""
    if value is None or value != value:  # NaN: how pandas writes an absent number
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError("is not Unicode text") from None
        return value.strip()
    if isinstance(value, list) and all(type(one) is int for one in value):
        return "x".join(map(str, value))
    raise InputError("allowed is a number, a text, true, false, null, or a list of whole numbers (batch dims)")


def _parquet_rows(path: Path) -> tuple[list[str], Iterator[TextRow]]:
    file = str(path)
    arrow, parquet = import_parquet(path)
    arrow_error: type[Exception] = arrow.ArrowException
    try:
        table = parquet.ParquetFile(path)
    except OSError as error:
        raise unreadable(file, error) from None
    except arrow_error as error:
        raise InputError(f"is no Parquet file ({_first_line(error)})", file=file) from None

    def rows() -> Iterator[TextRow]:
        number = 0
        try:
            with table:
                for batch in table.iter_batches(batch_size=_BATCH):
                    for values in batch.to_pylist():
                        number += 1
                        yield _typed_row(file, number, values.items())
        except (OSError, arrow_error) as error:
            raise InputError(f"is damaged ({_first_line(error)})", file=file) from None

    return list(table.schema_arrow.names), rows()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


# -- before the work
@dataclass(frozen=True)
class Scan:
    """What a first reading of a file showed: its rows, and the hash of its content."""

    rows: int
    sha256: str


def scan(path: Path, texts: Callable[[], Iterable[TextRow]]) -> Scan | None:
    """Read a table once, to find what is wrong with the whole file before the work; None for a pipe.

    Args:
        path: the file.
        texts: its rows, read anew.

    Raises:
        InputError: as the reader of ``texts``.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        return None
    rows = sum(1 for _ in texts())
    with path.open("rb") as stream:
        return Scan(rows, hashlib.file_digest(stream, "sha256").hexdigest())


# -- cases
class CaseReader:
    """Cases of a table, in order; iterate over it once. A bad row carries its error.

    Raises:
        InputError: the file cannot be read, is empty, or its header is wrong.
    """

    def __init__(self, path: Path) -> None:
        self._rows = TextRows(path)
        if self._rows.header is not None:
            _check_header(self._rows.header, self._rows.file, 1 if self._rows.format == "csv" else None)

    def texts(self) -> Iterator[TextRow]:
        """The rows as texts, instead of as cases."""
        return iter(self._rows)

    def cases(self, skip: int = 0) -> Iterator[CaseRow]:
        """The cases, without the first ``skip`` rows."""
        return (_case_row(self._rows.file, row) for row in islice(self._rows, skip, None))


def read_cases(path: Path) -> list[CaseRow]:
    """Rows of a case table; a bad row carries its error.

    Raises:
        InputError: the file cannot be read, is empty, or its header is wrong.
    """
    return list(CaseReader(path).cases())


def _check_header(header: Sequence[str], file: str, row: int | None) -> None:
    for error in check_header(header, _KNOWN, file, row, allowed=f"; {_ALLOWED}"):
        raise error
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        columns = "column" if len(missing) == 1 else "columns"
        raise InputError(f"{columns} {', '.join(missing)} missing; needed are m, n and k", file=file, row=row)
    if BOTH in header and {"batch_a", "batch_b"} & set(header):
        raise InputError(_BOTH_GIVEN, file=file, row=row)


def _case_row(file: str, row: TextRow) -> CaseRow:
    texts = dict(row.texts)
    has_both = BOTH in texts
    number = row.number
    try:
        if row.error is not None:
            raise row.error
        if unknown := next((name for name in texts if name not in _KNOWN), None):
            raise InputError(f"is not known{did_you_mean(unknown, _KNOWN)}; {_ALLOWED}", column=repr(unknown))
        if has_both and (texts.get("batch_a") or texts.get("batch_b")):
            raise InputError(_BOTH_GIVEN)
        _name(texts, number)
        case = case_of({key: texts[key] or None for key in texts if key not in PIN_COLUMNS})
        pins = _row_pins(texts)
    except InputError as error:
        _name(texts, number)
        column = BOTH if has_both and error.column in ("batch_a", "batch_b") else None
        return CaseRow(file, number, texts, None, error.at(file, number, column))
    return CaseRow(file, number, texts, case, None, pins)


def _name(texts: dict[str, str], number: int) -> None:
    """Give the row its name and the batch of both operands, in place."""
    if BOTH in texts:
        texts["batch_a"] = texts["batch_b"] = texts.pop(BOTH)
    texts["case_id"] = name_of(TextRow(number, texts))


def name_of(row: TextRow) -> str:
    """The ``case_id`` of a row, made of its number when it has none."""
    return row.texts.get("case_id") or f"row{row.number}"


def _row_pins(texts: Mapping[str, str]) -> tuple[Pin, ...]:
    """Pins of a row; an empty cell pins nothing.

    Raises:
        InputError: a cell is no pin; ``column`` names it.
    """
    pins = []
    for column, field in PIN_COLUMNS.items():
        if text := texts.get(column):
            try:
                pins.append(pin_of_cell(field, text))
            except InputError as error:
                raise InputError(error.message, column=column) from None
    return tuple(pins)
