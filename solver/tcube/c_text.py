"""C text with ``TCubeTiling`` values: designated initialisers, assignments and setter calls of host code.

::

    TCubeTiling tiling = { .usedCoreNum = 32, .M = 0x400, };   tiling.baseM = 128;   data.cubeTiling.set_baseM(128);

Statements about the same variable make one struct. A comment ``// tileproof: {...}`` belongs to the struct that starts
after it. Positional initialisers are refused: they depend on the version of the header.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from ...hardware.errors import InputError
from .text import EXTRA_MARK, TCubeItem, make_tiling, place, syntax_error

__all__ = ["read_c_items"]

_TOKEN: Final = re.compile(
    r"(?P<space>[ \t\r\n\f\v]+)|(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)|(?P<directive>\#[^\n]*)"
    r"|(?P<number>[0-9][0-9A-Za-z_.']*)|(?P<word>[A-Za-z_]\w*)|(?P<mark>->|::|[{}().,;=+\-&*<>])",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"(0[xX][0-9a-fA-F]+|[1-9][0-9]*|0)([uU]?[lL]{0,2}|[lL]{1,2}[uU])")
_BOOLEANS: Final = {"true": 1, "false": 0}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int


@dataclass
class _Draft:
    """A struct being read."""

    name: str
    line: int
    extra: tuple[dict[str, Any], int] | None
    fields: dict[str, int] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)


def read_c_items(text: str) -> list[TCubeItem]:
    """Structs of C text, in the order in which they start; one with an unknown field carries its error.

    Raises:
        InputError: the text is not understood; ``row`` is the line, ``column`` the character in it.
    """
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._extras: list[tuple[int, dict[str, Any]]] = []
        self._tokens = self._lex()
        self._at = 0
        self._drafts: list[_Draft] = []
        self._current: dict[str, _Draft] = {}

    # -- tokens
    def _lex(self) -> list[_Token]:
        tokens, offset, text = [], 0, self._text
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None:
                what = "a comment that does not end" if text.startswith("/*", offset) else repr(text[offset])
                raise syntax_error(text, offset, f"{what} is not understood")
            kind = str(match.lastgroup)
            if kind == "line":
                self._keep_extra(match.group()[2:].strip(), offset)
            elif kind not in ("space", "block", "directive"):
                tokens.append(_Token(kind, match.group(), offset))
            offset = match.end()
        tokens.append(_Token("end", "the end of the text", len(text)))
        return tokens

    def _keep_extra(self, comment: str, offset: int) -> None:
        if not comment.startswith(EXTRA_MARK):
            return
        try:
            value = json.loads(comment.removeprefix(EXTRA_MARK))
        except (ValueError, RecursionError) as error:
            raise syntax_error(self._text, offset, f"the JSON behind {EXTRA_MARK} cannot be read: {error}") from None
        self._extras.append((offset, value))

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _peek(self, ahead: int = 0) -> str:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)].text

    def _expect(self, *allowed: str) -> _Token:
        token = self._take()
        if token.text not in allowed:
            self._fail(token, " or ".join(repr(text) for text in allowed))
        return token

    def _word(self, what: str) -> _Token:
        token = self._take()
        if token.kind != "word":
            self._fail(token, what)
        return token

    def _fail(self, token: _Token, expected: str) -> NoReturn:
        found = token.text if token.kind == "end" else repr(token.text[:60])
        raise syntax_error(self._text, token.offset, f"expected {expected}, found {found}")

    # -- statements
    def read(self) -> list[TCubeItem]:
        while self._tokens[self._at].kind != "end":
            if self._peek() == "{":
                self._initialiser(f"item{len(self._drafts) + 1}", self._tokens[self._at])
                if self._peek() in (",", ";"):
                    self._take()
            elif self._peek() == ";":
                self._take()
            elif self._peek() == ".":
                self._bare_fields()
            else:
                self._statement()
        if not self._drafts:
            raise syntax_error(self._text, 0, "there is no field of TCubeTiling in the text")
        return [self._item(draft) for draft in self._drafts]

    def _bare_fields(self) -> None:
        """The inside of an initialiser, pasted without its braces."""
        draft = self._draft("item1", self._tokens[self._at])
        while self._peek() == ".":
            self._field(draft)
            if self._tokens[self._at].kind != "end":
                self._expect(",", ";")

    def _statement(self) -> None:
        """``tiling.baseM = 1;``, ``a->b.set_baseM(1);``, ``TCubeTiling tiling = {...};`` or ``TCubeTiling tiling;``."""
        first = self._tokens[self._at]
        path = self._path()
        while self._tokens[self._at].kind == "word" or self._peek() in (
            "&",
            "*",
        ):  # a declaration: the last word names it
            if self._peek() in ("&", "*"):
                self._take()
            path = self._path()
        mark = self._expect("=", "{", "(", ";") if len(path) > 1 else self._expect("=", "{", ";")
        if mark.text == "(":
            self._setter(path, first)
        elif mark.text == "{" or (mark.text == "=" and self._peek() == "{"):
            if mark.text == "{":
                self._at -= 1
            self._initialiser(".".join(token.text for token in path), first)
            self._expect(";", ",")
        elif mark.text == "=":
            if len(path) < 2:
                self._fail(path[0], "an assignment like tiling.baseM = 128;")
            self._set(self._draft(".".join(token.text for token in path[:-1]), first), path[-1], self._number())
            self._expect(";")

    def _path(self) -> list[_Token]:
        path = [self._word("a name")]
        while self._peek() in (".", "->", "::"):
            self._take()
            path.append(self._word("a name"))
        return path

    def _setter(self, path: list[_Token], first: _Token) -> None:
        method = path[-1]
        if not method.text.startswith("set_"):
            self._fail(method, "a setter like set_baseM")
        value = self._number()
        self._expect(")")
        self._expect(";")
        name = _Token("word", method.text.removeprefix("set_"), method.offset)
        self._set(self._draft(".".join(token.text for token in path[:-1]), first), name, value)

    def _initialiser(self, name: str, first: _Token) -> None:
        self._expect("{")
        self._current.pop(name, None)  # a declaration starts a new struct
        draft = self._draft(name, first)
        while self._peek() != "}":
            if self._peek() != ".":
                self._fail(self._take(), "'.' and the name of a field (values by position are not read)")
            self._field(draft)
            if self._peek() != "}":
                self._expect(",", "}")
        self._expect("}")

    def _field(self, draft: _Draft) -> None:
        self._expect(".")
        token = self._word("the name of a field")
        if token.text in draft.fields:
            raise syntax_error(self._text, token.offset, f"{token.text} is there more than once")
        self._expect("=")
        self._set(draft, token, self._number())

    def _number(self) -> int:
        token = self._take()
        sign = 1
        if token.text in ("-", "+"):
            sign = -1 if token.text == "-" else 1
            token = self._take()
        if token.text in _BOOLEANS:
            return sign * _BOOLEANS[token.text]
        match = _NUMBER.fullmatch(token.text) if token.kind == "number" and len(token.text) <= 40 else None
        if match is None:
            self._fail(token, "a whole number, decimal or 0x hexadecimal")
        return sign * int(match[1], 0)

    # -- structs
    def _draft(self, name: str, first: _Token) -> _Draft:
        if name not in self._current:
            extra = None
            while self._extras and self._extras[0][0] < first.offset:
                offset, value = self._extras.pop(0)
                extra = (value, place(self._text, offset)[0])
            draft = _Draft(name, place(self._text, first.offset)[0], extra)
            self._current[name] = draft
            self._drafts.append(draft)
        return self._current[name]

    def _set(self, draft: _Draft, name: _Token, value: int) -> None:
        draft.fields[name.text] = value
        draft.places[name.text] = place(self._text, name.offset)

    @staticmethod
    def _item(draft: _Draft) -> TCubeItem:
        fields: dict[str, Any] = dict(draft.fields)
        places = dict(draft.places)
        if draft.extra is not None:
            fields["tileproof"], line = draft.extra
            places["tileproof"] = (line, 1)
        try:
            tiling = make_tiling(fields, places, draft.line)
        except InputError as error:
            return TCubeItem(draft.name, draft.line, None, error)
        case_id = tiling.tileproof.case.case_id if tiling.tileproof is not None else ""
        return TCubeItem(case_id or draft.name, draft.line, tiling)
