"""Progress of a run over a table, and what is said when it ends early."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...hardware.errors import TileproofError
from ..tables.write import Draft
from .progress import Progress
from .shell import last_words

__all__ = ["REPEAT", "file_hash", "run_progress"]

#: Seconds between progress lines when stderr is no terminal.
REPEAT = 5.0
_HINT = "continue with the same command and --resume"


@contextmanager
def run_progress(what: str, draft: Draft, total: int | None) -> Iterator[Progress]:
    """Progress of a run with so many rows (None: not known, as of a pipe, from which no run can be resumed)."""
    resumable = total is not None

    def finished() -> str:
        return f"{draft.rows}{'' if total is None else f' of {total}'} rows"

    def interrupted() -> str:
        return f"interrupted after {finished()}{f'; {_HINT}' if resumable and draft.resumable else ''}"

    with last_words(interrupted), Progress(what, total, repeat=REPEAT) as progress:
        try:
            yield progress
        except (TileproofError, OSError):
            if resumable and draft.resumable:
                print(f"{finished()} are finished; {_HINT}", file=sys.stderr)
            raise


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
