"""Tiling data as int32 words: shipped tilings, plans that the structs can express, and words that fit nothing.

The shipped words are those the unit tests of the production code expect (facts of the production code, section 7).
"""

from __future__ import annotations

from typing import Any

import pytest

import tileproof
from tileproof.hardware import InputError, get_spec
from tileproof.models.case import BmmCase, make_case
from tileproof.models.plan import BranchName, Plan
from tileproof.solver.tcube import STRUCTS, parse_words, read_words, write_words

SPEC = get_spec("ascend950pr")
COUNTS = {
    "MatMulV3Basic": 23, "MatMulV3Basic+batch": 25, "IterBatchBasic": 14, "MergeBatchBasic": 12, "BatchMatMulToMul": 10,
    "KEqualZero": 2, "TCubeTiling": 50,
}  # fmt: skip

#: (words, struct, key, the rest of the case, plan fields). BatchMatMulV3_950: test_swat_1, test_al1fullload_2 and
#: test_streamk_basicapi_01 (both with today's rowStride), iterbatch_basicapi_fp32_01, mergebatch_01.
SHIPPED: list[tuple[str, str, int | None, dict[str, Any], dict[str, Any]]] = [
    (
        "32 21 9 16559 32 16 512 32 16 256 16559 1 1 1 1 0 0 33686528 0 32 1 1 0 1804 1", "MatMulV3Basic+batch", 0x11,
        dict(batch_a=(82, 22), batch_b=(82, 22), trans_a=True),
        dict(branch="asw_basic", base_m=32, base_n=16, base_k=256, full_load="none", step_ka=2, step_kb=2, l0_buffers=2,
             l0c_buffers=2, l1_buffers=4, tail_m=1, tail_n=1),
    ),
    (
        "32 11 2687 29 16 128 32 256 128 32 29 1 1 1 1 0 0 16909313 0 256 1 1 0 230 1", "MatMulV3Basic+batch", 0x10012,
        dict(batch_a=(1,), batch_b=(230,), dtype="hf32", trans_a=True),
        dict(branch="asw_basic", base_m=256, base_n=128, base_k=32, full_load="a", step_kb=1, l0_buffers=2,
             l0c_buffers=2, l1_buffers=4, tail_m=1, tail_n=1),
    ),
    (
        "32 133 204 217211 144 208 128 144 208 32 13576 1 1 1 1 0 0 16843265 0 144 1 1 0 2 1", "MatMulV3Basic+batch",
        None, dict(dtype="hf32", trans_a=True, trans_b=True),
        dict(branch="stream_k", base_m=144, base_n=208, base_k=32, grid_b=2, grid_m=1, grid_n=1, grid_k=16,
             single_core_k=13576, step_ka=4, step_kb=4, l0_buffers=2, l0c_buffers=1, l1_buffers=2),
    ),
    (
        "32 32 32 1200 32 8 1 32 32 32 0 1 0 0", "IterBatchBasic", None, dict(dtype="hf32"),
        dict(branch="iter_batch", base_m=32, base_n=32, base_k=32, l1_form="b", iter_l1=32, iter_l0=8, l1_buffers=2,
             l0_buffers=2, l0c_buffers=2),
    ),
    (
        "1 4 976 2400 8 8 8 256 64 1 0 1", "MergeBatchBasic", None, dict(dtype="hf32", trans_b=True),
        dict(branch="merge_batch", merge_b0=8, b_l1=8, base_m=16, base_n=128, base_k=64, step_ka=4, l1_buffers=2,
             l0_buffers=2, l0c_buffers=2),
    ),
    (
        "4 976 2400 64 38 12 2 2 47 8", "BatchMatMulToMul", None, dict(dtype="fp32", trans_a=True),
        dict(branch="special"),
    ),
    ("64 64", "KEqualZero", None, dict(batch_a=(2,), batch_b=(2,), m=4, n=8), dict(branch="special")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "struct", "key", "rest", "fields"), SHIPPED)
def test_shipped_words(text: str, struct: str, key: int | None, rest: dict[str, Any], fields: dict[str, Any]) -> None:
    tiling = read_words(parse_words(text), tiling_key=key)
    assert tiling.struct == struct
    case = tiling.case(**rest)
    assert tiling.fields(case) == (fields["branch"], fields)


def test_the_sizes_of_the_case_are_those_of_the_words() -> None:
    case = read_words(parse_words(SHIPPED[3][0])).case()
    assert (case.batch, case.m, case.n, case.k) == (1200, 32, 32, 32)
    with pytest.raises(InputError) as caught:
        read_words(parse_words(SHIPPED[3][0])).case(k=64)
    assert caught.value.column == "k"
    with pytest.raises(InputError) as caught:
        read_words(parse_words(SHIPPED[3][0])).fields(make_case(batch_a=5, batch_b=5, m=32, n=32, k=32))
    assert caught.value.column == "batch"
    with pytest.raises(InputError) as caught:
        read_words([64, 64]).case(m=4, n=4)
    assert caught.value.column == "total_elements"


def test_packed_bytes_are_decoded() -> None:
    columns = read_words(parse_words(SHIPPED[1][0])).columns
    assert [columns[name] for name in ("hf32", "l1_buffer_num", "db_l0c", "ub_db")] == [1, 4, 2, 1]


def test_counts() -> None:
    assert {name: len(columns) for name, columns in STRUCTS.items()} == COUNTS


