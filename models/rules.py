"""The rules by name: what each one says, and the profiles of policy rules.

The comparison itself is posted by the branch that needs it, once, through ``Algebra.rule``. This registry holds the
words: the formula as text, and for policy rules the profile they belong to. Sources: design sections 6 and 7, the
vendor's TCubeTiling tables 2 and 3, the entry conditions of the v0.4 analysis and of the shipped tiling code.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict

from ..hardware.errors import InternalError

Profile = Literal["v0.4", "source", "none"]
PROFILES: Final[tuple[Profile, ...]] = get_args(Profile)

OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


class RuleInfo(BaseModel):
    """One named rule.

    ``text`` is the formula in the words of the plan columns; ``unit`` that of its two sides; ``profile`` is set for
    policy rules only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    text: str
    unit: str = ""
    profile: Profile | None = None

    @property
    def kind(self) -> str:
        """Family of the rule: entry, cap, align, cover, step, buffer, policy or pin."""
        return self.id.partition(".")[0]


def _table(rows: str, profile: Profile | None = None) -> dict[str, RuleInfo]:
    rules = {}
    for row in rows.strip().splitlines():
        rule_id, unit, text = (part.strip() for part in row.split("|"))
        rules[rule_id] = RuleInfo(id=rule_id, unit=unit, text=text, profile=profile)
    return rules


