"""The chips that come with the package, each read once."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from .chip_file import Chip, overlay, parse_toml
from .spec import NpuSpec

_COMMON: Final = "common"


@cache
def shipped_names() -> tuple[str, ...]:
    """Names of the chips, sorted."""
    folder = files(__package__).joinpath("data")
    stems = (entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return tuple(sorted(stem for stem in stems if stem != _COMMON))


@cache
def shipped_chip(name: str) -> Chip:
    """Unchecked values of a chip; files put theirs over them."""
    file = f"{name}.toml"
    table = parse_toml(files(__package__).joinpath("data", file).read_text(encoding="utf-8"), file)
    base = shipped_chip(table["base"]) if "base" in table else Chip()
    chip = overlay(table, base, file=file, origin=name)
    chip.name = name
    return chip


@cache
def shipped_spec(name: str) -> NpuSpec:
    """A chip, checked."""
    return shipped_chip(name).build(file=f"{name}.toml")
