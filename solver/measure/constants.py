"""The constants of the latency model that measurements may move: where they stand in a chip, and how far they may go.

A constant is worked with as a *scale* of 1 at the chip's own value. Rates scale as slowness (``own / value``), costs as
they are, so the time of a plan is piecewise linear in every scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from ...hardware import NpuSpec
from ...hardware.errors import InputError, did_you_mean

#: Significant digits of a fitted constant.
_DIGITS: Final = 6
_HEAD: Final = "head_us"
_ROWS: Final = "row_efficiency"
#: Name on the command line -> field of the chip, and whether it is a rate.
_PLAIN: Final[dict[str, tuple[str, bool]]] = {
    "hbm": ("hbm_tb_s", True),
    "l2": ("l2_read_gb_s_per_core", True),
    "port": ("mte2_port_bytes_per_cycle", True),
    "in_flight": ("bytes_in_flight", False),
    "mmad_head": ("mmad_head_cycles_double", False),
    "mte1_load": ("mte1_load_cycles", False),
    "mte1_rate": ("mte1_bytes_per_cycle", True),
    "drain_fixed": ("drain_cycles", False),
    "drain_rate": ("drain_elements_per_cycle", True),
    "saturation": ("saturation_share", False),
}
#: What is fitted when nothing is said; classes of row efficiency and heads come on top.
_USUAL: Final = ("hbm", "l2", "mmad_head", "mte1_load", "drain_fixed", "drain_rate")
_RATE_RANGE: Final = (0.25, 4.0)
_COST_RANGE: Final = (0.0, 12.0)
#: Launch heads are searched from 0 to this, microseconds.
_MOST_HEAD: Final = 60.0


@dataclass(frozen=True)
class Constant:
    """One constant: ``own`` value in the chip, ``low`` and ``high`` bounds of its scale."""

    name: str
    field: str
    rate: bool
    own: float
    low: float
    high: float
    key: str = ""

    def value(self, scale: float) -> float:
        """The constant at a scale."""
        return self.own / scale if self.rate else self.own * scale

    def scale(self, value: float) -> float:
        """The scale of a value."""
        return self.own / value if self.rate else value / self.own


def usual_constants(spec: NpuSpec, environments: Iterable[str]) -> list[Constant]:
    """What a calibration fits by default: heads, rates, fixed costs and row classes."""
    names = [*(f"head_{name}" for name in dict.fromkeys(environments)), *_USUAL, *_row_names(spec)]
    return [constant(spec, name) for name in names]


def chosen_constants(spec: NpuSpec, names: Sequence[str], environments: Iterable[str]) -> list[Constant]:
    """Constants by name; ``head`` stands for the heads of all environments in use, ``rows`` for all row classes.

    Raises:
        InputError: a name is not known.
    """
    wide: list[str] = []
    for name in names:
        if name == "head":
            wide += [f"head_{environment}" for environment in dict.fromkeys(environments)]
        elif name == "rows":
            wide += _row_names(spec)
        else:
            wide.append(name)
    return [constant(spec, name) for name in dict.fromkeys(wide)]


def all_constants(spec: NpuSpec) -> list[Constant]:
    """Every constant but the launch heads, which are the same for all plans of a case."""
    return [constant(spec, name) for name in (*_PLAIN, *_row_names(spec))]


def _row_names(spec: NpuSpec) -> list[str]:
    return [f"row_{row}" for row, _ in spec.row_efficiency[1:]]


def constant(spec: NpuSpec, name: str) -> Constant:
    """One constant of a chip by name.

    Raises:
        InputError: the name is not known.
    """
    if name in _PLAIN:
        field, rate = _PLAIN[name]
        own = float(getattr(spec, field))
        if name == "saturation":
            return Constant(name, field, rate, own, 0.25 / own, 1 / own)
        return Constant(name, field, rate, own or 1.0, *(_RATE_RANGE if rate else _COST_RANGE))
    if name.startswith("head_") and name[5:] in spec.head_us:
        own = float(spec.head_us[name[5:]]) or 1.0
        return Constant(name, _HEAD, False, own, 0.0, _MOST_HEAD / own, name[5:])
    for row, share in spec.row_efficiency[1:]:
        if name == f"row_{row}":
            return Constant(name, _ROWS, True, float(share), float(share), 5 * float(share), str(row))
    known = (*_PLAIN, "head", "rows", *(f"head_{e}" for e in spec.head_us), *_row_names(spec))
    raise InputError(f"constant {name!r} is not known{did_you_mean(name, known)}; allowed: {', '.join(known)}")


def spec_at(spec: NpuSpec, values: Mapping[Constant, float]) -> NpuSpec:
    """The chip with constants at given values, to six digits; L2 is never slower than HBM, row classes stay sorted."""
    changes: dict[str, Any] = {}
    heads, rows = dict(spec.head_us), dict(spec.row_efficiency)
    for one, value in values.items():
        exact = rounded(value)
        if one.field == _HEAD:
            heads[one.key] = exact
        elif one.field == _ROWS:
            rows[int(one.key)] = min(Fraction(1), exact)
        else:
            changes[one.field] = round(exact) if one.field == "bytes_in_flight" else exact
    if heads != dict(spec.head_us):
        changes[_HEAD] = heads
    if rows != dict(spec.row_efficiency):
        best = Fraction(1)
        ordered = []
        for row in sorted(rows, reverse=True):
            best = min(best, rows[row])
            ordered.append((row, best))
        changes[_ROWS] = ordered
    hbm = changes.get("hbm_tb_s", spec.hbm_tb_s)
    least_l2 = hbm * 1000 / spec.aic_cores
    if changes.get("l2_read_gb_s_per_core", spec.l2_read_gb_s_per_core) < least_l2:
        changes["l2_read_gb_s_per_core"] = least_l2
    return spec.replace(**changes) if changes else spec


def rounded(value: float) -> Fraction:
    """The value to six significant digits, exactly."""
    return Fraction(Decimal(f"{value:.{_DIGITS - 1}e}"))
