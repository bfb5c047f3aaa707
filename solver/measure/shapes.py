"""From the tensor shapes of a profiler export to the columns of a case.

An export does not say whether an operand is stored transposed; the shapes do, unless they are square. Then the plain
layout is taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Final

from .left_out import Unusable

_TYPES: Final = {
    "FLOAT16": "fp16", "DT_FLOAT16": "fp16", "BF16": "bf16", "DT_BF16": "bf16", "BFLOAT16": "bf16", "FLOAT": "fp32",
    "DT_FLOAT": "fp32", "FLOAT32": "fp32", "INT8": "int8", "DT_INT8": "int8", "INT32": "int32", "DT_INT32": "int32",
    "HIFLOAT8": "hif8", "DT_HIFLOAT8": "hif8", "FLOAT8_E4M3FN": "fp8_e4m3", "DT_FLOAT8_E4M3FN": "fp8_e4m3",
    "FLOAT8_E5M2": "fp8_e5m2", "DT_FLOAT8_E5M2": "fp8_e5m2",
}  # fmt: skip
#: Formats that keep the extents of a matrix as they are.
_DENSE: Final = frozenset({"", "N/A", "NULL", "ND", "NCL", "NCHW", "NHWC", "HWCN", "NCDHW", "NDHWC"})
_INNER: Final = re.compile(r"[\[(]([^\[\]()]*)[\])]")
Shape = tuple[int, ...]


def case_columns(cells: Mapping[str, str]) -> dict[str, str]:
    """Columns of a case from the cells ``shapes``, ``types``, ``formats``, ``out_shapes``, ``out_types``, ``hf32``.

    Raises:
        Unusable: the shapes or types are no matmul that the model has.
    """
    if not cells["shapes"]:
        raise Unusable("its Input Shapes are missing")
    shapes, types = _shapes(cells["shapes"]), _listed(cells["types"])
    if len(shapes) < 2 or len(shapes[0]) < 2 or len(shapes[1]) < 2:
        raise Unusable("it does not have two inputs of two or more dims", repr(cells["shapes"]))
    for text in _listed(cells.get("formats", ""))[:2]:
        if text.upper().removeprefix("FORMAT_") not in _DENSE:
            raise Unusable(f"an operand is in {text}, whose true extents the export does not tell")
    a, b = shapes[0], shapes[1]
    if len(a) > 6 or len(b) > 6:
        raise Unusable("it has more than 4 batch dims")
    if min(*a, *b) < 1:
        raise Unusable("an extent is not above 0", f"{_dims(a)} and {_dims(b)}")
    out = _shapes(cells.get("out_shapes", ""))
    trans_a, trans_b = _layout(a, b, out[0] if out else None)
    m, k = (a[-1], a[-2]) if trans_a else (a[-2], a[-1])
    n = b[-2] if trans_b else b[-1]
    dtype, other = _type(types, 0), _type(types, 1)
    if dtype != other:
        raise Unusable("its two inputs differ in type", f"{types[0]} and {types[1]}")
    if dtype == "fp32" and cells.get("hf32", "").upper() in ("YES", "TRUE", "1"):
        dtype = "hf32"
    columns = {
        "batch_a": _dims(a[:-2]), "batch_b": _dims(b[:-2]), "m": str(m), "n": str(n), "k": str(k), "dtype": dtype,
        "trans_a": str(int(trans_a)), "trans_b": str(int(trans_b)),
    }  # fmt: skip
    if (outs := _listed(cells.get("out_types", ""))) and outs[0]:
        columns["out_dtype"] = _type(outs, 0)
    if len(shapes) > 2 and shapes[2]:
        if prod(shapes[2]) != n:
            raise Unusable("its third input is no bias of N elements", f"{_dims(shapes[2])}, N is {n}")
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
        with_out = f" with output {_dims(out)}" if out else ""
        raise Unusable("its shapes share no K", f"{_dims(a)} and {_dims(b)}{with_out}")
    return fits[0]


def _listed(text: str) -> list[str]:
    return [part.strip(" \"'[]()") for part in text.split(";")] if text else []


def _shapes(text: str) -> list[Shape]:
    """Shapes of ``8,16;16,32``, ``[8,16];[16,32]`` or ``[[8, 16], [16, 32]]``; an absent input is an empty shape."""
    inner = _INNER.findall(text)
    parts = [part for group in inner for part in group.split(";")] if inner else text.split(";")
    rest = _INNER.sub("", text) if inner else ""
    try:
        if rest.strip(" \"'[](),;"):
            raise ValueError
        return [tuple(int(dim) for dim in part.strip(" \"'").split(",") if dim.strip()) for part in parts]
    except ValueError:
        raise Unusable("its Input Shapes are no shapes", repr(text)) from None


def _type(types: list[str], index: int) -> str:
    given = types[index] if index < len(types) else ""
    if not given:
        raise Unusable("a type is missing")
    if given.upper() not in _TYPES:
        raise Unusable(f"type {given} is not modelled")
    return _TYPES[given.upper()]


def _dims(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "1"
