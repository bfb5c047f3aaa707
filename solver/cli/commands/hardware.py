"""``tileproof hardware``: the chips, and every number of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ....hardware import NpuSpec

hardware_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The chips: their numbers, with unit and source."
)

_MB = 2**20


@hardware_app.command("list")
def list_chips(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """Chips that are shipped, with cores, memory rate and L2."""
    from ....hardware import DEFAULT_SPEC, get_spec, list_specs

    specs = [get_spec(name) for name in list_specs()]
    if as_json:
        print(json.dumps([_summary(spec) for spec in specs], indent=2))
        return
    from ..render import make_console, new_table

    table = new_table(
        "chip", "AIC", "AIV", "HBM TB/s", "L2 MB", "description", numbers=("AIC", "AIV", "HBM TB/s", "L2 MB")
    )
    for spec in specs:
        name = f"{spec.name} (default)" if spec.name == DEFAULT_SPEC else spec.name
        l2 = _plain(Fraction(spec.l2_bytes, _MB))
        table.add_row(name, str(spec.aic_cores), str(spec.aiv_cores), _plain(spec.hbm_tb_s), l2, spec.description)
    make_console().print(table)


def _summary(spec: NpuSpec) -> dict[str, Any]:
    numbers = spec.to_dict()
    fields = ("name", "description", "aic_cores", "aiv_cores", "hbm_tb_s", "l2_bytes")
    return {field: numbers[field] for field in fields}


@hardware_app.command("show")
def show_chip(
    chip: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A shipped chip, or a .toml or platform .ini file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """Numbers of a chip with unit and source, and what follows."""
    from ....hardware import get_spec

    spec = get_spec(chip)
    if as_json:
        print(json.dumps(_document(spec), indent=2))
        return
    from ..render import make_console, new_table

    console = make_console()
    console.print(f"{spec.name}: {spec.description}", style="bold")
    console.print(f"fingerprint {spec.fingerprint()}")
    console.print("confidence: H two agreeing sources, M one good source or a fit, L a guess")
    console.print()
    table = new_table("number", "value", "unit", "conf.", "source", numbers=("value",))
    for name, quantity in spec.provenance.items():
        table.add_row(name, _shown(quantity.value), quantity.unit, quantity.confidence or "", quantity.source)
    console.print(table)
    console.print()
    derived = new_table("derived", "value", "unit", numbers=("value",))
    for name, value, unit in _derived(spec):
        derived.add_row(name, _rounded(value), unit)
    console.print(derived)


def _document(spec: NpuSpec) -> dict[str, Any]:
    numbers = spec.to_dict()
    return {
        "name": spec.name,
        "description": spec.description,
        "fingerprint": spec.fingerprint(),
        "numbers": {
            name: {
                "value": numbers[name],
                "unit": quantity.unit,
                "meaning": quantity.meaning,
                "source": quantity.source,
                "confidence": quantity.confidence,
                "origin": quantity.origin,
            }
            for name, quantity in spec.provenance.items()
        },
        "derived": {name: {"value": float(value), "unit": unit} for name, value, unit in _derived(spec)},
    }


def _derived(spec: NpuSpec) -> list[tuple[str, Fraction | int, str]]:
    from ....hardware import DTYPES
    from ....models.case import BYTES

    rows: list[tuple[str, Fraction | int, str]] = []
    for dtype in DTYPES:
        rows.append((f"peak_{dtype}", spec.cube_peak_tflops(dtype), "TOPS" if dtype == "int8" else "TFLOPS"))
    for dtype in DTYPES:
        rows.append((f"balance_{dtype}", spec.balance_flop_per_element(dtype, BYTES[dtype]), "FLOP/element"))
    rows += [
        ("hbm_rate", spec.hbm_bytes_per_cycle, "B/cycle"),
        ("l2_read_rate", spec.l2_read_bytes_per_cycle, "B/cycle"),
        ("l2_write_rate", spec.l2_write_bytes_per_cycle, "B/cycle"),
        ("unaligned_write_rate", spec.unaligned_write_bytes_per_cycle, "B/cycle"),
        ("latency_floor", spec.latency_floor_cycles, "cycles"),
        ("saturating_aic_cores", spec.saturating_aic_cores, "cores"),
        ("saturating_aiv_cores", spec.saturating_aiv_cores, "cores"),
    ]
    return rows


def _plain(number: Fraction | int) -> str:
    """An exact number as short as possible."""
    from ....hardware.quantities import decimal_text

    return str(decimal_text(Fraction(number)))


def _rounded(number: Fraction | int) -> str:
    return str(number) if isinstance(number, int) else f"{float(number):.2f}"


def _shown(value: Any) -> str:
    if value is None:
        return "as HBM"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(number)}" for key, number in value.items())
    if isinstance(value, tuple):
        return ", ".join(f">={row}: {_plain(share)}" for row, share in value)
    return _plain(value)
