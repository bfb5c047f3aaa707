"""The plan: every parameter of a tiling, named as the columns of ``plans.csv``."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticKnownError

from .branch_names import BRANCHES

__all__ = ["BRANCHES", "PLAN_FIELDS", "BranchName", "Plan"]


def _known(name: Any) -> Any:
    """A branch name, refused as a literal would be."""
    if name not in BRANCHES:
        *others, last = map(repr, BRANCHES)
        expected = f"{', '.join(others)} or {last}"
        raise PydanticKnownError("literal_error", {"expected": expected})
    return name


#: Name of a registered branch.
BranchName = Annotated[str, BeforeValidator(_known)]


class Plan(BaseModel):
    """One tiling. ``None`` means that the branch has no such parameter. Extents are in elements."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    branch: BranchName = Field(description="implementation branch")
    inner_branch: BranchName | None = Field(
        default=None, description="branch that solves the folded matmul (to_matmul)"
    )
    fold: Literal["a", "b"] | None = Field(default=None, description="operand whose batch is folded (to_matmul)")
    used_core_num: int | None = Field(default=None, description="cores that get work (AIC; AIV for special)")
    split_b: int | None = Field(default=None, description="parts the batch is cut into across cores")
    m_cnt: int | None = Field(default=None, description="tiles along M")
    n_cnt: int | None = Field(default=None, description="tiles along N")
    grid_b: int | None = Field(default=None, description="batch slices across cores (stream_k)")
    grid_m: int | None = Field(default=None, description="M slices across cores (stream_k)")
    grid_n: int | None = Field(default=None, description="N slices across cores (stream_k)")
    grid_k: int | None = Field(default=None, description="K slices across cores")
    core_map: Literal["window", "grid", "batch", "vector"] | None = Field(
        default=None, description="order in which blocks go to cores"
    )
    b_core: int | None = Field(default=None, description="batches of the busiest core")
    merge_b0: int | None = Field(default=None, description="batches merged into one product (merge_batch)")
    iter_l1: int | None = Field(default=None, description="batches resident in L1 together (iter_batch)")
    iter_l0: int | None = Field(default=None, description="batches in L0 together (iter_batch)")
    single_core_m: int | None = Field(default=None, description="M extent of one core's task")
    single_core_n: int | None = Field(default=None, description="N extent of one core's task")
    single_core_k: int | None = Field(default=None, description="K extent of one core's task")
    k_l1: int | None = Field(default=None, description="K extent of one L1 step, at most K")
    b_l1: int | None = Field(default=None, description="batches of one L1 step (merge_batch)")
    l1_form: Literal["a", "b", "c", "d", "e", "f"] | None = Field(
        default=None, description="what stays in L1 (iter_batch)"
    )
    full_load: Literal["none", "a", "b"] | None = Field(default=None, description="operand kept whole in L1")
    base_m: int | None = Field(default=None, description="rows of one L0 tile; rows of the UB tile for special")
    base_n: int | None = Field(
        default=None, description="columns of one L0 tile; column run of the UB tile for special"
    )
    base_k: int | None = Field(default=None, description="K extent of one L0 tile")
    step_m: int | None = Field(default=None, description="L0 tiles of A along M in one L1 part")
    step_n: int | None = Field(default=None, description="L0 tiles of B along N in one L1 part")
    step_ka: int | None = Field(default=None, description="L0 tiles of A along K in one L1 part")
    step_kb: int | None = Field(default=None, description="L0 tiles of B along K in one L1 part")
    depth_a1: int | None = Field(default=None, description="L0 tiles of A in L1, all buffers")
    depth_b1: int | None = Field(default=None, description="L0 tiles of B in L1, all buffers")
    l0_buffers: int | None = Field(default=None, description="buffers of L0A and of L0B (1 or 2)")
    l0c_buffers: int | None = Field(default=None, description="buffers of L0C (1 or 2)")
    l1_buffers: int | None = Field(default=None, description="buffers of a streamed L1 part (1, 2 or 4)")
    ub_buffers: int | None = Field(default=None, description="buffers of the UB tile (special)")
    fixpipe_unitflag: int | None = Field(default=None, description="1: fixpipe drains L0C while MMAD still writes it")
    iterate_order: int | None = Field(default=None, description="0: M first, 1: N first")
    swizzle_w: int | None = Field(default=None, description="window of the core order, in tiles along M")
    tail_strategy: Literal["A0", "A1a", "A1b", "B"] | None = Field(
        default=None, description="cut of the last round: none, M, N, both"
    )
    tail_m: int | None = Field(default=None, description="pieces of a last-round block along M")
    tail_n: int | None = Field(default=None, description="pieces of a last-round block along N")
    l2_policy_in: Literal["keep", "stream_a", "stream_b", "stream"] | None = Field(
        default=None, description="inputs read more than once stay in L2, the others stream through"
    )
    l2_policy_out: Literal["keep", "write_through"] | None = Field(
        default=None, description="whether the output stays in L2"
    )
    workspace_bytes: int | None = Field(default=None, description="global workspace, B")
    out_dtype_bytes: int | None = Field(default=None, description="bytes of one element of C")


PLAN_FIELDS: Final[tuple[str, ...]] = tuple(Plan.model_fields)
