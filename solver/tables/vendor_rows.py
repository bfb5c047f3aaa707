"""Tilings under the vendor's field names: one CSV row as a case, a chip and what it fixes of a plan.

Columns are those of the decoded unit-test tilings (``strategy``, ``base_m``, ``k_l1``, ``l1_buffer_num``,
``iter_batch_l1``, ``batch_l0`` ...), one struct of the shipped tiling code a row. Fields the struct does not carry are
left open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...hardware import NpuSpec, get_spec
from ...hardware.errors import InputError
from ...models.case import BmmCase, make_case
from ...models.context import ATOM, ceil_to
from ...models.plan import BranchName

#: Strategy name (its start) -> branch; longest match first.
_BRANCH_OF: Final[tuple[tuple[str, BranchName], ...]] = (
    ("ITER_BATCH", "iter_batch"),
    ("MERGE_BATCH", "merge_batch"),
    ("STREAM_K", "stream_k"),
    ("BASIC_STREAM_K", "stream_k"),
    ("AL1_FULL_LOAD", "asw_basic"),
    ("BL1_FULL_LOAD", "asw_basic"),
    ("ASW_BASIC", "asw_basic"),
    ("BASIC_ASWT", "asw_basic"),
    ("BASE", "asw_basic"),
    ("K_EQUAL_ZERO", "special"),
    ("TO_MUL", "special"),
)


@dataclass(frozen=True)
class VendorTiling:
    """A shipped tiling: its case, the cores of its chip, the branch, and the plan fields it fixes."""

    name: str
    case: BmmCase
    aic_cores: int
    aiv_cores: int
    branch: BranchName
    fixed: dict[str, int | str]

    def spec(self, base: NpuSpec) -> NpuSpec:
        """The chip the tiling is for: ``base`` with the row's core counts."""
        if (base.aic_cores, base.aiv_cores) == (self.aic_cores, self.aiv_cores):
            return base
        return base.replace(
            name=f"{base.name}_{self.aic_cores}_{self.aiv_cores}", aic_cores=self.aic_cores, aiv_cores=self.aiv_cores
        )

    @property
    def pins(self) -> list[str]:
        """The fixed fields as pins."""
        return [f"{field}={value}" for field, value in self.fixed.items()]


def is_vendor_header(columns: list[str]) -> bool:
    """Whether a CSV header carries the vendor's field names."""
    return {"strategy", "base_m", "k_l1"} <= set(columns)


def read_vendor_row(row: Mapping[str, str]) -> VendorTiling:
    """Read one row.

    Raises:
        InputError: a column is missing or not a whole number, or the strategy is none of a modelled branch.
    """
    strategy = row.get("strategy", "").strip()
    branch = next((name for start, name in _BRANCH_OF if strategy.startswith(start)), None)
    if branch is None:
        allowed = ", ".join(start for start, _ in _BRANCH_OF)
        raise InputError(f"strategy {strategy!r} is not modelled; allowed: {allowed}", column="strategy")
    case = _case(row)
    if branch == "special" and case.k > 1:
        raise InputError(
            f"strategy {strategy} with K = {case.k} multiplies on the vector cores; not modelled", column="k"
        )
    fixed = _FIXED[branch](row, case, strategy)
    name = row.get("case_name", "") or strategy
    usual = get_spec()
    cores = (_int(row, "aic", usual.aic_cores), _int(row, "aiv", usual.aiv_cores))
    return VendorTiling(name, case, *cores, branch, fixed)


def _int(row: Mapping[str, str], column: str, default: int | None = None) -> int:
    text = row.get(column, "").strip()
    if not text:
        if default is not None:
            return default
        raise InputError("is missing", column=column)
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{text!r} is no whole number", column=column) from None


def _dims(row: Mapping[str, str], column: str) -> tuple[int, ...]:
    text = row.get(column, "").strip() or "1"
    try:
        return tuple(int(part) for part in text.split("x"))
    except ValueError:
        raise InputError(f"{text!r} is no list of batch dims like 6x1", column=column) from None


