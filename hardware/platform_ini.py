"""Importing the vendor's platform description (``.ini``).

What a platform file states is taken from it; the constants of the latency model and the policy thresholds are in no
platform file and come from the shipped chip of the same memory type (``ascend950dt`` when the SoC name holds "DT",
else ``ascend950pr``). ``spec.provenance`` says for each number which of the two it is, ``spec.inherited_fields()``
lists the latter.

Three rates need a word:

* ``ddr_rate`` is B/cycle and core, so the HBM rate is ``ddr_rate * cores * cube_freq`` (1.637 TB/s for 31 B/cycle on 32
  cores, where the white paper and measurements say 1.6).
* ``l2_rate`` is the nominal 100 B/cycle and core. It is taken as the port into L1. No kernel gets that much from L2, so
  the effective L2 rates keep the measured share of nominal of the shipped chip (143.75 of 165 GB/s for reads).
* Writes of rows that are not aligned run at the HBM rate on 950PR and at 30.3 B/cycle and core on 950DT (a guess); no
  platform file states them.
"""

from __future__ import annotations

import configparser
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Final

from .chip_file import Chip, read_text
from .errors import SpecError
from .fields import unit_of
from .quantities import Source, exact_fraction
from .shipped import shipped_chip
from .spec import NpuSpec, shown, suggestion

__all__ = ["load_platform_ini", "parse_platform_ini"]

_ARCH: Final = "3510"
_SECTIONS: Final = ("version", "SoCInfo", "AICoreSpec", "AICoreMemoryRates")

#: Field -> section, key, whether the file must state it. One number each, taken as it is.
_DIRECT: Final[dict[str, tuple[str, str, bool]]] = {
    "aic_cores": ("SoCInfo", "cube_core_cnt", False),
    "aiv_cores": ("SoCInfo", "vector_core_cnt", True),
    "l2_bytes": ("SoCInfo", "l2_size", True),
    "cube_mhz": ("AICoreSpec", "cube_freq", True),
    "l0a_bytes": ("AICoreSpec", "l0_a_size", True),
    "l0b_bytes": ("AICoreSpec", "l0_b_size", True),
    "l0c_bytes": ("AICoreSpec", "l0_c_size", True),
    "l1_bytes": ("AICoreSpec", "l1_size", True),
    "bias_table_bytes": ("AICoreSpec", "bt_size", False),
    "ub_bytes": ("AICoreSpec", "ub_size", False),
    "mte2_port_bytes_per_cycle": ("AICoreMemoryRates", "l2_rate", False),
    "mte1_bytes_per_cycle": ("AICoreMemoryRates", "l1_to_l0_a_rate", False),
}
#: The model has one number for both keys, so a file that states both must state the same.
_TWINS: Final = (
    (("SoCInfo", "cube_core_cnt"), ("SoCInfo", "ai_core_cnt")),
    (("AICoreSpec", "ub_size"), ("VectorCoreSpec", "ub_size")),
    (("AICoreMemoryRates", "ddr_rate"), ("AICoreMemoryRates", "ddr_read_rate")),
    (("AICoreMemoryRates", "ddr_rate"), ("AICoreMemoryRates", "ddr_write_rate")),
    (("AICoreMemoryRates", "l2_rate"), ("AICoreMemoryRates", "l2_read_rate")),
    (("AICoreMemoryRates", "l2_rate"), ("AICoreMemoryRates", "l2_write_rate")),
    (("AICoreMemoryRates", "l1_to_l0_a_rate"), ("AICoreMemoryRates", "l1_to_l0_b_rate")),
)
#: Cube fractals of NpuArch 3510; the file may confirm them, it may not change them.
_FRACTALS: Final = (
    ("AICoreSpec", "cube_m_size", "16"),
    ("AICoreSpec", "cube_n_size", "16"),
    ("AICoreSpec", "cube_k_size", "16"),
    ("DtypeMKN", "Default", "16,16,16"),
    ("DtypeMKN", "DT_INT8", "16,32,16"),
    ("DtypeMKN", "DT_FLOAT8_E4M3FN", "16,32,16"),
    ("DtypeMKN", "DT_HIFLOAT8", "16,32,16"),
    ("DtypeMKN", "DT_FLOAT", "16,8,16"),
)


def load_platform_ini(path: str | os.PathLike[str]) -> NpuSpec:
    """Chip from the vendor's platform file at ``path``. Raises :class:`SpecError` with file, section and key."""
    return parse_platform_ini(read_text(path), path)


def parse_platform_ini(text: str, file: str | os.PathLike[str]) -> NpuSpec:
    """Chip from the text of a platform file; ``file`` is used for the name of the chip's origin and in messages.

    Raises :class:`SpecError`, with file, section and key, for text that is no ``.ini``, a missing section or key,
    another architecture than 3510, numbers that are not allowed, and rates the model cannot express.
    """
    ini = _PlatformFile(text, file)
    soc = _architecture(ini)
    base = _base_chip(soc)
    chip = Chip(
        name=soc,
        description=f"{soc}, from {ini.origin}; model constants of {base.name}",
        values=dict(base.values),
        sources={key: _inherited(source, base.name) for key, source in base.sources.items()},
        origin=ini.origin,
    )
    places: dict[str, tuple[str, str]] = {}
    for field, (section, key, needed) in _DIRECT.items():
        if field == "aic_cores" and ini.get(section, key) is None:
            key, needed = "ai_core_cnt", True
        if ini.get(section, key) is None and not needed:
            continue
        chip.values[field] = ini.positive(section, key, unit_of(field))
        chip.sources[field] = Source(f"{ini.origin}, [{section}] {key}", None, ini.origin)
        places[field] = (section, key)
    for first, second in _TWINS:
        ini.same(first, second)
    for section, key, value in _FRACTALS:
        ini.expect(section, key, value)
    _set_rates(ini, chip, base, places)
    if not re.search("PR|DT", soc.upper()):
        _say_assumed_memory(chip, base, soc)
    return chip.build(file, places)


