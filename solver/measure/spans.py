"""How far the constants of a chip may be from the truth: by their confidence marks, or by a calibration."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...hardware import NpuSpec
from ...hardware.errors import InputError
from ...hardware.table_rows import read_text
from .constants import Constant, all_constants, constant

#: Half-width of a constant by its mark: two agreeing sources, one good source or a fit, a guess or not stated.
WIDTHS: Final = {"H": 0.02, "M": 0.07, "L": 0.20, None: 0.20}


@dataclass(frozen=True)
class Span:
    """A constant known to lie between ``low`` and ``high`` (in its own unit), and why."""

    constant: Constant
    low: float
    high: float
    why: str

    @property
    def ends(self) -> tuple[float, float]:
        """Values that make plans fast and slow."""
        return (self.high, self.low) if self.constant.rate else (self.low, self.high)


def spans_of(spec: NpuSpec) -> list[Span]:
    """Spans of all constants by the confidence marks of the chip: H 2 %, M 7 %, L or none 20 %."""
    marks = spec.provenance
    spans = []
    for one in all_constants(spec):
        mark = marks[one.field].confidence
        width = WIDTHS.get(mark, WIDTHS[None])
        text = f"confidence {mark}: +-{100 * width:g} %" if mark else f"no confidence stated: +-{100 * width:g} %"
        spans.append(_span(one, one.own * (1 - width), one.own * (1 + width), text))
    return spans


def spans_from(path: Path, spec: NpuSpec) -> list[Span]:
    """Spans of a calibration (``tileproof calibrate --json``); the other constants keep those of their marks.

    Raises:
        InputError: the file is no such document.
    """
    try:
        document: Any = json.loads(read_text(path))
        refused = document.get("refused")
        found = {name: (float(one["low"]), float(one["high"])) for name, one in document["constants"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError("is no calibration; give what `tileproof calibrate --json` prints", file=path) from None
    if refused is not None:
        raise InputError(f"is a calibration that was refused ({refused})", file=path)
    spans = {span.constant.name: span for span in spans_of(spec)}
    for name, (low, high) in found.items():
        if not 0 <= low <= high:
            raise InputError(f"{name}: {low:g} to {high:g} is no interval", file=path)
        if not name.startswith("head_"):
            spans[name] = _span(constant(spec, name), low, high, f"calibrated, 95 %: {path.name}")
    return list(spans.values())


def spans_by_value(spec: NpuSpec, intervals: Sequence[tuple[str, float, float]]) -> list[Span]:
    """Spans given as (constant, low, high)."""
    return [_span(constant(spec, name), low, high, "given") for name, low, high in intervals]


def _span(one: Constant, low: float, high: float, why: str) -> Span:
    """The span, kept inside the range in which the constant makes sense."""
    least, most = sorted((one.value(max(one.low, 1e-9)), one.value(one.high)))
    if one.field == "row_efficiency":
        most = 1.0
    return Span(one, min(max(low, least), most), min(max(high, least), most), why)
