"""Pins: what the user fixes or bounds, as one more rule each.

A pin names any plan field, derived ones and ``latency_us`` included: ``base_m=128``, ``base_k=64..256``,
``merge_b0>=4``, ``l1_form=b``, ``base_m=base_n``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Literal, get_args, get_origin

from ..hardware.errors import InputError, did_you_mean
from .algebra import Algebra
from .branches.base import NARROW, Around, Asked, Branch, Structure, Wide, Word
from .context import Context
from .fields import FIELDS, L1_BUFFERS
from .latency import Outcome, Values
from .plan import BRANCHES, PLAN_FIELDS, Plan

LATENCY: Final = "latency_us"
PIN_FIELDS: Final = (*PLAN_FIELDS, LATENCY)
_FORM: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(<=|>=|==|=|<|>)\s*(\S.*?)\s*$")
_RANGE: Final = re.compile(r"(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)$")
#: Most that a pinned count widens its domain to; a deep field (see ``fields``) reaches further.
_MOST_COUNT: Final = 2**16


@dataclass(frozen=True)
class Pin:
    """One pin on ``field``: ``low`` and ``high`` for numbers, ``word`` for words, ``other`` for another field."""

    field: str
    text: str
    low: Fraction | None = None
    high: Fraction | None = None
    word: str | None = None
    other: str | None = None

    @property
    def rule(self) -> str:
        """Id of the rule that the pin is."""
        return f"pin.{self.field}"


def word_values(field: str) -> tuple[str, ...]:
    """Words a field may have; empty for numbers."""
    if field in ("branch", "inner_branch"):
        return tuple(BRANCHES)
    kinds = get_args(Plan.model_fields[field].annotation)
    return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())


def parse_pin(text: str) -> Pin:
    """Read one pin.

    Raises:
        InputError: not a pin, an unknown field (with the nearest known one), a word or number that is none.
    """
    match = _FORM.match(text)
    if match is None:
        raise InputError(
            f"pin {text!r} is not understood; allowed: field=value, field=low..high, field>=value, field=field"
        )
    field, operator, value = match.groups()
    if value[0] in "=<>":
        raise InputError(f"pin {text!r} is not understood: a value must follow the operator")
    if field not in PIN_FIELDS:
        raise InputError(f"pin {text!r}: {field!r} is no plan field{did_you_mean(field, PIN_FIELDS)}")
    shown = f"{field}{'=' if operator == '==' else operator}{value}"
    equal = operator in ("=", "==")
    words = () if field == LATENCY else word_values(field)
    if words:
        if value not in words:
            raise InputError(f"pin {text!r}: {field} is one of {', '.join(words)}")
        if not equal:
            raise InputError(f"pin {text!r}: {field} is a word; allowed is {field}=word")
        return Pin(field, shown, word=value)
    if equal and value in PIN_FIELDS:
        if LATENCY in (field, value):
            raise InputError(f"pin {text!r}: {LATENCY} is a time and cannot be compared with another field")
        return Pin(field, shown, other=value)
    if (span := _RANGE.match(value)) and equal:
        low, high = (_number(text, field, part) for part in span.groups())
        if low > high:
            raise InputError(f"pin {text!r}: the range is empty, {span[1]} is above {span[2]}")
        return Pin(field, shown, low=low, high=high)
    number = _number(text, field, value)
    strict = 0 if field == LATENCY else 1
    if equal:
        return Pin(field, shown, low=number, high=number)
    if operator.startswith("<"):
        return Pin(field, shown, high=number - (strict if operator == "<" else 0))
    return Pin(field, shown, low=number + (strict if operator == ">" else 0))


def _number(text: str, field: str, value: str) -> Fraction:
    try:
        number = Fraction(value)
    except (ValueError, ZeroDivisionError):
        hint = did_you_mean(value, PIN_FIELDS)
        raise InputError(f"pin {text!r}: {value!r} is no number and no plan field{hint}") from None
    if field != LATENCY and number.denominator != 1:
        raise InputError(f"pin {text!r}: {field} is a whole number")
    if not -(2**40) < number < 2**40:
        raise InputError(f"pin {text!r}: {value} is out of range; allowed is below 2^40")
    return number


def latency_ticks(ctx: Context, latency_us: Fraction) -> int:
    """Most ticks that are no longer than a latency in us."""
    return int(latency_us * ctx.ticks_per_us // 1)


def parse_pins(pins: Iterable[str | Pin] | Mapping[str, Any]) -> tuple[Pin, ...]:
    """Read pins given as texts, or as a mapping of field to value (a number, a word, or a pair low, high)."""
    if isinstance(pins, Mapping):
        texts = []
        for field, value in pins.items():
            if isinstance(value, tuple | list):
                texts.append(f"{field}={value[0]}..{value[1]}")
            else:
                texts.append(f"{field}={value}")
        pins = texts
    return tuple(pin if isinstance(pin, Pin) else parse_pin(pin) for pin in pins)


class PinnedBranch(Around):
    """A branch with pins: the same formulas, and one more rule for each pin."""

    def __init__(self, inner: Branch, pins: tuple[Pin, ...]) -> None:
        super().__init__(inner)
        self.pins = pins
        timed = [pin for pin in pins if pin.field == LATENCY]
        #: A pinned latency is a rule on a cost; a least one needs exact costs.
        self.cost_rules = inner.cost_rules or bool(timed)
        self.exact_costs = inner.exact_costs or any(pin.low is not None for pin in timed)

    def rule_ids(self) -> dict[str, Pin]:
        """Rule id of every pin; pins of the same field are numbered."""
        result: dict[str, Pin] = {}
        for pin in self.pins:
            rule, number = pin.rule, 2
            while rule in result:
                rule, number = f"{pin.rule}#{number}", number + 1
            result[rule] = pin
        return result

    def wide(self, ctx: Context, *, free: bool) -> Wide:
        """Domains that include every pinned value."""
        reach: dict[str, int] = {}
        for pin in self.pins:
            field = FIELDS.get(pin.field)
            if field is None or pin.low is None:
                continue
            value = -(-int(pin.low) // field.atom_of(ctx))
            for name in filter(None, (field.level, field.shared)):
                reach[name] = max(reach.get(name, 1), value if field.deep else min(value, _MOST_COUNT))
        return Wide(reach, free)

    def structures(self, ctx: Context, *, complete: bool, wide: Wide = NARROW) -> list[Structure]:
        result, asked = [], self._asked()
        for structure in self.inner.structures(ctx, complete=True, wide=self.wide(ctx, free=wide.free)):
            for extra in self.inner.solving(structure.constants).variants(ctx, asked):
                result.append(replace(structure, constants={**structure.constants, **extra}))
        return result

    def held(self, ctx: Context, structure: Structure, only: frozenset[str] | None = None) -> Structure | None:
        decisions = {d.name: d for d in structure.decisions}
        for rule, pin in self.rule_ids().items():
            field = FIELDS.get(pin.field)
            if field is None or pin.other is not None or (only is not None and rule not in only):
                continue
            name, atom = field.level, field.atom_of(ctx)
            if name not in decisions:
                continue
            lo = -(-int(pin.low) // atom) if pin.low is not None else decisions[name].lo
            hi = int(pin.high) // atom if pin.high is not None else decisions[name].hi
            if lo > hi and pin.low is not None and pin.high is not None:
                # No aligned value meets the pin: it is held against the field as the user wrote it.
                continue
            left = decisions[name].within(lo, hi)
            if left is None:
                return None
            decisions[name] = left
        listed = structure.listed
        if listed is not None and only is None:
            domains = [frozenset(decisions[name].domain()) for name in structure.outer]
            listed = tuple(row for row in listed if all(v in d for v, d in zip(row, domains, strict=True)))
            if not listed:
                return None
        return replace(structure, decisions=tuple(decisions.values()), listed=listed)

    def _asked(self) -> dict[str, Asked]:
        """What the pins ask of every field that they name."""
        asked = {name: Asked() for pin in self.pins for name in (pin.field, pin.other) if name is not None}
        for pin in self.pins:
            known = asked[pin.field]
            low = known.low if pin.low is None else max(known.low, int(pin.low))
            high = known.high if pin.high is None else min(known.high, int(pin.high))
            exact = int(pin.low) if pin.low is not None and pin.low == pin.high else known.exact
            asked[pin.field] = Asked(low, high, exact)
        return asked

    def _as_pinned(self, v: Values) -> dict[str, Any]:
        """What the search would not choose itself but a plan may carry: deep steps and wide tiles."""
        mixed = dict(v)
        for pin in self.pins:
            if pin.field in ("step_ka", "step_kb", "depth_a1", "depth_b1"):
                mixed["free_steps"] = True
            if "base_m" in (pin.field, pin.other):
                mixed["free_m"] = True
            if "base_n" in (pin.field, pin.other):
                mixed["free_n"] = True
        return mixed

    def formula(self, alg: Algebra, ctx: Context, v: Values) -> Outcome:
        v = self._as_pinned(v)
        outcome = self.inner.formula(alg, ctx, v)
        fields = self.inner.fields(alg, ctx, v, outcome.counts)
        fields.update({"branch": self.name, "out_dtype_bytes": ctx.so})
        self._buffers(alg, v)
        raw: dict[str, Any] = {}
        for rule, pin in self.rule_ids().items():
            if pin.field == LATENCY:
                self._latency(alg, ctx, rule, pin, outcome)
            elif pin.field not in fields or (pin.other is not None and pin.other not in fields):
                alg.rule(rule, 0, ">=", 1)
            elif pin.word is not None:
                self._word(alg, rule, pin.word, fields[pin.field])
            else:
                left = self._value(alg, ctx, raw, pin, pin.field, fields)
                if pin.other is not None:
                    alg.rule(rule, left, "==", self._value(alg, ctx, raw, pin, pin.other, fields))
                elif pin.low is not None and pin.low == pin.high:
                    alg.rule(rule, left, "==", int(pin.low))
                else:
                    if pin.low is not None:
                        alg.rule(rule, left, ">=", int(pin.low))
                    if pin.high is not None:
                        alg.rule(rule, left, "<=", int(pin.high))
        return outcome

    def _value(
        self, alg: Algebra, ctx: Context, raw: dict[str, Any], pin: Pin, field: str, fields: Mapping[str, Any]
    ) -> Any:
        """Value of a field; a pin that no aligned value can meet is held against the field as the user wrote it."""
        if field not in raw:
            value = fields[field]
            value = value() if callable(value) else value
            if isinstance(value, str | Word):
                raise InputError(f"pin {pin.text!r}: {field} is a word and cannot be compared with a number")
            atom = FIELDS[field].atom_of(ctx)
            if (
                field in self.inner.solving(fields).facts.aligned
                and pin.low is not None
                and pin.high is not None
                and -(-pin.low // atom) * atom > pin.high
            ):
                value = alg.aligned(f"align.{field}", value, atom)
            raw[field] = value
        return raw[field]

    def _buffers(self, alg: Algebra, v: Values) -> None:
        """Buffer counts that only a pin brings into the search are still held against their rules."""
        fields = {pin.field for pin in self.pins}
        if "l1_buffers" in fields and "l1_buffers" in v:
            count = v["l1_buffers"]
            three_is_none = alg.choose(alg.at_most(count, 3), L1_BUFFERS[-1] + 1, count)
            alg.rule("buffer.l1", alg.choose(alg.at_most(count, 2), count, three_is_none), "<=", L1_BUFFERS[-1])
        if "ub_buffers" in fields and "ub_buffers" in v:
            alg.rule("buffer.ub", v["ub_buffers"], "<=", FIELDS["ub_buffers"].values[-1])

    @staticmethod
    def _word(alg: Algebra, rule: str, word: str, value: Any) -> None:
        if isinstance(value, Word):
            code = value.names.index(word) if word in value.names else len(value.names)
            alg.rule(rule, value.code(), "==", code)
        else:
            alg.rule(rule, int(value == word), "==", 1)

    @staticmethod
    def _latency(alg: Algebra, ctx: Context, rule: str, pin: Pin, outcome: Outcome) -> None:
        if pin.high is not None:
            alg.rule_cost(rule, outcome.stages.total, "<=", latency_ticks(ctx, pin.high))
        if pin.low is not None:
            alg.rule_cost(rule, outcome.stages.total, ">=", -int(-pin.low * ctx.ticks_per_us // 1))
