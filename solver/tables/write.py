"""Tables out, row by row: CSV, JSON Lines and Parquet by the ending of the name.

While a run lasts, its finished rows are in a part file beside the place of the table (``result.csv.partial``), complete
and valid after every row. At the end it becomes the table. After an interruption a later run goes on from it: notes
beside it (``result.csv.partial.json``) tell whether input and settings are the same.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO, StringIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from ...hardware.errors import InputError
from .columns import column_types
from .formats import format_of, import_parquet

if sys.platform != "win32":  # there two runs that write the same table are not noticed
    import fcntl

__all__ = ["Draft", "Table"]

#: Rows of a row group of a Parquet file, and in memory while it is written.
_GROUP: Final = 4096
_INT64: Final = range(-(2**63), 2**63)
#: Longest value of a note that a message repeats.
_SHOWN: Final = 40
_ANEW: Final = "run without --resume to start anew"


@dataclass(frozen=True)
class Table:
    """A table to write: its place and its columns. JSON Lines and Parquet get the types of the columns."""

    path: Path
    columns: tuple[str, ...]


# -- one table
class _Part:
    """The part file of a table. A pipe or a device has none and is written at once."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.format = format_of(table.path)
        self.place = table.path.resolve()
        self.direct = self.place.exists() and not self.place.is_file()
        self.path = self.place if self.direct else self.place.with_name(f"{self.place.name}.partial")
        self.committed = 0
        self._size = 0
        self._types = column_types(table.columns)

    def open(self, *, resume: bool) -> None:
        """Open the file, and empty it unless the run is resumed.

        Raises:
            InputError: another run is writing to it.
        """
        flags = os.O_WRONLY if self.direct else os.O_RDWR | os.O_CREAT
        self.file = FileIO(os.open(self.path, flags, 0o666), "wb" if self.direct else "r+b")
        if self.direct:
            return
        if sys.platform != "win32":
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.file.close()
                raise InputError("cannot be written: another run is writing to it", file=self.table.path) from None
        if not resume:
            self.file.truncate(0)

    def start(self) -> None:
        """Write the header."""
        if self.format == "csv":
            self.write(self.table.columns)
        self.committed = self._size

    def write(self, cells: Sequence[str]) -> None:
        """Add a row."""
        data = memoryview(self._csv(cells) if self.format == "csv" else self._json(cells))
        try:
            while data:  # not buffered: a row is in the file or not, whenever the process ends
                data = data[self.file.write(data) :]
        except OSError as error:
            error.filename = str(self.path)
            raise
        self._size = 0 if self.direct else self.file.tell()

    def commit(self) -> None:
        """The rows so far stay, whatever happens."""
        self.committed = self._size

    @staticmethod
    def _csv(cells: Sequence[str]) -> bytes:
        stream = StringIO()
        csv.writer(stream, lineterminator="\n").writerow(cells)
        return stream.getvalue().encode()

    def _json(self, cells: Sequence[str]) -> bytes:
        values = zip(self._types.items(), cells, strict=True)
        row = {name: _value(text, kind) for (name, kind), text in values}
        return (json.dumps(row, ensure_ascii=False) + "\n").encode()

    def rows(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Complete rows that the file holds, as texts, each with the offset at its end; a torn last one is left out.

        The first one stands for the header and is empty.
        """
        read = _csv_rows if self.format == "csv" else _json_rows
        with open(self.path, "rb") as stream:
            yield from read(stream, self.table.columns)

    def cut(self, size: int) -> None:
        """Go on after the first ``size`` bytes."""
        self.file.truncate(size)
        self.file.seek(size)
        self.committed = self._size = size

    def finish(self) -> None:
        """Put the table in its place."""
        if self.direct:
            self.file.close()
        elif self.format == "parquet":
            draft = self.path.with_name(f"{self.path.name}.parquet")
            try:
                self._convert(draft)
                os.replace(draft, self.place)
            finally:
                draft.unlink(missing_ok=True)
            self.path.unlink()
        else:
            os.replace(self.path, self.place)
        self.file.close()

    def _convert(self, target: Path) -> None:
        arrow, parquet = import_parquet(self.place)
        kinds = {int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_(), str: arrow.string()}
        schema = arrow.schema([(name, kinds[kind]) for name, kind in self._types.items()])
        with open(self.path, "rb") as stream, parquet.ParquetWriter(target, schema) as writer:
            rows = map(json.loads, stream)
            while group := list(islice(rows, _GROUP)):
                writer.write_table(arrow.Table.from_pylist(group, schema=schema))

    def leave(self, *, keep: bool) -> None:
        """Close the file; it stays with the committed rows, or goes."""
        if self.file.closed:
            return
        if not self.direct:
            if keep:
                self.file.truncate(self.committed)
            else:
                self.path.unlink(missing_ok=True)
        self.file.close()


def _value(text: str, kind: type) -> Any:
    """A text with the type of its column; null when it has none (an empty cell, or what a bad row holds)."""
    if text == "":
        return None
    if kind is bool:
        return {"0": False, "1": True}.get(text)
    if kind is str:
        return text
    try:
        value = kind(text)
    except ValueError:
        return None
    return value if kind is float or value in _INT64 else None


def _csv_rows(stream: BinaryIO, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    end = 0

    def lines() -> Iterator[str]:
        nonlocal end
        for line in stream:
            if not line.endswith(b"\n"):
                return
            end += len(line)
            yield line.decode()

    with suppress(csv.Error, UnicodeDecodeError):  # torn: what was read before counts
        reader = csv.reader(lines(), strict=True)
        if next(reader, None) != list(columns):
            return
        yield end, {}
        for cells in reader:
            if len(cells) != len(columns):
                return
            yield end, dict(zip(columns, cells, strict=True))


def _json_rows(stream: BinaryIO, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    from .cells import cell_text

    end = 0
    yield end, {}
    for line in stream:
        try:
            values = json.loads(line)
        except ValueError:
            return
        if not line.endswith(b"\n") or not isinstance(values, dict) or list(values) != list(columns):
            return
        end += len(line)
        yield end, {name: cell_text(value) for name, value in values.items()}


# -- the tables of a run
class Draft:
    """The tables of a run in the making; use as a context manager.

    The main table gets a row for every row of the input, the second one for some of them. Leaving the block without
    :meth:`finish` keeps the finished rows for a later run; when there are none, nothing stays. ``rows`` counts them.

    Args:
        main: the table whose rows tell how far the run is.
        second: another one.
        notes: what decides the content of the tables, by readable name; compared when the run is resumed.
        resume: go on from the part files of an earlier run, if there are any.
        has_second: whether a row of the second table goes with a row of the main one.
        recovered: called with every row of the main table that the earlier run finished.

    Raises:
        InputError: the part files come from another input, other settings or another program, or a run that still
            lasts; or a resumed table is no file.
    """

    def __init__(
        self,
        main: Table,
        second: Table | None = None,
        *,
        notes: Mapping[str, str],
        resume: bool = False,
        has_second: Callable[[Mapping[str, str]], bool] = lambda _: False,
        recovered: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self.rows = 0
        self._main = _Part(main)
        self._second = None if second is None else _Part(second)
        self._parts = [self._main] if self._second is None else [self._second, self._main]
        self._notes = dict(notes)
        self._notes_path = self._main.path.with_name(f"{self._main.path.name}.json")
        if resume and self._main.direct:
            raise InputError("--resume needs a file to go on from", file=main.path)
        going_on = resume and self._main.path.exists() and self._main.path.stat().st_size > 0
        if going_on:
            self._compare()
        opened: list[_Part] = []
        try:
            for part in self._parts:
                part.open(resume=going_on)
                opened.append(part)
            if not self._main.direct:
                self._notes_path.write_text(json.dumps(self._notes, indent=1) + "\n", encoding="utf-8")
            if going_on:
                self._recover(has_second, recovered)
            else:
                for part in self._parts:
                    part.start()
        except BaseException:
            for part in opened:
                part.leave(keep=going_on)
            raise

    def _compare(self) -> None:
        """See that the part files belong to this run."""
        file = self._main.path
        try:
            known = json.loads(self._notes_path.read_bytes())
        except (OSError, ValueError):
            raise InputError(f"cannot be continued: {self._notes_path.name} is not there; {_ANEW}", file=file) from None
        for name, value in self._notes.items():
            old = known.get(name) if isinstance(known, dict) else None
            if old != value:
                shown = f": {old}, now {value}" if isinstance(old, str) and max(len(old), len(value)) < _SHOWN else ""
                raise InputError(f"cannot be continued: it was made with another {name}{shown}; {_ANEW}", file=file)

    def _recover(
        self, has_second: Callable[[Mapping[str, str]], bool], recovered: Callable[[Mapping[str, str]], None]
    ) -> None:
        """Find the rows that are complete in both tables, and drop what is behind them."""
        second = None if self._second is None or self._second.direct else self._second
        ends = dict.fromkeys(self._parts, 0)
        rows = {part: part.rows() for part in self._parts if not part.direct}
        headers = {part: next(rows[part], None) for part in rows}
        for part, header in headers.items():
            ends[part] = 0 if header is None else header[0]
        for end, row in rows[self._main]:
            if second is not None and has_second(row):
                found = next(rows[second], None)
                if found is None or found[1]["row"] != row["row"]:
                    break
                ends[second] = found[0]
            ends[self._main] = end
            recovered(row)
            self.rows += 1
        for part in rows:
            part.cut(ends[part])
            if headers[part] is None:
                part.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        keep = self.rows > 0
        for part in self._parts:
            part.leave(keep=keep)
        if not keep and not self._main.direct:
            self._notes_path.unlink(missing_ok=True)

    def append(self, cells: Sequence[str], second: Sequence[str] | None = None) -> None:
        """Add a row, and the row of the second table that goes with it."""
        if second is not None and self._second is not None:
            self._second.write(second)
        self._main.write(cells)
        for part in self._parts:
            part.commit()
        self.rows += 1

    def finish(self) -> None:
        """Put the tables in their places; the main one last, so that until then the run can be resumed."""
        for part in self._parts:
            part.finish()
        if not self._main.direct:
            self._notes_path.unlink(missing_ok=True)

    @property
    def resumable(self) -> bool:
        """Whether a later run can go on from what is finished."""
        return self.rows > 0 and not self._main.direct
