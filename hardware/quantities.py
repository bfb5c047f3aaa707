"""Exact numbers with limits, for the fields of a hardware description.

Every rate is a :class:`fractions.Fraction` made from decimal text, so ``0.1`` means one tenth and not the nearest
binary float. The limits here are sanity limits that catch typing errors and wrong units; they are no chip facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

__all__ = ["ENVIRONMENTS", "FieldError", "FrozenMap", "Quantity", "Source", "decimal_text", "exact_fraction"]

#: Measuring environments of the latency model (``head_us``).
ENVIRONMENTS = ("profiler", "cold", "warm", "resident")

_MAX_DIGITS = 40
_MAX_EXPONENT = 30
_MAX_INT = 2**40
_MAX_RATE = 10**9
_RATIO = re.compile(rf"([+-]?\d{{1,{_MAX_DIGITS}}})\s*/\s*(\d{{1,{_MAX_DIGITS}}})")


class FieldError(ValueError):
    """A value that contradicts another one; ``field`` is the one to look at first. The message is a full predicate."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class FrozenMap(Mapping[str, Fraction]):
    """Read-only mapping of names to exact numbers; compares like a dict, can be hashed and pickled."""

    def __init__(self, items: Mapping[str, Fraction]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> Fraction:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr({key: decimal_text(value) for key, value in self._items.items()})


@dataclass(frozen=True)
class Source:
    """Where a number comes from: text of the source, confidence (H, M, L or None), file or chip that stated it."""

    source: str
    confidence: str | None
    origin: str


@dataclass(frozen=True)
class Quantity:
    """A number of a chip with everything that is known about it.

    ``value`` is the exact number (or tuple, or mapping); ``unit`` and ``meaning`` belong to the field; ``source``,
    ``confidence`` ("H" two agreeing sources, "M" one good source or a fit, "L" a guess, None not stated) and ``origin``
    (chip name or file that stated it) belong to the value.
    """

    value: Any
    unit: str
    meaning: str
    source: str
    confidence: str | None
    origin: str


def exact_fraction(value: object) -> Fraction:
    """The exact rational of an int, Fraction, Decimal, float (by its shortest decimal text) or decimal text.

    Text may also be a ratio, ``"1/3"``. Raises ``ValueError`` for anything else, for nan and infinity, and for numbers
    with more than 40 digits or an exponent beyond 30.
    """
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        return _from_decimal(Decimal(repr(value)))
    if isinstance(value, Decimal):
        return _from_decimal(value)
    if isinstance(value, str):
        text = value.strip()
        ratio = _RATIO.fullmatch(text)
        if ratio and int(ratio[2]):
            return Fraction(int(ratio[1]), int(ratio[2]))
        try:
            return _from_decimal(Decimal(text))
        except InvalidOperation:
            raise ValueError("must be a number") from None
    raise ValueError("must be a number")


def _from_decimal(number: Decimal) -> Fraction:
    if not number.is_finite():
        raise ValueError("must be a finite number")
    if not number:
        return Fraction(0)
    if len(number.as_tuple().digits) > _MAX_DIGITS or abs(number.adjusted()) > _MAX_EXPONENT:
        limits = f"1e-{_MAX_EXPONENT} and 1e{_MAX_EXPONENT}"
        raise ValueError(f"must be a number of at most {_MAX_DIGITS} digits, its size between {limits}")
    return Fraction(number)


def decimal_text(number: Fraction) -> int | str:
    """The number as an int, as exact decimal text, or as ``"a/b"`` when no finite decimal exists; reads back."""
    if number.denominator == 1:
        return number.numerator
    rest, places = number.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest //= prime
            power += 1
        places = max(places, power)
    if rest != 1 or places > _MAX_EXPONENT:
        return f"{number.numerator}/{number.denominator}"
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def _whole(low: int, high: int = _MAX_INT, step: int = 1) -> Callable[[object], int]:
    kind = "a whole number" if step == 1 else f"a multiple of {step}"

    def check(value: object) -> int:
        number = exact_fraction(value)
        if number.denominator != 1 or not low <= number <= high or number % step:
            raise ValueError(f"must be {kind} from {low} to {high}")
        return int(number)

    return check


def _exact(low: int, high: int, *, open_low: bool) -> Callable[[object], Fraction]:
    text = f"must be above {low} and at most {high}" if open_low else f"must be from {low} to {high}"

    def check(value: object) -> Fraction:
        number = exact_fraction(value)
        if not low <= number <= high or (open_low and number == low):
            raise ValueError(text)
        return number

    return check


_rate = _exact(0, _MAX_RATE, open_low=True)
_natural_rate = _exact(0, _MAX_RATE, open_low=False)
_share = _exact(0, 1, open_low=True)


def _rate_or_hbm(value: object) -> Fraction | None:
    if value is None or value == "hbm":
        return None
    try:
        return _rate(value)
    except ValueError as error:
        raise ValueError(f'{error}, or "hbm"') from None


def _heads(value: object) -> FrozenMap:
    if not isinstance(value, Mapping) or set(value) != set(ENVIRONMENTS):
        raise ValueError(f"must give one number for each of {', '.join(ENVIRONMENTS)}")
    heads = {}
    for name in ENVIRONMENTS:
        try:
            heads[name] = _natural_rate(value[name])
        except ValueError as error:
            raise ValueError(f"{error} ({name})") from None
    return FrozenMap(heads)


def _row_classes(value: object) -> tuple[tuple[int, Fraction], ...]:
    what = "must be pairs [smallest row bytes, efficiency], the longest rows first and efficiency not growing"
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(what)
    pairs: list[tuple[int, Fraction]] = []
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(what)
        row, efficiency = _whole(1)(pair[0]), _share(pair[1])
        if pairs and (row >= pairs[-1][0] or efficiency > pairs[-1][1]):
            raise ValueError(what)
        pairs.append((row, efficiency))
    return tuple(pairs)


def _optional_text(number: Fraction | None) -> int | str | None:
    return None if number is None else decimal_text(number)


_exact_text = PlainSerializer(decimal_text, when_used="json")

CoreCount = Annotated[int, PlainValidator(_whole(1, 4096))]
PositiveInt = Annotated[int, PlainValidator(_whole(1))]
NaturalInt = Annotated[int, PlainValidator(_whole(0))]
SmallBufferBytes = Annotated[int, PlainValidator(_whole(32, step=32))]
BufferBytes = Annotated[int, PlainValidator(_whole(1024, step=32))]
Rate = Annotated[Fraction, PlainValidator(_rate), _exact_text]
NaturalRate = Annotated[Fraction, PlainValidator(_natural_rate), _exact_text]
Share = Annotated[Fraction, PlainValidator(_share), _exact_text]
RateOrHbm = Annotated[Fraction | None, PlainValidator(_rate_or_hbm), PlainSerializer(_optional_text, when_used="json")]
Heads = Annotated[
    Mapping[str, Fraction],
    PlainValidator(_heads),
    PlainSerializer(lambda heads: {key: decimal_text(value) for key, value in heads.items()}, when_used="json"),
]
RowClasses = Annotated[
    tuple[tuple[int, Fraction], ...],
    PlainValidator(_row_classes),
    PlainSerializer(lambda pairs: [[row, decimal_text(share)] for row, share in pairs], when_used="json"),
]