@pytest.mark.parametrize("count", [0, 1, 3, 11, 13, 15, 22, 24, 26, 49, 51])
def test_a_wrong_count_names_the_counts_allowed(count: int) -> None:
    with pytest.raises(InputError) as caught:
        read_words([1] * count)
    assert str(caught.value).startswith(f"{count} words; allowed: 23 (MatMulV3Basic), 25 (MatMulV3Basic+batch), 14")


@pytest.mark.parametrize("struct", COUNTS)
def test_a_wrong_count_for_a_named_struct(struct: str) -> None:
    with pytest.raises(InputError, match=f"allowed for .*: {COUNTS[struct]}"):
        read_words([1] * (COUNTS[struct] + 1), struct)


def test_unknown_structs_and_words_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'IterBatchBasic'"):
        read_words([1] * 14, "IterBatchBasik")
    with pytest.raises(InputError, match="does not fit 32 bits") as caught:
        read_words([1, 2**32])
    assert caught.value.column == "word 1"
    with pytest.raises(InputError, match="'12x'") as caught:
        parse_words("1 2\n 3 12x")
    assert (caught.value.row, caught.value.column) == (2, "4")


def test_words_are_read_from_lists_and_hexadecimal() -> None:
    assert parse_words("[32, 0x10,\n4294967295 -1]") == [32, 16, -1, -1]


def solved(case: BmmCase, branch: BranchName, rules: str = "source") -> Plan:
    plan = tileproof.solve(case, rules=rules, branches=(branch,)).branches[branch].plan  # type: ignore[arg-type]
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("branch", "struct", "case"),
    [
        ("asw_basic", "MatMulV3Basic+batch", dict(batch_a=8, batch_b=8, m=500, n=600, k=700)),
        ("asw_basic", "MatMulV3Basic", dict(m=500, n=600, k=700, dtype="hf32")),
        ("stream_k", "MatMulV3Basic", dict(m=128, n=200, k=65536)),
        ("iter_batch", "IterBatchBasic", dict(batch_a=400, batch_b=400, m=32, n=48, k=64)),
        ("merge_batch", "MergeBatchBasic", dict(batch_a=512, batch_b=512, m=8, n=16, k=64)),
        ("special", "KEqualZero", dict(batch_a=3, batch_b=3, m=128, n=200, k=0)),
    ],
)  # fmt: skip
def test_plans_as_words(branch: BranchName, struct: str, case: dict[str, Any]) -> None:
    whole = make_case(**case)
    plan = solved(whole, branch)
    words = write_words(whole, plan, SPEC)
    tiling = read_words(words)
    assert tiling.struct == struct
    assert tiling.case(m=whole.m, n=whole.n, dtype=whole.dtype, batch_a=whole.batch_a, batch_b=whole.batch_b) == whole
    name, fields = tiling.fields(whole)
    assert name == branch
    assert {**plan.model_dump(), **fields} == plan.model_dump()


@pytest.mark.parametrize(
    ("branch", "case", "change", "column"),
    [
        ("asw_basic", dict(m=500, n=600, k=700), dict(l1_buffers=1), "l1_buffers"),
        ("asw_basic", dict(m=500, n=600, k=700), dict(l0_buffers=1), "l0_buffers"),
        ("asw_basic", dict(m=500, n=600, k=700), dict(step_ka=1, step_kb=2), "step_kb"),
        ("asw_basic", dict(m=500, n=600, k=700), dict(base_m=None), "base_m"),
        ("iter_batch", dict(batch_a=400, batch_b=400, m=32, n=48, k=64), dict(l1_form="f"), "l1_form"),
        ("merge_batch", dict(batch_a=512, batch_b=512, m=8, n=16, k=64), dict(l0c_buffers=1), "l0c_buffers"),
        ("stream_k", dict(m=128, n=200, k=65536), dict(grid_n=2), "grid_n"),
    ],
)  # fmt: skip
def test_what_the_struct_cannot_express(
    branch: BranchName, case: dict[str, Any], change: dict[str, Any], column: str
) -> None:
    whole = make_case(**case)
    plan = solved(whole, branch).model_copy(update=change)
    with pytest.raises(InputError) as caught:
        write_words(whole, plan, SPEC)
    assert caught.value.column == column


def test_a_folded_case_and_k_1_have_no_words() -> None:
    case = make_case(batch_a=4, batch_b=1, m=64, n=64, k=64)
    with pytest.raises(InputError, match="folded"):
        write_words(case, Plan(branch="to_matmul"), SPEC)
    with pytest.raises(InputError, match="vector cores"):
        write_words(make_case(m=4, n=4, k=1), Plan(branch="special"), SPEC)
    with pytest.raises(InputError, match="has no fields for branch"):
        write_words(case, Plan(branch="asw_basic"), SPEC, "KEqualZero")


def test_tcubetiling_as_words() -> None:
    case = make_case(m=512, n=512, k=512, bias="fp32")
    plan = solved(case, "asw_basic", "none")
    words = write_words(case, plan, SPEC, "TCubeTiling")
    assert len(words) == 50
    assert words[:5] == [plan.used_core_num, 512, 512, 512, 512]
    assert (words[15], words[26], words[27], words[30]) == (1, plan.step_ka, plan.step_kb, plan.l0_buffers)
    tiling = read_words(words)
    assert tiling.case(bias="fp32") == case
    branch, fields = tiling.fields(case)
    assert branch == "asw_basic"
    assert fields["base_m"] == plan.base_m
