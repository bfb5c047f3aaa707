"""``TCubeTiling``: the tiling struct of the vendor's Matmul API, field by field.

Source: hiascend.com, CANN 9.0, "TCubeTiling结构体" (atlasascendc_api_07_0673), table 1; the order of the fields is that
of the 50 int32 words of the struct. Extents are in elements, depths and steps in base blocks.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ...models.case import BmmCase

__all__ = ["FIELDS", "INT32", "TABLE_1", "TCubeTiling", "TileproofExtra"]

#: Range of a field: the struct has int32.
INT32: Final = (-(2**31), 2**31 - 1)
_Int32 = Annotated[int, Field(strict=True, ge=INT32[0], le=INT32[1])]


class TileproofExtra(BaseModel):
    """What the vendor's struct has no field for: the problem, and the whole plan the struct was written from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hardware: str = Field(default="", description="chip the plan was made for")
    case: BmmCase = Field(description="the problem")
    plan: dict[str, int | str] = Field(description="fields of the plan, absent ones left out")


class TCubeTiling(BaseModel):
    """The struct. Fields that were not given read 0 and are absent from :attr:`given`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    usedCoreNum: _Int32 = Field(default=0, description="cores used, 1 to the cores of the chip")
    M: _Int32 = Field(default=0, description="rows of A and C, elements")
    N: _Int32 = Field(default=0, description="columns of B and C, elements")
    Ka: _Int32 = Field(default=0, description="K extent of A, elements")
    Kb: _Int32 = Field(default=0, description="K extent of B, elements")
    singleCoreM: _Int32 = Field(default=0, description="M extent of one core's task, elements")
    singleCoreN: _Int32 = Field(default=0, description="N extent of one core's task, elements")
    singleCoreK: _Int32 = Field(default=0, description="K extent of one core's task, elements; K itself")
    baseM: _Int32 = Field(default=0, description="M extent of one matrix instruction, elements")
    baseN: _Int32 = Field(default=0, description="N extent of one matrix instruction, elements")
    baseK: _Int32 = Field(default=0, description="K extent of one matrix instruction, elements")
    depthA1: _Int32 = Field(default=0, description="blocks of baseM x baseK held in A1 (L1), all buffers")
    depthB1: _Int32 = Field(default=0, description="blocks of baseN x baseK held in B1 (L1), all buffers")
    stepM: _Int32 = Field(default=0, description="baseM blocks of the A1 buffer along M")
    stepN: _Int32 = Field(default=0, description="baseN blocks of the B1 buffer along N")
    isBias: _Int32 = Field(default=0, description="1: a bias is added")
    transLength: _Int32 = Field(
        default=0, description="UB for format changes, B: max of A1, B1, C1 and bias; none on 950"
    )
    iterateOrder: _Int32 = Field(default=0, description="0: next block along M first, 1: along N first")
    shareMode: _Int32 = Field(default=0, description="reserved")
    shareL1Size: _Int32 = Field(default=0, description="reserved")
    shareL0CSize: _Int32 = Field(default=0, description="reserved")
    shareUbSize: _Int32 = Field(default=0, description="reserved")
    batchM: _Int32 = Field(default=0, description="reserved")
    batchN: _Int32 = Field(default=0, description="reserved")
    singleBatchM: _Int32 = Field(default=0, description="reserved")
    singleBatchN: _Int32 = Field(default=0, description="reserved")
    stepKa: _Int32 = Field(default=0, description="baseK blocks of the A1 buffer along K")
    stepKb: _Int32 = Field(default=0, description="baseK blocks of the B1 buffer along K")
    depthAL1CacheUB: _Int32 = Field(default=0, description="not in table 1")
    depthBL1CacheUB: _Int32 = Field(default=0, description="not in table 1")
    dbL0A: _Int32 = Field(default=0, description="buffers of L0A, 1 or 2")
    dbL0B: _Int32 = Field(default=0, description="buffers of L0B, 1 or 2")
    dbL0C: _Int32 = Field(default=0, description="buffers of L0C, 1 or 2")
    ALayoutInfoB: _Int32 = Field(default=0, description="not in table 1: batch layout of A")
    ALayoutInfoS: _Int32 = Field(default=0, description="not in table 1")
    ALayoutInfoN: _Int32 = Field(default=0, description="not in table 1")
    ALayoutInfoG: _Int32 = Field(default=0, description="not in table 1")
    ALayoutInfoD: _Int32 = Field(default=0, description="not in table 1")
    BLayoutInfoB: _Int32 = Field(default=0, description="not in table 1: batch layout of B")
    BLayoutInfoS: _Int32 = Field(default=0, description="not in table 1")
    BLayoutInfoN: _Int32 = Field(default=0, description="not in table 1")
    BLayoutInfoG: _Int32 = Field(default=0, description="not in table 1")
    BLayoutInfoD: _Int32 = Field(default=0, description="not in table 1")
    CLayoutInfoB: _Int32 = Field(default=0, description="not in table 1: batch layout of C")
    CLayoutInfoS1: _Int32 = Field(default=0, description="not in table 1")
    CLayoutInfoN: _Int32 = Field(default=0, description="not in table 1")
    CLayoutInfoG: _Int32 = Field(default=0, description="not in table 1")
    CLayoutInfoS2: _Int32 = Field(default=0, description="not in table 1")
    BatchNum: _Int32 = Field(default=0, description="not in table 1: batches of one call")
    mxTypePara: _Int32 = Field(
        default=0, description="MxMatmul: scale factors Ka, Kb, M, N in bits 0-6, 8-14, 16-22, 24-30"
    )
    tileproof: TileproofExtra | None = Field(default=None, description="what the struct has no field for")

    @property
    def given(self) -> frozenset[str]:
        """Fields of the struct that were given."""
        return frozenset(self.model_fields_set) - {"tileproof"}

    def values(self) -> dict[str, int]:
        """The given fields, in the order of the struct."""
        given = self.given
        return {name: getattr(self, name) for name in FIELDS if name in given}

    def words(self) -> list[int]:
        """The 50 int32 words of the struct."""
        return [getattr(self, name) for name in FIELDS]

    def with_fields(self, **changes: Any) -> TCubeTiling:
        """The same struct with some fields changed, checked again."""
        return TCubeTiling.model_validate({**self.values(), "tileproof": self.tileproof, **changes})


#: Fields in the order of the words.
FIELDS: Final[tuple[str, ...]] = tuple(name for name in TCubeTiling.model_fields if name != "tileproof")
#: Fields that table 1 of the vendor's document lists.
TABLE_1: Final[tuple[str, ...]] = tuple(
    name for name in FIELDS if "not in table 1" not in (TCubeTiling.model_fields[name].description or "")
)
