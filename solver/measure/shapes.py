"""From the tensor shapes of a profiler export to the columns of a case.

An export does not say whether an operand is stored transposed; the shapes do, unless they are square. Then the plain
layout is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Final

_TYPES: Final = {
    "FLOAT16": "fp16", "DT_FLOAT16": "fp16", "BF16": "bf16", "DT_BF16": "bf16", "BFLOAT16": "bf16", "FLOAT": "fp32",
    "DT_FLOAT": "fp32", "FLOAT32": "fp32", "INT8": "int8", "DT_INT8": "int8", "INT32": "int32", "DT_INT32": "int32",
    "HIFLOAT8": "hif8", "DT_HIFLOAT8": "hif8", "FLOAT8_E4M3FN": "fp8_e4m3", "DT_FLOAT8_E4M3FN": "fp8_e4m3",
    "FLOAT8_E5M2": "fp8_e5m2", "DT_FLOAT8_E5M2": "fp8_e5m2",
}  # fmt: skip
Shape = tuple[int, ...]


class ShapeError(Exception):
    """Shapes that are no matmul of the model; ``harmless`` when it may be one that the model does not have."""

    def __init__(self, message: str, *, harmless: bool = False) -> None:
        super().__init__(message)
        self.harmless = harmless


def case_columns(cells: Mapping[str, str]) -> dict[str, str]:
    """Columns of a case from the cells ``shapes``, ``types``, ``formats``, ``out_shapes``, ``out_types``, ``hf32``.

    Raises:
        ShapeError: the shapes or types are no matmul that the model has.
    """
    shapes, types = _shapes(cells["shapes"]), _listed(cells["types"])
    if len(shapes) < 2 or len(shapes[0]) < 2 or len(shapes[1]) < 2:
        raise ShapeError(f"needs two inputs of two or more dims, has {cells['shapes']!r}")
    formats = _listed(cells.get("formats", ""))
    if any("NZ" in text.upper() for text in formats[:2]):
        raise ShapeError("an operand is in FRACTAL_NZ, whose true extents the export does not tell", harmless=True)
    a, b = shapes[0], shapes[1]
    if len(a) > 6 or len(b) > 6:
        raise ShapeError("more than 4 batch dims", harmless=True)
    out = _shapes(cells.get("out_shapes", ""))
    trans_a, trans_b = _layout(a, b, out[0] if out else None)
    m, k = (a[-1], a[-2]) if trans_a else (a[-2], a[-1])
    n = b[-2] if trans_b else b[-1]
    dtype = _type(types, 0)
    if dtype == "fp32" and cells.get("hf32", "").upper() in ("YES", "TRUE", "1"):
        dtype = "hf32"
    columns = {
        "batch_a": _dims(a[:-2]), "batch_b": _dims(b[:-2]), "m": str(m), "n": str(n), "k": str(k), "dtype": dtype,
        "trans_a": str(int(trans_a)), "trans_b": str(int(trans_b)),
    }  # fmt: skip
    if (outs := _listed(cells.get("out_types", ""))) and outs[0]:
        columns["out_dtype"] = _type(outs, 0)
    if len(shapes) > 2 and prod(shapes[2]) == n and len(types) > 2 and types[2].upper() in _TYPES:
        columns["bias"] = _type(types, 2)
    return columns


def _layout(a: Shape, b: Shape, out: Shape | None) -> tuple[bool, bool]:
    """Which operands are transposed: the first layout, plain ones first, that the shapes allow."""
    fits = []
    for trans_b, trans_a in product((False, True), repeat=2):
        m, k = (a[-1], a[-2]) if trans_a else (a[-2], a[-1])
        k_b, n = (b[-1], b[-2]) if trans_b else (b[-2], b[-1])
        if k == k_b and (out is None or len(out) < 2 or out[-2:] == (m, n)):
            fits.append((trans_a, trans_b))
    if not fits:
        raise ShapeError(f"shapes {_dims(a)} and {_dims(b)} share no K" + (f" with output {_dims(out)}" if out else ""))
    return fits[0]


def _listed(text: str) -> list[str]:
    return [part.strip().strip('"') for part in text.split(";")] if text else []


def _shapes(text: str) -> list[Shape]:
    shapes = []
    for part in _listed(text):
        try:
            shapes.append(tuple(int(dim) for dim in part.split(",") if dim.strip()))
        except ValueError:
            raise ShapeError(f"{part!r} is no shape") from None
    return shapes


def _type(types: list[str], index: int) -> str:
    given = types[index] if index < len(types) else ""
    if given.upper() not in _TYPES:
        raise ShapeError(f"type {given or 'missing'} is not modelled", harmless=bool(given))
    return _TYPES[given.upper()]


def _dims(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "1"