_HARD = _table(
    """
    entry.k_at_least_2      | elements | K >= 2: the Cube branches need a product to accumulate
    entry.output_not_empty  | elements | B*M*N >= 1: an empty output needs no Cube work
    entry.k_at_most_1       | elements | K <= 1, or an empty output: only then do the vector cores do all the work
    entry.equal_batch       | batches  | batch_a == batch_b: the branch gives every batch its own A and B
    entry.no_bias           | operands | no bias: a merged product has no row to add it to
    entry.merge_dtype       | flag     | input is 16-bit, 8-bit or hf32: merging wastes too much in plain fp32
    entry.vector_pairs      | cores    | V == 2*C: the reduction needs two vector cores for each Cube core
    entry.fp32_k            | elements | K <= 2000000 for fp32: accuracy of the split accumulation
    entry.batch_to_fold     | batches  | B >= 2: with one batch there is nothing to fold
    entry.fold_one_side     | batches  | min(B_A, B_B) == 1: one whole side must be without batch to fold
    entry.fold_layout       | flag     | A is not transposed: [B,K,M] does not fold to [B*M,K] without moving data
    entry.fold_bias         | flag     | bias without batch: a folded product has one bias row
    entry.full_load_batch   | batches  | the operand kept whole in L1 is without batch
    entry.form_one_batch    | batches  | b_core == 1: the form keeps one batch a core
    entry.form_more_batches | batches  | b_core >= 2: the form is for several batches a core
    entry.form_whole_block  | tiles    | m_cnt*n_cnt == 1: the whole M x N block stays in L0C
    entry.form_several_blocks | tiles  | m_cnt*n_cnt >= 2: a single block belongs to the forms a to e
    cap.l0a                 | B        | l0_buffers * rows of A in L0A * base_k * s <= L0A
    cap.l0b                 | B        | l0_buffers * columns of B in L0B * base_k * s <= L0B
    cap.l0c                 | B        | l0c_buffers * rows * columns * 4 <= L0C
    cap.l1                  | B        | A, B and bias parts kept in L1, all buffers, <= L1 (half of it in form d)
    cap.bias_table          | B        | 2 * base_n * 4 <= bias table
    cap.ub                  | B        | ub_buffers * (A, B and C parts of the UB tile) <= UB of one vector core
    cap.workspace_slot      | elements | single_b * single_core_m * single_core_n <= workspace slot of a core
    cap.cores               | cores    | used_core_num <= cores of the chip
    align.base_m            | elements | base_m is a multiple of 16
    align.base_n            | elements | base_n is a multiple of 16
    align.base_k            | elements | base_k is a multiple of max(16, C0)
    align.nz                | elements | single_core_k is a multiple of C0 when B is NZ: a slice starts on a fractal
    align.single_core_m     | elements | single_core_m is a multiple of 16
    align.single_core_n     | elements | single_core_n is a multiple of 16
    cover.base_m            | elements | base_m >= 1
    cover.base_n            | elements | base_n >= 1
    cover.base_k            | elements | base_k >= 1
    cover.whole_m           | elements | base_m == M padded to 16: the block is not cut in M
    cover.whole_n           | elements | base_n == N padded to 16: the block is not cut in N
    cover.whole_k           | elements | base_k == K padded: the batch goes to L0 in one piece
    cover.tail_m            | tiles    | tail_m <= base_m / 16: no empty piece
    cover.tail_n            | tiles    | tail_n <= base_n / 16: no empty piece
    cover.tail_cores        | cores    | tail_m * tail_n * tail_blocks <= C: one piece a core
    cover.tail_round        | blocks   | a split tail needs a last round that is not full
    cover.swizzle           | cores    | swizzle_w divides C
    cover.iter_l1           | batches  | iter_l1 <= B
    cover.iter_one          | batches  | iter_l1 == 1: only form b keeps several batches in L1
    cover.form_side         | flag     | full_load names the whole operand in forms c and d, and is none in the others
    cover.iter_l0           | batches  | iter_l0 <= iter_l1
    cover.merge_b0_least    | batches  | merge_b0 >= 2
    cover.merge_b0          | batches  | merge_b0 <= b_core
    cover.b_l1              | batches  | b_l1 >= merge_b0
    cover.b_l1_most         | batches  | b_l1 <= b_core
    cover.grid              | cores    | grid_b * grid_m * grid_n * grid_k <= C
    cover.grid_k            | slices   | grid_k >= 2: the branch cuts K
    cover.slice_b           | batches  | no batch slice is empty: (grid_b - 1) * single_b < B
    cover.slice_m           | elements | no M slice is empty: (grid_m - 1) * single_core_m < M
    cover.slice_n           | elements | no N slice is empty: (grid_n - 1) * single_core_n < N
    cover.slice_k           | elements | no K slice is empty: (grid_k - 1) * single_core_k < K
    cover.all_m             | elements | the slices cover M: grid_m * single_core_m >= M
    cover.all_n             | elements | the slices cover N: grid_n * single_core_n >= N
    cover.all_k             | elements | the slices cover K: grid_k * single_core_k >= K
    cover.vector_units      | cores    | used_core_num <= B * M * ceil(N*so / 512): one unit of work a vector core
    step.ka_max             | tiles    | step_ka <= 8: issue queue
    step.kb_max             | tiles    | step_kb <= 8: issue queue
    step.part_max           | tiles    | step_m (step_n) of the streamed operand <= 8: issue queue
    step.k_divide           | steps    | L1 iteration counts of A and B along K divide one another
    buffer.l0               | buffers  | l0_buffers is 1 or 2
    buffer.l0c              | buffers  | l0c_buffers is 1 or 2
    buffer.l1               | buffers  | l1_buffers is 1, 2 or 4
    buffer.ub               | buffers  | ub_buffers is 1 or 2
    buffer.unitflag         | buffers  | the unit flag needs l0c_buffers == 1
    """
)

