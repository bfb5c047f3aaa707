"""File formats of tables, told by the ending of the name."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final, Literal

from ...hardware.errors import InputError, did_you_mean

__all__ = ["ENDINGS", "Format", "format_of", "import_parquet"]

Format = Literal["csv", "jsonl", "parquet"]
ENDINGS: Final[dict[str, Format]] = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}


def format_of(path: str | os.PathLike[str]) -> Format:
    """Format of a table by its name; a pipe or a device is CSV.

    Raises:
        InputError: the ending is not known, or it is Parquet's and pyarrow is not installed.
    """
    place = Path(path)
    if place.exists() and not place.is_file():
        return "csv"
    ending = place.suffix.lower()
    if ending not in ENDINGS:
        said = f"the ending {place.suffix!r} is not known{did_you_mean(ending, ENDINGS)}" if ending else "has no ending"
        raise InputError(f"{said}; allowed: {', '.join(ENDINGS)}", file=path)
    found = ENDINGS[ending]
    if found == "parquet":
        import_parquet(path)
    return found


def import_parquet(path: str | os.PathLike[str]) -> tuple[ModuleType, ModuleType]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``, for a file.

    Raises:
        InputError: pyarrow is not installed.
    """
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'tileproof[parquet]'", file=path) from None
