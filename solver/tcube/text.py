"""``TCubeTiling`` as text: JSON, and the C initialiser that engineers paste from host code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from ...hardware.errors import InputError, did_you_mean
from .struct import FIELDS, INT32, TCubeTiling

__all__ = ["EXTRA_MARK", "TCubeItem", "make_tiling", "read_json_items", "tcube_c", "tcube_json"]

#: Starts the comment line that carries the JSON of ``tileproof`` in C text.
EXTRA_MARK: Final = "tileproof:"
_KNOWN: Final = (*FIELDS, "tileproof")
_SPACE: Final = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class TCubeItem:
    """One struct of a text: its name, the line it starts on (from 1), and the struct or what is wrong with it."""

    name: str
    line: int
    tiling: TCubeTiling | None
    error: InputError | None = None


# -- out
def tcube_json(tilings: TCubeTiling | Iterable[TCubeTiling]) -> str:
    """One JSON object, or a list of them; the vendor's fields first, then ``tileproof``."""
    if isinstance(tilings, TCubeTiling):
        return json.dumps(_plain(tilings), indent=2) + "\n"
    return json.dumps([_plain(tiling) for tiling in tilings], indent=2) + "\n"


def _plain(tiling: TCubeTiling) -> dict[str, Any]:
    extra = tiling.tileproof
    return tiling.values() | ({} if extra is None else {"tileproof": extra.model_dump(mode="json")})


def tcube_c(tiling: TCubeTiling, name: str = "tiling") -> str:
    """A designated initialiser in the order of the struct (as C++20 asks), after a comment line with ``tileproof``."""
    lines = []
    if tiling.tileproof is not None:
        lines.append(f"// {EXTRA_MARK} {json.dumps(tiling.tileproof.model_dump(mode='json'))}")
    lines.append(f"TCubeTiling {name} = {{")
    lines += [f"    .{field} = {value}," for field, value in tiling.values().items()]
    return "\n".join([*lines, "};"]) + "\n"


# -- in
def make_tiling(fields: dict[str, Any], places: dict[str, tuple[int, int]] | None = None, line: int = 1) -> TCubeTiling:
    """A struct from its fields; ``places`` are the (line, column) of each, for messages.

    Raises:
        InputError: a field is not known or not an int32; ``row`` is the line, ``column`` the field.
    """
    places = places or {}
    for name, value in fields.items():
        row = places.get(name, (line, 1))[0]
        if name not in _KNOWN:
            raise InputError(f"is no field of TCubeTiling{did_you_mean_field(name)}", row=row, column=name)
        if name == "tileproof":
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"is {_shown(value)}, but must be a whole number", row=row, column=name)
        if not INT32[0] <= value <= INT32[1]:
            raise InputError(f"is {_shown(value)}, but must be {INT32[0]} to {INT32[1]} (int32)", row=row, column=name)
    try:
        return TCubeTiling.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        column = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise InputError(message, row=places.get("tileproof", (line, 1))[0], column=column) from None


def did_you_mean_field(name: str) -> str:
    """``; did you mean 'baseM'?`` or nothing, whatever the case of the letters."""
    exact = {field.lower(): field for field in FIELDS}
    hint = did_you_mean(name.replace("_", ""), exact)
    return re.sub(r"'(\w+)'", lambda match: repr(exact.get(match[1], match[1])), hint)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def place(text: str, offset: int) -> tuple[int, int]:
    """(line, column) of a character, both from 1."""
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def syntax_error(text: str, offset: int, message: str) -> InputError:
    """An error at a character of the text."""
    line, column = place(text, offset)
    return InputError(message, row=line, column=str(column))


def read_json_items(text: str) -> list[TCubeItem]:
    """Structs of a JSON object or list; one that is not a struct carries its error.

    Raises:
        InputError: the text is no JSON object or list; ``row`` is the line, ``column`` the character in it.
    """
    offset = _skip(text, 0)
    if text[offset : offset + 1] != "[":
        value, end = _decode(text, offset)
        _check_end(text, end)
        return [_item(text, offset, end, value, 1)]
    items: list[TCubeItem] = []
    offset = _skip(text, offset + 1)
    if text[offset : offset + 1] == "]":
        raise syntax_error(text, offset, "the list is empty; it must hold at least one TCubeTiling object")
    while True:
        value, end = _decode(text, offset)
        items.append(_item(text, offset, end, value, len(items) + 1))
        offset = _skip(text, end)
        mark = text[offset : offset + 1]
        if mark == "]":
            break
        if mark != ",":
            raise syntax_error(text, offset, "is no JSON: expected ',' or ']' after an object of the list")
        offset = _skip(text, offset + 1)
    _check_end(text, offset + 1)
    return items


def _skip(text: str, offset: int) -> int:
    match = _SPACE.match(text, offset)
    return match.end() if match else offset


def _check_end(text: str, offset: int) -> None:
    offset = _skip(text, offset)
    if offset < len(text):
        raise syntax_error(text, offset, "is no JSON: there is text behind the end")


class _Twice(ValueError):
    """A key stands twice in one object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return result


def _decode(text: str, offset: int) -> tuple[Any, int]:
    try:
        return json.JSONDecoder(object_pairs_hook=_once).raw_decode(text, offset)
    except json.JSONDecodeError as error:
        message = error.msg[0].lower() + error.msg[1:]
        raise syntax_error(text, error.pos, f"is no JSON: {message}") from None
    except _Twice as error:
        twice = [match.start() for match in re.finditer(f'"{re.escape(str(error))}"\\s*:', text[offset:])]
        at = offset + (twice[1] if len(twice) > 1 else 0)
        raise syntax_error(text, at, f"{str(error)!r} is there more than once") from None
    except (RecursionError, ValueError) as error:
        raise syntax_error(text, offset, f"is no JSON that can be read: {error}") from None


def _item(text: str, start: int, end: int, value: Any, number: int) -> TCubeItem:
    line = place(text, start)[0]
    name = f"item{number}"
    if not isinstance(value, dict):
        return TCubeItem(
            name, line, None, syntax_error(text, start, "is no JSON object with the fields of TCubeTiling")
        )
    places = {}
    for key in value:
        match = re.compile(f"{re.escape(json.dumps(key))}\\s*:").search(text, start, end)
        if match is not None:
            places[key] = place(text, match.start())
    try:
        tiling = make_tiling(value, places, line)
    except InputError as error:
        return TCubeItem(name, line, None, error)
    return TCubeItem(_name_of(tiling) or name, line, tiling)


def _name_of(tiling: TCubeTiling) -> str:
    return tiling.tileproof.case.case_id if tiling.tileproof is not None else ""