class _PlatformFile:
    """Text values of an ``.ini`` file, with errors that name file, section and key."""

    def __init__(self, text: str, file: str | os.PathLike[str]) -> None:
        self.file = file
        self.origin = Path(file).name
        self._parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), default_section="\0")
        try:
            self._parser.read_string(text, source=self.origin)
        except configparser.Error as error:
            reason = " ".join(str(error).split())
            raise SpecError(f"is no platform .ini file: {reason}", file=file) from None
        for section in _SECTIONS:
            if not self._parser.has_section(section):
                hint = suggestion(section, self._parser.sections())
                raise SpecError(
                    f"has no such section{hint}; needed are {', '.join(_SECTIONS)}", file=file, section=section
                )

    def get(self, section: str, key: str) -> str | None:
        """Text of a key, None when the file does not state it."""
        value = self._parser.get(section, key, fallback=None)
        return None if value is None else value.strip()

    def error(self, section: str, key: str, message: str) -> SpecError:
        """Error at a key of this file."""
        return SpecError(message, file=self.file, section=section, key=key)

    def positive(self, section: str, key: str, unit: str = "") -> Fraction:
        """Positive number of a key that must be there; ``unit`` only for messages."""
        text = self.get(section, key)
        unit = f" [{unit}]" if unit else ""
        if text is None:
            raise self.error(section, key, f"is missing{unit}")
        try:
            number = exact_fraction(text)
        except ValueError as error:
            raise self.error(section, key, f"is {shown(text)}{unit}, but {error}") from None
        if number <= 0:
            raise self.error(section, key, f"is {shown(number)}{unit}, but must be positive")
        return number

    def same(self, first: tuple[str, str], second: tuple[str, str]) -> None:
        """Refuse two different values for what the model knows as one number."""
        if self.get(*first) is None or self.get(*second) is None:
            return
        one, two = self.positive(*first), self.positive(*second)
        if one != two:
            other = f"[{first[0]}] {first[1]} = {shown(one)}"
            raise self.error(*second, f"is {shown(two)}, but must equal {other}: the model has one number for both")

    def expect(self, section: str, key: str, value: str) -> None:
        """Refuse another value than ``value`` where the file states one."""
        text = self.get(section, key)
        if text is not None and text.replace(" ", "") != value:
            raise self.error(section, key, f"is {shown(text)}, but the model describes Cube fractals with {value}")


def _architecture(ini: _PlatformFile) -> str:
    """SoC name of the file, after checking that the model describes its architecture."""
    arch = ini.get("version", "NpuArch")
    if arch is None:
        raise ini.error("version", "NpuArch", f"is missing; the model describes NpuArch {_ARCH} only")
    if arch != _ARCH:
        raise ini.error("version", "NpuArch", f"is {shown(arch)}, but the model describes NpuArch {_ARCH} only")
    return ini.get("version", "SoC_version") or Path(ini.file).stem


def _base_chip(soc: str) -> Chip:
    return shipped_chip("ascend950dt" if "DT" in soc.upper() else "ascend950pr")


def _inherited(source: Source, base: str) -> Source:
    return Source(f"default of {base}: {source.source}", source.confidence, source.origin)


def _set_rates(ini: _PlatformFile, chip: Chip, base: Chip, places: dict[str, tuple[str, str]]) -> None:
    """HBM rate, and effective L2 rates as the measured share of the nominal rate."""
    section, key = "AICoreMemoryRates", "ddr_rate"
    cores, mhz = (exact_fraction(chip.values[field]) for field in ("aic_cores", "cube_mhz"))
    chip.values["hbm_tb_s"] = ini.positive(section, key, "B/cycle/core") * cores * mhz / 10**6
    text = f"{ini.origin}, [{section}] {key} * cores * cube_freq"
    chip.sources["hbm_tb_s"] = Source(text, None, ini.origin)
    places["hbm_tb_s"] = (section, key)
    nominal = exact_fraction(chip.values["mte2_port_bytes_per_cycle"]) * mhz
    base_nominal = exact_fraction(base.values["mte2_port_bytes_per_cycle"]) * exact_fraction(base.values["cube_mhz"])
    stated = "mte2_port_bytes_per_cycle" in places
    for field in ("l2_read_gb_s_per_core", "l2_write_gb_s_per_core"):
        source = base.sources[field]
        chip.values[field] = exact_fraction(base.values[field]) * nominal / base_nominal
        rate = f"{ini.origin}, [{section}] l2_rate" if stated else f"the nominal rate of {base.name}"
        text = f"{rate} * cube_freq, times the share of nominal of {base.name}: {source.source}"
        chip.sources[field] = Source(text, source.confidence, source.origin)
        places[field] = (section, "l2_rate")


def _say_assumed_memory(chip: Chip, base: Chip, soc: str) -> None:
    field = "unaligned_write_bytes_per_cycle_per_core"
    source = chip.sources[field]
    chip.sources[field] = Source(
        f'{source.source}; assumed, since the name "{soc}" holds neither PR nor DT', "L", source.origin
    )