_V04 = _table(
    """
    policy.merge_batches      | batches | B >= 4*C: every core has at least four batches (condition 1)
    policy.merge_memory_bound | FLOP    | merge_b0 * 2MN < R * (M+N): the wasted products stay hidden (conditions 2, 3)
    policy.merge_k_bytes      | B       | min(K, k_l1) * s >= 32 B (condition 4)
    policy.merge_l1_batches   | B       | (merge_b0 + 1) * (M+N) * k_l1 * s <= L1: room beyond one group (condition 5)
    policy.merge_tile_bytes   | B       | max(b_l1*M, N) * k_l1 * s >= 16 KB (condition 5)
    policy.merge_core_bytes   | B       | ceil(B/C) * (M+N) * K * s >= 480 KB a core (condition 6)
    policy.iter_batches       | batches | B >= C: every core has a batch
    policy.iter_class         | class   | compute-bound (class 1), output kept in L2 (class 2) or memory-bound (class 3)
    policy.iter_balance       | batches | B >= share * C * b_core: share 1.0 in classes 1 and 2, 0.8 in class 3
    policy.iter_forms         | form    | class 3 re-reads nothing: forms a to e only
    policy.iter_tile_bytes    | B       | a streamed part is at least 16 KB
    policy.iter_row_bytes     | B       | a streamed part that is cut along its rows has rows of at least 128 B
    policy.streamk_parallel   | blocks  | B * ceil(M/16) * ceil(N/16) < C: too few blocks uncut (condition 1)
    policy.streamk_k          | elements | K >= 1690 * grid_k^2: the reduction stays small (condition 2)
    policy.asw_l1_share       | B       | 4 * max(A part, B part of one buffer) <= L1, a resident operand exempt
    policy.window             | cores   | swizzle_w is the largest divisor of C not above sqrt(C)
    """,
    "v0.4",
)

_SOURCE = _table(
    """
    policy.source_l0_buffers  | buffers | l0_buffers == 2
    policy.source_l1_buffers  | buffers | l1_buffers == 2 (2 or 4 for ASW_Basic)
    policy.source_step_k      | tiles   | streamed step_ka, step_kb <= 4
    policy.source_step_equal  | tiles   | step_ka == step_kb
    policy.source_tail        | pieces  | no tail split when batched
    policy.source_window      | cores   | swizzle_w is the largest divisor of C not above sqrt(C)
    policy.source_full_load   | flag    | full load: resident side at most 256 wide, no bias batch, enough work
    policy.source_full_load_l1 | B      | full load: two copies of the resident operand fit L1
    policy.source_fixed_m     | elements | fallback block of unequal batches: base_m == min(256, M padded)
    policy.source_fixed_n     | elements | fallback block of unequal batches: base_n == min(256, N padded)
    policy.source_fixed_k     | elements | fallback block of unequal batches: base_k == min(128 B, K padded)
    policy.source_merge_batches | batches | B >= 4*C
    policy.source_merge_k     | elements | K padded to C0 >= 64
    policy.source_merge_m     | elements | M <= N
    policy.source_merge_l0a   | B       | four merged batches of least depth fit half of L0A
    policy.source_merge_l0b   | B       | four merged batches of least depth fit half of L0B
    policy.source_merge_l0c   | B       | four merged batches fit half of L0C
    policy.source_merge_l1    | batches | b_l1 == merge_b0
    policy.source_l0c_buffers | buffers | l0c_buffers == 2
    policy.source_iter_batches | batches | B > C
    policy.source_iter_form   | form    | l1_form == b: whole batches in L1
    policy.source_iter_balance | batches | B >= 0.8 * C * b_core when a batch does not fit half of L0
    policy.source_streamk_k   | B       | K padded to 256 >= max(8192, 256*C) bytes
    policy.source_streamk_blocks | blocks | B * ceil(M/256) * ceil(N/256) <= C/2 (blocks of 32 for fp32)
    policy.source_streamk_batch | batches | grid_b == B
    policy.source_streamk_block | blocks | one block a core
    policy.source_streamk_base_m | elements | base_m <= 256
    policy.source_streamk_base_n | elements | base_n <= 256
    """,
    "source",
)

RULES: Final[dict[str, RuleInfo]] = {**_HARD, **_V04, **_SOURCE}


def rule_info(rule_id: str) -> RuleInfo:
    """The rule of that id.

    Raises:
        InternalError: the id is not in the registry (a branch posted a rule without words).
    """
    if rule_id.startswith("pin."):
        return RuleInfo(id=rule_id, text="pinned")
    try:
        return RULES[rule_id]
    except KeyError:
        raise InternalError(f"rule {rule_id!r} is not in the registry") from None
