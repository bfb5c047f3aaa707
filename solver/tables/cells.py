"""Text of the user, in a table cell or a command-line option, made into the fields of a case; and values as cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from ...hardware.errors import InputError
from ...models.case import MAX_EXTENT, BmmCase, dtype_name, explain_validation
from ...models.pins import Pin, parse_pin

__all__ = ["case_fields", "case_of", "cell_text", "cells_of", "parse_batch", "pin_of_cell"]

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_YES: Final = ("1", "true", "yes")
_NO: Final = ("0", "false", "no")
#: Longest piece of the user's text that a message repeats.
_SHOWN: Final = 60


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _whole(text: str) -> int:
    plain = text.strip()
    if not _WHOLE.fullmatch(plain):
        raise InputError(f"{_quoted(text)} is no whole number; allowed is 0 to {MAX_EXTENT}")
    return int(plain)


def parse_batch(text: str) -> tuple[int, ...]:
    """Batch dims from ``8``, ``6x1`` or ``6,1``.

    Raises:
        InputError: the text is no list of whole numbers.
    """
    parts = [part.strip() for part in re.split("[xX,]", text)]
    if not all(_WHOLE.fullmatch(part) for part in parts):
        raise InputError(f"{_quoted(text)} is no list of batch dims; write 8, 6x1 or 6,1")
    return tuple(int(part) for part in parts)


def pin_of_cell(field: str, text: str) -> Pin:
    """The pin of a field from ``128``, ``64..256``, ``>=4``, ``b`` or the name of another field.

    Raises:
        InputError: the field is not known, or the text is none of these.
    """
    plain = text.strip()
    return parse_pin(f"{field}{plain}" if plain.startswith(("<", ">", "=")) else f"{field}={plain}")


def _flag(text: str) -> bool:
    plain = text.strip().lower()
    if plain not in (*_YES, *_NO):
        raise InputError(f"{_quoted(text)} is neither yes nor no; allowed: {', '.join((*_NO, *_YES))}")
    return plain in _YES


def _type_or_none(text: str) -> str | None:
    plain = dtype_name(text)
    return None if plain == "none" else plain


_PARSE: Final[dict[str, Callable[[str], Any]]] = {
    "case_id": str.strip,
    "batch_a": parse_batch,
    "batch_b": parse_batch,
    "m": _whole,
    "n": _whole,
    "k": _whole,
    "dtype": dtype_name,
    "out_dtype": dtype_name,
    "trans_a": _flag,
    "trans_b": _flag,
    "bias": _type_or_none,
    "bias_batch": _flag,
    "format_b": lambda text: text.strip().upper(),
}


def case_fields(texts: Mapping[str, str | None]) -> dict[str, Any]:
    """Fields of a case; ``None`` leaves a field at its default.

    Raises:
        InputError: a text cannot be read; ``column`` names its field.
    """
    fields = {}
    for name, text in texts.items():
        if text is not None:
            try:
                fields[name] = _PARSE[name](text)
            except InputError as error:
                raise InputError(error.message, column=name) from None
    return fields


def case_of(texts: Mapping[str, str | None], **flags: bool) -> BmmCase:
    """The case of :func:`case_fields`, and of fields that are no texts.

    Raises:
        InputError: a text cannot be read, or the case is not possible; ``column`` names the field, if it is one.
    """
    try:
        return BmmCase(**{**case_fields(texts), **flags})
    except ValidationError as error:
        field, message = explain_validation(error)
        raise InputError(message, column=None if field == "case" else field) from None


def cells_of(values: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    """Texts in the order of the columns; what is not there is an empty text."""
    return tuple(cell_text(values.get(name)) for name in columns)


def cell_text(value: object) -> str:
    """A value as the text of a cell."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)
