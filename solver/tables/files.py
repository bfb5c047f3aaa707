"""Files that a command writes: seen before the work that they can be, and then written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from ...hardware.errors import InputError

__all__ = ["check_targets", "write_files"]


def check_targets(targets: Sequence[Path], source: Path | None = None) -> None:
    """See before the work that its files can be written.

    Raises:
        InputError: a folder does not exist or cannot be written, or a file would be written twice or over its source.
    """
    seen = {} if source is None else {source.resolve(): "the cases are read from it"}
    for path in targets:
        place = path.resolve()
        if place in seen:
            raise InputError(f"cannot be written: {seen[place]}", file=path)
        seen[place] = "another table is written to it"
        if path.is_dir():
            raise InputError("cannot be written: it is a folder", file=path)
        if not place.parent.is_dir():
            raise InputError(f"cannot be written: there is no folder {place.parent}", file=path)
        if not os.access(place if place.exists() else place.parent, os.W_OK):
            raise InputError("cannot be written: permission denied", file=path)


def write_files(writers: Mapping[Path, Callable[[IO[str]], None]]) -> None:
    """Write all files or none: each to a draft beside its place, and then all moved there."""
    with ExitStack() as undo:
        ready = []
        for path, writer in writers.items():
            place = path.resolve()
            if place.exists() and not place.is_file():  # a pipe or a device
                _write(writer, place, "w")
                continue
            draft = place.with_name(f".{place.name}.{os.getpid()}.part")
            undo.callback(draft.unlink, missing_ok=True)
            _write(writer, draft, "x")
            ready.append((draft, place))
        for draft, place in ready:
            os.replace(draft, place)


def _write(writer: Callable[[IO[str]], None], path: Path, mode: str) -> None:
    with open(path, mode, encoding="utf-8", newline="") as stream:
        writer(stream)
