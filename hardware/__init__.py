"""The chip: every number of the hardware, with unit and source. No other package holds chip numbers.

``get_spec("ascend950pr")`` gives a shipped chip, ``get_spec("my_chip.toml")`` the user's own.
"""

from .errors import InputError, InternalError, SpecError, TileproofError
from .platform_ini import load_platform_ini
from .quantities import ENVIRONMENTS, Quantity
from .registry import DEFAULT_SPEC, get_spec, list_specs
from .spec import DTYPES, NpuSpec

__all__ = [
    "DEFAULT_SPEC",
    "DTYPES",
    "ENVIRONMENTS",
    "InputError",
    "InternalError",
    "NpuSpec",
    "Quantity",
    "SpecError",
    "TileproofError",
    "get_spec",
    "list_specs",
    "load_platform_ini",
]
