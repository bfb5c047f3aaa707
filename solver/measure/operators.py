"""Which operator types of a profiler export are the matmul that the model times, and what their relatives do besides.

Names as in the operator definitions of CANN (ops-nn, ops-transformer); exports spell them with either case.
"""

from __future__ import annotations

from typing import Final

#: Operator types that compute C = A B (+ bias) and nothing else.
MATMULS: Final = ("MatMul", "MatMulV2", "MatMulV3", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
_PLAIN: Final = frozenset(name.lower() for name in MATMULS)
_FAMILY: Final = ("matmul", "gemm")
#: What else an operator with a matmul in its name does, by a piece of the name; the first one that fits.
_BESIDES: Final = (
    (("allreduce", "reducescatter", "allgather", "alltoall"), "it communicates between chips in the same task"),
    (("grouped",), "it multiplies groups of sizes of their own"),
    (("quant",), "it scales quantised operands in the same task"),
    (("transpose",), "it permutes its operands in the same task"),
)


def is_matmul(kind: str) -> bool:
    """Whether an operator type is a plain matmul: by its whole name, whatever its case."""
    return _folded(kind) in _PLAIN


def besides(kind: str) -> str | None:
    """Why an operator of the matmul family is no plain matmul; ``None`` for any other operator."""
    name = _folded(kind)
    if not any(piece in name for piece in _FAMILY):
        return None
    for pieces, what in _BESIDES:
        if any(piece in name for piece in pieces):
            return what
    return f"it is another operator than {', '.join(MATMULS)}"


def _folded(kind: str) -> str:
    return kind.strip().lower().replace("_", "")