def _case(row: Mapping[str, str]) -> BmmCase:
    dtype = row.get("dtype_in", "").strip()
    if dtype == "fp32" and _int(row, "hf32", 0):
        dtype = "hf32"  # on 16-bit rows the flag means nothing
    bias = row.get("bias_dtype", "").strip()
    if not bias and _int(row, "bias", 0):
        bias = "fp32"
    out = row.get("dtype_out", "").strip()
    return make_case(
        case_id=row.get("case_name", ""),
        batch_a=_dims(row, "batch_a"),
        batch_b=_dims(row, "batch_b"),
        m=_int(row, "m"),
        n=_int(row, "n"),
        k=_int(row, "k"),
        dtype=dtype,
        out_dtype=out or None,
        trans_a=bool(_int(row, "trans_a", 0)),
        trans_b=bool(_int(row, "trans_b", 0)),
        bias=bias or None,
        format_b=row.get("format_b", "").strip() or "ND",
    )


def _tile(row: Mapping[str, str]) -> dict[str, int | str]:
    return {name: _int(row, name) for name in ("base_m", "base_n", "base_k")}


def _asw(row: Mapping[str, str], case: BmmCase, strategy: str) -> dict[str, int | str]:
    fixed = _tile(row)
    step = -(-_int(row, "k_l1") // _int(row, "base_k"))
    side = "a" if "AL1" in strategy else "b" if "BL1" in strategy else "none"
    fixed["full_load"] = side
    for operand in "ab":
        if operand != side:
            fixed[f"step_k{operand}"] = step
    fixed |= _buffers(row)
    fixed |= {"tail_m": _int(row, "m_tail_cnt", 1), "tail_n": _int(row, "n_tail_cnt", 1)}
    return fixed


def _buffers(row: Mapping[str, str]) -> dict[str, int | str]:
    return {
        "l0_buffers": _int(row, "db_l0a"),
        "l0c_buffers": _int(row, "db_l0c"),
        "l1_buffers": _int(row, "l1_buffer_num"),
    }


def _stream(row: Mapping[str, str], case: BmmCase, strategy: str) -> dict[str, int | str]:
    fixed = _tile(row)
    slice_k = _int(row, "single_core_k")
    step = -(-_int(row, "k_l1") // _int(row, "base_k"))
    fixed |= {
        "grid_b": case.batch,
        "grid_m": -(-case.m // _int(row, "base_m")),
        "grid_n": -(-case.n // _int(row, "base_n")),
        "grid_k": -(-case.k // slice_k),
        "single_core_k": slice_k,
        "step_ka": step,
        "step_kb": step,
    }
    return fixed | _buffers(row)


def _iter(row: Mapping[str, str], case: BmmCase, strategy: str) -> dict[str, int | str]:
    # The shipped kernel keeps whole batches in L1 with two buffers, and halves L0A, L0B and L0C.
    return _tile(row) | {
        "l1_form": "b",
        "iter_l1": _int(row, "iter_batch_l1"),
        "iter_l0": _int(row, "iter_batch_l0"),
        "l1_buffers": 2,
        "l0_buffers": 2,
        "l0c_buffers": 2,
    }


def _merge(row: Mapping[str, str], case: BmmCase, strategy: str) -> dict[str, int | str]:
    merged = _int(row, "batch_l0")
    rows = merged * ceil_to(case.m, ATOM) if case.trans_a else ceil_to(merged * case.m, ATOM)
    return {
        "merge_b0": merged,
        "b_l1": _int(row, "batch_al1"),
        "base_m": rows,
        "base_n": merged * ceil_to(case.n, ATOM),
        "base_k": _int(row, "base_k"),
        "step_ka": _int(row, "k_l1") // _int(row, "base_k"),
        "l1_buffers": 2,
        "l0_buffers": 2,
        "l0c_buffers": 2,
    }


_FIXED: Final[dict[BranchName, Any]] = {
    "asw_basic": _asw,
    "stream_k": _stream,
    "iter_batch": _iter,
    "merge_batch": _merge,
    "special": lambda row, case, strategy: {},
}
