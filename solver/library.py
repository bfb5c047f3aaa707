"""The plan library: results with their proofs in an SQLite file, keyed by everything that decides them.

The key is a hash of the canonical case, the chip's numbers, rules, environment, pins, asked branches, the way of
solving and the model version. Cases that the model cannot tell apart share an entry (:func:`canonical_case`). Several
processes may write at once: SQLite's write-ahead log serialises them, and an entry never changes once written.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from pathlib import Path
from typing import Any, Final, Self

from pydantic import ValidationError

from ..hardware import NpuSpec
from ..hardware.errors import InputError
from ..models.case import BYTES, BmmCase
from ..models.context import MODEL_VERSION
from ..models.plan import BranchName
from .result import CaseResult

#: "tlpf" as SQLite's application id: tells a library from any other database.
_APPLICATION_ID: Final = 0x746C7066
_SCHEMA_VERSION: Final = 1
_BUSY_MS: Final = 30_000
#: Input types that the model treats alike: same bytes, same Cube rate.
_TWINS: Final = {"bf16": "fp16", "fp8_e5m2": "fp8_e4m3", "hif8": "fp8_e4m3"}


def canonical_case(case: BmmCase) -> dict[str, Any]:
    """The case as far as the model can tell: equal dictionaries have equal results.

    * name of the case: never matters;
    * batch dims: only B_A, B_B, B and whether the dims are equal;
    * bf16 is fp16, the 8-bit floats are one type; of the output type only its bytes matter;
    * the bias type matters only where the vector cores add it (K <= 1), by its bytes.
    """
    width = max(len(case.batch_a), len(case.batch_b))
    left, right = ((1,) * (width - len(dims)) + dims for dims in (case.batch_a, case.batch_b))
    bias: int | None = None
    if case.bias is not None:
        bias = BYTES[case.bias] if case.k <= 1 else 0
    return {
        "batch": [prod(left), prod(right), case.batch, left == right],
        "size": [case.m, case.n, case.k],
        "dtype": _TWINS.get(case.dtype, case.dtype),
        "out_bytes": case.output_bytes,
        "trans": [case.trans_a, case.trans_b],
        "bias": [bias, case.bias_batch],
        "format_b": case.format_b,
    }


@dataclass(frozen=True)
class Question:
    """Everything beside the case that decides a result."""

    spec: NpuSpec
    rules: str
    environment: str
    branches: tuple[BranchName, ...]
    pins: tuple[str, ...] = ()
    all_branches: bool = True
    tie_break: bool = True
    explain: bool = True

    def key(self, case: BmmCase) -> str:
        """Key of the library entry that answers the question for a case."""
        return hashlib.sha256(f"{self._asked}\n{_compact(canonical_case(case))}".encode()).hexdigest()

    @cached_property
    def _asked(self) -> str:
        return _compact(
            {
                "hardware": _fingerprint(self.spec),
                "hardware_name": self.spec.name,
                "rules": self.rules,
                "environment": self.environment,
                "branches": sorted(self.branches),
                "pins": self.pins,  # in their order, as the result lists them
                "how": [self.all_branches, self.tie_break, self.explain],
                "model": MODEL_VERSION,
            }
        )


@lru_cache(maxsize=64)
def _fingerprint(spec: NpuSpec) -> str:
    return spec.fingerprint()


def _compact(data: dict[str, Any]) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def stored_text(result: CaseResult) -> str:
    """A result as a library keeps it: without the times that solving took, which differ from run to run."""
    branches = {name: branch.model_copy(update={"solve_ms": 0.0}) for name, branch in result.branches.items()}
    return result.model_copy(update={"branches": branches}).model_dump_json()


@dataclass(frozen=True)
class LibraryStats:
    """Counts of a library."""

    entries: int
    current: int
    bytes: int


class PlanLibrary:
    """An open library file; use as a context manager.

    Raises:
        InputError: the file is no SQLite database, belongs to another program, is of another schema, or is damaged.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and (not self.path.exists() or self.path.stat().st_size == 0):
            raise InputError("does not exist", file=str(self.path))
        try:
            self._db = sqlite3.connect(self.path, timeout=_BUSY_MS / 1000, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self._db.close()
                raise
        except sqlite3.DatabaseError as error:
            raise InputError(f"is no plan library ({error})", file=str(self.path)) from None

    def _open(self) -> None:
        self._db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        # With the write-ahead log a power failure may lose the last entries, never the file.
        self._db.execute("PRAGMA synchronous = NORMAL")
        if self._is_empty():
            self._create()
        self._check_identity()

    def _is_empty(self) -> bool:
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return not application and not tables

    def _create(self) -> None:
        """Make the table; of several processes that open a new file at once, the first does it and the others wait."""
        self._db.execute("BEGIN IMMEDIATE")
        if self._is_empty():
            self._db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            columns = "key TEXT PRIMARY KEY, model TEXT NOT NULL, result TEXT NOT NULL"
            self._db.execute(f"CREATE TABLE entries ({columns}) WITHOUT ROWID")
        self._db.execute("COMMIT")
        # Another process may hold the file just now; the write-ahead log is only faster, not needed.
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA journal_mode = WAL")

    def _check_identity(self) -> None:
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION_ID:
            raise InputError("is a database of another program, not a plan library", file=str(self.path))
        if version != _SCHEMA_VERSION:
            raise InputError(f"has library schema {version}; this version reads {_SCHEMA_VERSION}", file=str(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def get(self, question: Question, case: BmmCase) -> CaseResult | None:
        """The stored answer for a case, given the case's own name and dims; None when there is none."""
        row = self._execute(
            "SELECT result FROM entries WHERE key = ? AND model = ?", (question.key(case), MODEL_VERSION)
        )
        if row is None:
            return None
        return self._read(row[0]).model_copy(update={"case": case})

    def put(self, question: Question, result: CaseResult) -> None:
        """Store a proven answer; an open one (time limit) is not kept, an existing one is left as it is."""
        if result.verdict != "open" and result.model_version == MODEL_VERSION:
            self.store(question.key(result.case), stored_text(result))

    def has(self, key: str) -> bool:
        """Whether there is an entry with this key."""
        return self._execute("SELECT 1 FROM entries WHERE key = ? AND model = ?", (key, MODEL_VERSION)) is not None

    def store(self, key: str, text: str) -> None:
        """Keep the :func:`stored_text` of a proven answer of this model version; an existing entry is left as it is."""
        self._execute("INSERT OR IGNORE INTO entries (key, model, result) VALUES (?, ?, ?)", (key, MODEL_VERSION, text))

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return next(self._rows(statement, values), None)

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Rows of a statement.

        Raises:
            InputError: the file is damaged, locked for long, or cannot be written.
        """
        try:
            cursor = self._db.execute(statement, values)
            try:
                for row in cursor:  # noqa: UP028  (yield from would close the cursor itself)
                    yield row
            finally:
                with suppress(sqlite3.ProgrammingError):  # the library was closed first
                    cursor.close()
        except sqlite3.DatabaseError as error:
            raise InputError(f"cannot be used ({error})", file=str(self.path)) from None

    def _read(self, text: str) -> CaseResult:
        try:
            return CaseResult.model_validate_json(text)
        except ValidationError:
            raise InputError("holds an entry that cannot be read; see library check", file=str(self.path)) from None

    def stats(self) -> LibraryStats:
        """Entries, those of this model version, and bytes of the file."""
        entries = self._execute("SELECT count(*) FROM entries")[0]
        current = self._execute("SELECT count(*) FROM entries WHERE model = ?", (MODEL_VERSION,))[0]
        return LibraryStats(entries, current, self.path.stat().st_size)

    def entries(self) -> Iterator[tuple[str, CaseResult]]:
        """Every entry of this model version, by key."""
        statement = "SELECT key, result FROM entries WHERE model = ? ORDER BY key"
        return ((key, self._read(text)) for key, text in self._rows(statement, (MODEL_VERSION,)))

    def keys(self, prefix: str = "", most: int | None = None) -> list[str]:
        """Keys of this model version that start with ``prefix``, in order, at most ``most`` of them."""
        statement = "SELECT key FROM entries WHERE model = ? AND substr(key, 1, ?) = ? ORDER BY key LIMIT ?"
        values = (MODEL_VERSION, len(prefix), prefix, -1 if most is None else most)
        return [key for (key,) in self._rows(statement, values)]

    def find(self, key: str) -> CaseResult | None:
        """The entry whose key starts with ``key``; None when there is none or several."""
        keys = self.keys(key, 2)
        if len(keys) != 1:
            return None
        row = self._execute("SELECT result FROM entries WHERE key = ?", (keys[0],))
        return None if row is None else self._read(row[0])

    def prune(self) -> int:
        """Drop the entries of other model versions; returns how many."""
        before = self.stats().entries
        self._execute("DELETE FROM entries WHERE model <> ?", (MODEL_VERSION,))
        self._execute("VACUUM")
        return before - self.stats().entries

    def check(self) -> list[str]:
        """Problems of the file: damage found by SQLite, entries that cannot be read or do not add up."""
        try:
            problems = [text for (text,) in self._rows("PRAGMA integrity_check") if text != "ok"]
            statement = "SELECT key, result FROM entries WHERE model = ? ORDER BY key"
            for key, text in self._rows(statement, (MODEL_VERSION,)):
                problems += _problems(key, text)
        except InputError as error:
            return [error.message]
        return problems


def _problems(key: str, text: str) -> list[str]:
    """What is wrong with an entry."""
    try:
        result = CaseResult.model_validate_json(text)
    except ValidationError:
        return [f"entry {key[:12]} cannot be read"]
    problems = []
    if result.model_version != MODEL_VERSION:
        problems.append(f"entry {key[:12]} is of model version {result.model_version}")
    if result.winner is not None and result.winner not in result.branches:
        problems.append(f"entry {key[:12]} names a winner that it does not hold")
    return problems
