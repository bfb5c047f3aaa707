"""tileproof: proven tilings for Batch MatMul on the Ascend 950 NPU.

``solve(case)`` returns the best tiling of every implementation branch with its proof, ``evaluate(case, plan)`` judges a
tiling you have.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .hardware import InputError, NpuSpec, get_spec
    from .models.case import BmmCase
    from .models.plan import Plan
    from .solver.api import evaluate, solve
    from .solver.result import BranchResult, CaseResult

__version__ = "0.1.0"

__all__ = ["BmmCase", "BranchResult", "CaseResult", "InputError", "NpuSpec", "Plan", "evaluate", "get_spec", "solve"]

#: Loaded on first use: the command line starts without pydantic, NumPy and OR-Tools.
_HOME = {
    "BmmCase": ".models.case",
    "BranchResult": ".solver.result",
    "CaseResult": ".solver.result",
    "InputError": ".hardware",
    "NpuSpec": ".hardware",
    "Plan": ".models.plan",
    "evaluate": ".solver.api",
    "get_spec": ".hardware",
    "solve": ".solver.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
