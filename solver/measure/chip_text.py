"""A calibrated chip as a TOML file that ``--hardware`` reads."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...hardware import DEFAULT_SPEC, get_spec, list_specs
from ...hardware.errors import InputError, InternalError
from ...hardware.fields import NUMBER_FIELDS, unit_of
from ...hardware.quantities import decimal_text
from .calibration import Calibration, Fitted

#: Interval half-width up to which a fitted number counts as well known (M); above it is a guess (L).
_FIRM = 0.10


def chip_toml(calibration: Calibration) -> str:
    """The chip as TOML: its base, and every number that differs from it with its source."""
    spec = calibration.spec
    base = calibration.base.name if calibration.base.name in list_specs() else DEFAULT_SPEC
    shipped = get_spec(base)
    moved = {one.constant.field for one in calibration.fitted}
    lines = [
        f"# Written by `tileproof calibrate`: {calibration.rows} runs of {calibration.source}.",
        f"# Mean error of the times {100 * calibration.before:.1f} % before, {100 * calibration.in_sample:.1f} % after"
        + (f", {100 * calibration.held_out:.1f} % on runs held out." if calibration.held_out is not None else "."),
        *(f"# Warning: {warning}." for warning in calibration.warnings),
        *(f"# Not fitted: {one.constant.name}: {one.reason}." for one in calibration.refused),
        f"base = {json.dumps(base)}",
        f"name = {json.dumps(spec.name)}",
        f"description = {json.dumps(spec.description)}",
    ]
    for field in NUMBER_FIELDS:
        value = getattr(spec, field)
        if field not in moved and value == getattr(shipped, field):
            continue
        quantity = spec.provenance[field] if field in moved else calibration.base.provenance[field]
        ones = [one for one in calibration.fitted if one.constant.field == field]
        source = _source(ones, calibration) if ones else quantity.source
        grade = ("M" if all(one.half_width <= _FIRM for one in ones) else "L") if ones else quantity.confidence
        lines += ["", f"[{field}]", f"value = {_toml(value)}", f"unit = {json.dumps(unit_of(field))}"]
        lines.append(f"source = {json.dumps(source)}")
        if grade:
            lines.append(f"confidence = {json.dumps(grade)}")
    return "\n".join(lines) + "\n"


def _source(ones: list[Fitted], calibration: Calibration) -> str:
    spans = "; ".join(f"{one.constant.name} 95 % interval {one.low:g} to {one.high:g}" for one in ones)
    return f"calibrated with {calibration.rows} runs of {os.path.basename(calibration.source)}: {spans}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if value is None:
        return '"hbm"'
    text = decimal_text(Fraction(value))
    return json.dumps(text) if isinstance(text, str) and "/" in text else str(text)


def write_chip(calibration: Calibration, path: Path) -> None:
    """Write the chip and read it back.

    Raises:
        InputError: the file cannot be written.
        InternalError: the file does not give the same chip.
    """
    try:
        path.write_text(chip_toml(calibration), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from None
    if get_spec(path).fingerprint() != calibration.spec.fingerprint():
        raise InternalError(f"{path} does not read back as the calibrated chip")
