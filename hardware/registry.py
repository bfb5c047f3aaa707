"""Finding a chip by name or file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from .chip_file import overlay, parse_toml, read_text
from .errors import SpecError
from .platform_ini import parse_platform_ini
from .shipped import shipped_chip, shipped_names, shipped_spec
from .spec import NpuSpec, suggestion

__all__ = ["DEFAULT_SPEC", "get_spec", "list_specs"]

DEFAULT_SPEC: Final = "ascend950pr"


def list_specs() -> list[str]:
    """Names of the chips that are shipped with the package, sorted."""
    return list(shipped_names())


def get_spec(name_or_path: str | os.PathLike[str] = DEFAULT_SPEC) -> NpuSpec:
    """Chip by name (any case) or from a file: TOML, or the vendor's platform ``.ini``.

    A shipped name is taken first. Text that ends in ``.toml`` or ``.ini``, holds a path separator or names an existing
    file is a path. Shipped chips are read once; files are read at every call.

    A TOML file states ``base`` (a shipped name, default ascend950pr), perhaps ``name`` and ``description``, and the
    numbers that differ, each as a plain number or as ``{value, unit, source, confidence}``.

    Raises :class:`SpecError` for an unknown name, an unreadable file or a number that is not allowed.
    """
    if isinstance(name_or_path, str):
        name = name_or_path.strip().lower()
        if name in shipped_names():
            return shipped_spec(name)
        looks_like_path = name.endswith((".toml", ".ini")) or os.sep in name or "/" in name
        if not looks_like_path and not _is_file(name_or_path):
            raise SpecError(f'there is no chip "{name_or_path}"{suggestion(name, list_specs())}; {_choice()}')
    return _spec_from_file(Path(name_or_path))


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _choice() -> str:
    return f"known chips are {', '.join(list_specs())}, or give a .toml or .ini file"


def _spec_from_file(path: Path) -> NpuSpec:
    text = read_text(path)
    suffix = path.suffix.lower()
    if suffix == ".ini" or (suffix != ".toml" and "[SoCInfo]" in text):
        spec = parse_platform_ini(text, path)
    else:
        spec = _spec_from_toml(text, path)
    if spec.name.lower() in shipped_names() and spec.fingerprint() != shipped_spec(spec.name.lower()).fingerprint():
        raise SpecError(
            f'is "{spec.name}", the name of a shipped chip with other numbers; give the file a name of its own '
            '(name = "...")',
            file=path,
            key="name",
        )
    return spec


def _spec_from_toml(text: str, path: Path) -> NpuSpec:
    table = parse_toml(text, path)
    base_name = table.get("base", DEFAULT_SPEC)
    if not isinstance(base_name, str) or base_name.lower() not in shipped_names():
        hint = suggestion(base_name, list_specs()) if isinstance(base_name, str) else ""
        raise SpecError(f"is {base_name!r}, but must be one of {', '.join(list_specs())}{hint}", file=path, key="base")
    base_name = base_name.lower()
    chip = overlay(table, shipped_chip(base_name), file=path, origin=path.name)
    chip.name = table.get("name", path.stem)
    chip.description = table.get("description", f"{path.name}, based on {base_name}")
    return chip.build(file=path)
