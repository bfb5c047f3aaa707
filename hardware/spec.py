"""One chip: its numbers, what follows from them, and where they come from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import PrivateAttr, ValidationError

from .errors import SpecError, close_name
from .fields import NUMBER_FIELDS, SpecFields, meaning_of, unit_of
from .quantities import FieldError, Quantity, Source, decimal_text

__all__ = ["DTYPES", "NpuSpec"]

#: Input type -> arithmetic class of the Cube (suffix of ``mac_per_cycle_*`` and ``fractal_k_*``).
_ARITHMETIC = {
    "fp16": "16bit",
    "bf16": "16bit",
    "fp32": "fp32",
    "hf32": "hf32",
    "int8": "8bit",
    "fp8_e4m3": "8bit",
    "fp8_e5m2": "8bit",
    "hif8": "8bit",
}
#: Input types that the Cube multiplies.
DTYPES: tuple[str, ...] = tuple(_ARITHMETIC)

_FINGERPRINT_VERSION = 1


def suggestion(name: str, known: tuple[str, ...] | list[str]) -> str:
    """``; did you mean "x"?`` or nothing."""
    close = close_name(name, known)
    return "" if close is None else f'; did you mean "{close}"?'


def shown(value: object) -> str:
    """A given value as short text for a message."""
    if isinstance(value, int) and abs(value) >= 10**60:
        return "an integer of more than 60 digits"
    if isinstance(value, Fraction):
        text = str(decimal_text(value))
    elif isinstance(value, Decimal | int | float):
        text = str(value)
    else:
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class NpuSpec(SpecFields):
    """A chip. Frozen, hashable, comparable (without the provenance), exact.

    Whole numbers are ``int``, rates and shares :class:`~fractions.Fraction`. ``model_dump(mode="json")`` (or
    :meth:`to_dict`) gives ints and exact decimal text, and ``NpuSpec.model_validate`` of that gives an equal chip.
    Get one with :func:`tileproof.hardware.get_spec`; ``build`` and ``replace`` raise :class:`SpecError` in plain words,
    direct construction raises pydantic's ``ValidationError``.
    """

    _sources: dict[str, Source] = PrivateAttr(default_factory=dict)
    _origin: str = PrivateAttr(default="")

    # -- making one -------------------------------------------------------------------------------------------
    @classmethod
    def build(
        cls,
        values: Mapping[str, object],
        sources: Mapping[str, Source] | None = None,
        *,
        origin: str = "",
        file: str | os.PathLike[str] | None = None,
        places: Mapping[str, tuple[str, str]] | None = None,
    ) -> NpuSpec:
        """Chip from field values, with their sources.

        ``origin`` names who states the chip (see :meth:`inherited_fields`). ``file`` and ``places`` (field ->
        (section, key)) are only used to name the place when a value is refused. Raises :class:`SpecError`.
        """
        try:
            spec = cls.model_validate(dict(values))
        except ValidationError as error:
            raise _plain_error(error, values, file, places or {}) from None
        spec._sources.update(sources or {})
        spec._origin = origin
        return spec

    def replace(self, **changes: object) -> NpuSpec:
        """The same chip with some numbers changed, checked again; the changed ones get the source "set in code".

        Raises :class:`SpecError` for an unknown field or a value that is not allowed.
        """
        values = {key: getattr(self, key) for key in type(self).model_fields} | changes
        sources = self._sources | {key: Source("set in code", None, "code") for key in changes if key in NUMBER_FIELDS}
        return self.build(values, sources, origin="code")

    # -- provenance -------------------------------------------------------------------------------------------
    @property
    def provenance(self) -> dict[str, Quantity]:
        """Field -> value, unit, meaning, source, confidence, origin; for every number, in declaration order."""
        unknown = Source("not recorded", None, "")
        result = {}
        for key in NUMBER_FIELDS:
            source = self._sources.get(key, unknown)
            result[key] = Quantity(
                getattr(self, key), unit_of(key), meaning_of(key), source.source, source.confidence, source.origin
            )
        return result

    def inherited_fields(self) -> tuple[str, ...]:
        """Numbers that this chip's own file does not state, but the chip it is based on."""
        return tuple(key for key in NUMBER_FIELDS if key in self._sources and self._sources[key].origin != self._origin)

    # -- identity ---------------------------------------------------------------------------------------------
    def to_dict(self) -> dict[str, Any]:
        """Name, description and all numbers, ready for JSON: ints, exact decimal text, lists."""
        return self.model_dump(mode="json")

    def fingerprint(self) -> str:
        """SHA-256 (hex) of the numbers alone: not of name, description, provenance or the way a number was written."""
        numbers = self.to_dict()
        canonical = {key: numbers[key] for key in sorted(NUMBER_FIELDS)} | {"fingerprint_version": _FINGERPRINT_VERSION}
        return hashlib.sha256(json.dumps(canonical, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NpuSpec):
            return NotImplemented
        return all(getattr(self, key) == getattr(other, key) for key in type(self).model_fields)

    def __hash__(self) -> int:
        return hash((self.name, self.aic_cores, self.cube_mhz, self.hbm_tb_s, self.l1_bytes, self.l2_bytes))

    # -- rates of the chip, bytes per Cube cycle --------------------------------------------------------------
    @property
    def cycles_per_us(self) -> int:
        """Cube cycles in a microsecond (the clock in MHz)."""
        return self.cube_mhz

    @property
    def hbm_bytes_per_cycle(self) -> Fraction:
        """HBM rate of the chip, B/cycle: 969.70 on ascend950pr."""
        return self.hbm_tb_s * 10**6 / self.cube_mhz

    @property
    def l2_read_bytes_per_cycle(self) -> Fraction:
        """Effective L2 read rate of the chip, B/cycle: 2787.88 on ascend950pr (4.6 TB/s)."""
        return self.l2_read_gb_s_per_core * self.aic_cores * 1000 / self.cube_mhz

    @property
    def l2_write_bytes_per_cycle(self) -> Fraction:
        """L2 write rate of the chip, B/cycle: 3151.52 on ascend950pr (5.2 TB/s)."""
        return self.l2_write_gb_s_per_core * self.aic_cores * 1000 / self.cube_mhz

    @property
    def unaligned_write_bytes_per_cycle(self) -> Fraction:
        """Write rate of the chip for output rows that are not aligned, B/cycle; the HBM rate where none is stated."""
        per_core = self.unaligned_write_bytes_per_cycle_per_core
        return self.hbm_bytes_per_cycle if per_core is None else per_core * self.aic_cores

    # -- saturation -------------------------------------------------------------------------------------------
    @property
    def saturating_aic_cores(self) -> int:
        """AI cores that saturate HBM: ``floor(saturation_share * C)``, at least 1."""
        return max(1, int(self.saturation_share * self.aic_cores))

    @property
    def saturating_aiv_cores(self) -> int:
        """Vector cores that saturate HBM: ``floor(saturation_share * V)``, at least 1."""
        return max(1, int(self.saturation_share * self.aiv_cores))

    @property
    def latency_floor_cycles(self) -> Fraction:
        """Least time of an L1 step, lambda, cycles: bytes in flight over the HBM share of a core at saturation.

        ``bytes_in_flight / (hbm_bytes_per_cycle / (saturation_share * C))``; 811.0 on ascend950pr.
        """
        return self.bytes_in_flight * self.saturation_share * self.aic_cores / self.hbm_bytes_per_cycle

    # -- Cube -------------------------------------------------------------------------------------------------
    def mac_per_cycle(self, dtype: str) -> int:
        """Multiply-adds per cycle and core for an input type of :data:`DTYPES`. Raises :class:`SpecError`."""
        return int(getattr(self, f"mac_per_cycle_{_arithmetic(dtype)}"))

    def fractal_k(self, dtype: str) -> int:
        """K0, elements of K in one fractal step, for an input type of :data:`DTYPES`. Raises :class:`SpecError`."""
        return int(getattr(self, f"fractal_k_{_arithmetic(dtype)}"))

    def cube_peak_tflops(self, dtype: str) -> Fraction:
        """Cube peak of the chip, TFLOPS (TOPS for int8), a multiply-add being two: 432.5 for fp16 on ascend950pr."""
        return Fraction(2 * self.mac_per_cycle(dtype) * self.cube_mhz * self.aic_cores, 10**6)

    def balance_flop_per_element(self, dtype: str, input_bytes: int) -> Fraction:
        """R, the arithmetic intensity at which Cube and HBM take equal time, FLOP per input element.

        ``peak / (BW_HBM / input_bytes)``; 540.67 for fp16 on ascend950pr.
        """
        return self.cube_peak_tflops(dtype) * input_bytes / self.hbm_tb_s


def _arithmetic(dtype: str) -> str:
    try:
        return _ARITHMETIC[dtype]
    except KeyError:
        hint = suggestion(str(dtype), DTYPES)
        raise SpecError(f"the Cube has no input type {dtype!r}{hint}; known are {', '.join(DTYPES)}") from None


def _plain_error(
    error: ValidationError,
    values: Mapping[str, object],
    file: str | os.PathLike[str] | None,
    places: Mapping[str, tuple[str, str]],
) -> SpecError:
    """The first complaint of pydantic as one plain sentence with its place."""
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else None
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, FieldError):
        field = cause.field
    section, key = places.get(field, (None, field)) if field is not None else (None, None)
    unit = f" [{unit_of(field)}]" if field in NUMBER_FIELDS else ""
    if first["type"] == "extra_forbidden":
        message = f"is no field of a chip{suggestion(str(field), list(SpecFields.model_fields))}"
    elif first["type"] == "missing":
        message = f"is missing{unit}"
    else:
        reason = str(cause) if cause is not None else "must be text"
        message = f"is {shown(values.get(str(field)))}{unit}, but {reason}"
    return SpecError(message, file=file, section=section, key=key)
