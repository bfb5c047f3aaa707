"""The vendor's tiling structs: ``TCubeTiling`` as JSON, C and int32 words, to and from plans, and its constraints."""

from __future__ import annotations

import os

from ...hardware.errors import InputError
from .c_text import read_c_items
from .convert import case_of_tcube, import_notes, plan_to_tcube, tcube_to_fields
from .rules import TCubeCheck, check_tcube, tcube_violations
from .struct import TCubeTiling, TileproofExtra
from .text import TCubeItem, read_json_items, tcube_c, tcube_json
from .word_writer import write_words
from .words import STRUCTS, WordTiling, parse_words, read_words

__all__ = [
    "STRUCTS",
    "TCubeCheck",
    "TCubeItem",
    "TCubeTiling",
    "TileproofExtra",
    "WordTiling",
    "case_of_tcube",
    "check_tcube",
    "import_notes",
    "parse_words",
    "plan_to_tcube",
    "read_tcube_items",
    "read_tcube_text",
    "read_words",
    "tcube_c",
    "tcube_json",
    "tcube_to_fields",
    "tcube_violations",
    "write_words",
]


def read_tcube_items(text: str, *, file: str | os.PathLike[str] | None = None) -> list[TCubeItem]:
    """Structs of JSON (an object or a list of them) or of C text; a bad one carries its error, the others are read.

    Raises:
        InputError: the text as a whole is not understood; ``row`` is the line, ``column`` the character in it.
    """
    text = text.removeprefix("\ufeff")
    try:
        items = read_json_items(text) if _is_json(text) else read_c_items(text)
    except InputError as error:
        raise _placed(error, file) from None
    return [
        item if item.error is None else TCubeItem(item.name, item.line, None, _placed(item.error, file))
        for item in items
    ]


def read_tcube_text(text: str, *, file: str | os.PathLike[str] | None = None) -> list[TCubeTiling]:
    """Structs of JSON or C text.

    Raises:
        InputError: the text or one of its structs is wrong; ``row`` is the line, ``column`` the field or the character.
    """
    tilings = []
    for item in read_tcube_items(text, file=file):
        if item.tiling is None:
            raise item.error or InputError("is no TCubeTiling", file=file, row=item.line)
        tilings.append(item.tiling)
    return tilings


def _is_json(text: str) -> bool:
    """JSON starts with ``[`` or with ``{`` and then no ``.`` (C's designators)."""
    start = text.lstrip()
    if not start:
        raise InputError("is empty; it must hold a TCubeTiling as JSON or C text", row=1, column="1")
    return start[0] == "[" or (start[0] == "{" and start[1:].lstrip()[:1] in ('"', "}", ""))


def _placed(error: InputError, file: str | os.PathLike[str] | None) -> InputError:
    return InputError(error.message, file=file, row=error.row, column=error.column)
