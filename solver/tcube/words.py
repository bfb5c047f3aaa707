"""Tiling data as int32 words: the structs of the shipped Batch MatMul kernels, and ``TCubeTiling`` itself.

Layouts: facts of the production code, section 7 (``mat_mul_tiling_data.h``). The packed word of MatMulV3Basic holds
four bytes, lowest first: hf32, l1BufferNum, dbL0C, ubDB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...hardware.errors import InputError, did_you_mean
from ...models.case import BmmCase, make_case
from ...models.plan import BranchName
from ..tables.vendor_rows import VendorTiling, read_vendor_row
from .convert import PlanFields, case_of_tcube, tcube_to_fields
from .struct import FIELDS, INT32, TCubeTiling

__all__ = ["STRUCTS", "WordTiling", "parse_words", "read_words"]

_BASIC: Final = (
    "used_core_num", "m", "n", "k", "m_l1", "n_l1", "k_l1", "base_m", "base_n", "base_k", "single_core_k", "m_tail_cnt",
    "n_tail_cnt", "m_base_tail_split", "n_base_tail_split", "m_tail_main", "n_tail_main", "packed", "l2_cache_disable",
    "slice_m", "src_nd_stride", "row_stride", "inner_batch",
)  # fmt: skip
#: Struct -> its words, under the column names of the decoded tilings (``vendor_rows``).
STRUCTS: Final[dict[str, tuple[str, ...]]] = {
    "MatMulV3Basic": _BASIC,
    "MatMulV3Basic+batch": (*_BASIC, "batch_dim_all", "batch_x3"),
    "IterBatchBasic": (
        "m", "n", "k", "batch_dim_all", "iter_batch_l1", "iter_batch_l0", "hf32", "base_m", "base_n", "base_k",
        "inner_batch", "batch_x3", "need_nd_dma", "l2_cache_disable",
    ),
    "MergeBatchBasic": (
        "m", "n", "k", "batch_dim_all", "batch_al1", "batch_bl1", "batch_l0", "k_l1", "base_k", "hf32",
        "l2_cache_disable", "batch_x3",
    ),
    "BatchMatMulToMul": (
        "m", "n", "batch_dim_all", "used_core_num", "tomul_single_core_batch", "tomul_batch_num",
        "tomul_batch_num_last_round", "tomul_last_tail", "tomul_last_core_num", "tomul_align_num",
    ),
    "KEqualZero": ("total_elements", "used_core_num"),
    "TCubeTiling": FIELDS,
}  # fmt: skip
_STRATEGY: Final = {
    "IterBatchBasic": "ITER_BATCH_BASICAPI", "MergeBatchBasic": "MERGE_BATCH_BASICAPI", "BatchMatMulToMul": "TO_MUL",
    "KEqualZero": "K_EQUAL_ZERO",
}  # fmt: skip
_PACKED: Final = ("hf32", "l1_buffer_num", "db_l0c", "ub_db")
_ONE_WORD: Final = re.compile(r"[+-]?[0-9]{1,12}|[+-]?0[xX][0-9a-fA-F]{1,8}")


@dataclass(frozen=True)
class WordTiling:
    """Words under their names. ``columns`` are those of the decoded tilings; ``tiling`` is set for TCubeTiling."""

    struct: str
    columns: dict[str, int]
    strategy: str
    tiling: TCubeTiling | None = None

    @property
    def batch(self) -> int | None:
        """Batches of the output, where the struct has them."""
        return 1 if self.struct == "MatMulV3Basic" else self.columns.get("batch_dim_all")

    def case(self, **fields: Any) -> BmmCase:
        """The case of the words, with what they do not say (types, layout, batch dims of a broadcast).

        Raises:
            InputError: a size is missing, or a field contradicts the words.
        """
        if self.tiling is not None:
            return case_of_tcube(self.tiling, **fields)
        sizes: dict[str, Any] = {name: self.columns[name] for name in "mnk" if name in self.columns}
        if self.struct in ("KEqualZero", "BatchMatMulToMul"):
            sizes["k"] = int(self.struct == "BatchMatMulToMul")
        if self.batch is not None and not {"batch_a", "batch_b"} & set(fields):
            sizes |= {"batch_a": (self.batch,), "batch_b": (self.batch,)}
        case = make_case(**(sizes | fields))
        self._check(case)
        return case

    def _check(self, case: BmmCase) -> None:
        sizes = {"m": case.m, "n": case.n, "k": case.k}
        for name, value in sizes.items():
            if self.columns.get(name, value) != value:
                raise InputError(f"is {self.columns[name]} in the words, but the case has {value}", column=name)
        if self.batch is not None and self.batch != case.batch:
            raise InputError(f"is {self.batch} in the words, but the case has {case.batch}", column="batch")
        total = case.batch * case.m * case.n
        if self.columns.get("total_elements", total) != total:
            raise InputError(
                f"is {self.columns['total_elements']} in the words, but the case has {total}", column="total_elements"
            )

    def vendor(self, case: BmmCase, aic_cores: int = 32, aiv_cores: int = 64) -> VendorTiling:
        """The tiling as a row of the decoded tilings.

        Raises:
            InputError: the words are for another case, or the strategy is not modelled.
        """
        self._check(case)
        plain = {
            "case_name": case.case_id,
            "strategy": self.strategy,
            "batch_a": "x".join(map(str, case.batch_a)),
            "batch_b": "x".join(map(str, case.batch_b)),
            "m": case.m,
            "n": case.n,
            "k": case.k,
            "dtype_in": "fp32" if case.dtype == "hf32" else case.dtype,
            "dtype_out": case.out_dtype or "",
            "trans_a": int(case.trans_a),
            "trans_b": int(case.trans_b),
            "bias_dtype": case.bias or "",
            "format_b": case.format_b,
            "aic": aic_cores,
            "aiv": aiv_cores,
            "db_l0a": 2,  # the shipped kernels always halve L0A and L0B
        }
        row = {name: str(value) for name, value in (self.columns | plain).items()}
        row["hf32"] = str(int(case.dtype == "hf32"))
        return read_vendor_row(row)

    def fields(self, case: BmmCase) -> tuple[BranchName, PlanFields]:
        """Branch and plan fields (the branch among them) that the words fix.

        Raises:
            InputError: the words are for another case, or the strategy is not modelled.
        """
        if self.tiling is not None:
            return tcube_to_fields(self.tiling, case)
        tiling = self.vendor(case)
        return tiling.branch, {"branch": tiling.branch, **tiling.fixed}


def parse_words(text: str) -> list[int]:
    """Words from text: whole numbers, decimal or 0x hexadecimal, between spaces, commas or line ends.

    Raises:
        InputError: a piece is no word; ``row`` is the line, ``column`` the character in it.
    """
    words: list[int] = []
    for row, line in enumerate(text.splitlines(), 1):
        for match in re.finditer(r"[^\s,;\[\]{}\"]+", line):
            if not _ONE_WORD.fullmatch(match.group()):
                raise InputError(f"{match.group()[:60]!r} is no whole number", row=row, column=str(match.start() + 1))
            words.append(_int32(int(match.group(), 16 if "x" in match.group().lower() else 10), len(words)))
    return words


def _int32(value: int, index: int) -> int:
    """A word as a signed number; 2^31 and more are taken as the unsigned spelling."""
    if not INT32[0] <= value <= 2**32 - 1:
        raise InputError(f"is {value}, which does not fit 32 bits", column=f"word {index}")
    return value - 2**32 if value > INT32[1] else value


def read_words(words: Sequence[int], struct: str | None = None, *, tiling_key: int | None = None) -> WordTiling:
    """Name the words of a struct.

    Args:
        words: int32 words.
        struct: a name of :data:`STRUCTS`; by default the one with that many words.
        tiling_key: the kernel's key. The words do not tell a full load from ASW_BASIC, its fifth hexadecimal digit does
            (1 A, 2 B). Without a key a K split is STREAM_K and any other basic struct ASW_BASIC.

    Raises:
        InputError: the count fits no struct (not the named one), or a word does not fit 32 bits.
    """
    if struct is None:
        struct = next((name for name, columns in STRUCTS.items() if len(columns) == len(words)), None)
        if struct is None:
            counts = ", ".join(f"{len(columns)} ({name})" for name, columns in STRUCTS.items())
            raise InputError(f"{len(words)} words; allowed: {counts}")
    if struct not in STRUCTS:
        raise InputError(
            f"struct {struct!r} is not known{did_you_mean(struct, STRUCTS)}; allowed: {', '.join(STRUCTS)}"
        )
    columns = STRUCTS[struct]
    if len(words) != len(columns):
        raise InputError(f"{len(words)} words; allowed for {struct}: {len(columns)}")
    values = {name: _int32(value, index) for index, (name, value) in enumerate(zip(columns, words, strict=True))}
    if struct == "TCubeTiling":
        return WordTiling(struct, values, "", TCubeTiling.model_validate(values))
    if "packed" in values:
        packed = values.pop("packed")
        values |= {name: packed >> 8 * index & 0xFF for index, name in enumerate(_PACKED)}
    return WordTiling(struct, values, _STRATEGY.get(struct) or _basic_strategy(values, tiling_key))


def _basic_strategy(values: dict[str, int], tiling_key: int | None) -> str:
    """Strategy of MatMulV3Basic: fourth hexadecimal digit of the key is the K split, fifth the full load."""
    if tiling_key is None:
        return "STREAM_K_BASICAPI" if values["single_core_k"] < values["k"] else "ASW_BASIC"
    if tiling_key >> 12 & 0xF == 1:
        return "STREAM_K_BASICAPI"
    return {1: "AL1_FULL_LOAD_BASIC", 2: "BL1_FULL_LOAD_BASIC"}.get(tiling_key >> 16 & 0xF, "ASW_BASIC")
