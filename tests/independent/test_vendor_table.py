"""Plans over real shapes against the vendor's TCubeTiling tables 2 and 3, typed plainly from that document.

Source: hiascend.com, CANN 9.0, "TCubeTiling结构体" (atlasascendc_api_07_0673). The document writes ``<`` for the L0 and bias
capacities; shipped tilings fill the buffers exactly, so ``<=`` is the rule (design section 10).

Table 2 gives the L1 footprint as ``CeilDiv(baseM, C0_size) * baseK * depthA1 * sizeof`` for a transposed A and as
``CeilDiv(baseN, C0_size) * ...`` for a B that is not transposed: the axes that lie along the short side of an L1 fractal there.
Read literally the formula counts fractals, not elements; the factor C0_size is missing, so the extent padded to C0_size is
used. The other axis of a fractal has 16 rows. For 1-byte types C0_size is 32: base_n = 16 of an untransposed B takes 32.
"""

from __future__ import annotations

import csv
import random
from math import ceil
from pathlib import Path
from typing import Any

import pytest

import tileproof
from tileproof import BmmCase, Plan
from tileproof.models.rules import PROFILES
from tileproof.solver.search.solve_branch import SolveOptions

SIZES = Path(__file__).parent.parent / "data" / "bmm_sizes.csv"

# The chip, typed from design section 4 (ascend950pr).
AIC_CORES = 32
L0A_SIZE = L0B_SIZE = 65536
L0C_SIZE = 262144
BIAS_TABLE_SIZE = 4096
L1_SIZE = 524288
SIZEOF = {"fp16": 2, "bf16": 2, "fp32": 4, "hf32": 4, "int8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "hif8": 1}
C0_SIZE = {1: 32, 2: 16, 4: 8}


def rows() -> list[dict[str, str]]:
    """Sizes collected from public test lists (see the README of tests/data)."""
    with SIZES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def case_of(row: dict[str, str]) -> BmmCase:
    """One row as a case."""
    return BmmCase(
        case_id=row["case_id"],
        batch_a=tuple(int(d) for d in row["batch_a"].split("x")),
        batch_b=tuple(int(d) for d in row["batch_b"].split("x")),
        m=int(row["m"]),
        n=int(row["n"]),
        k=int(row["k"]),
        dtype=row["dtype"],
        trans_a=row["trans_a"] == "1",
        trans_b=row["trans_b"] == "1",
        bias=row["bias"] or None,
        format_b=row["format_b"] or "ND",
    )


def padded(extent: int, multiple: int) -> int:
    """Extent rounded up."""
    return ceil(extent / multiple) * multiple


def check_table_2(case: BmmCase, plan: Plan) -> None:
    """Table 2: capacities, depths, alignment."""
    size = SIZEOF[case.dtype]
    c0 = C0_SIZE[size]
    base_m, base_n, base_k = plan.base_m or 0, plan.base_n or 0, plan.base_k or 0
    db_l0, db_l0c = plan.l0_buffers or 0, plan.l0c_buffers or 0
    assert 1 <= (plan.used_core_num or 0) <= AIC_CORES
    assert db_l0 in (1, 2)
    assert db_l0c in (1, 2)
    assert min(base_m, base_n, base_k) > 0
    assert base_m * base_k * size * db_l0 <= L0A_SIZE
    assert base_n * base_k * size * db_l0 <= L0B_SIZE
    assert base_m * base_n * 4 * db_l0c <= L0C_SIZE
    if case.bias:
        assert base_n * 4 <= BIAS_TABLE_SIZE

    # "stepM * stepKa * db = depthA1", db of the operand: one buffer when it stays in L1.
    step_m, step_n, step_ka, step_kb = plan.step_m or 0, plan.step_n or 0, plan.step_ka or 0, plan.step_kb or 0
    depth_a, depth_b = plan.depth_a1 or 0, plan.depth_b1 or 0
    assert min(step_m, step_n, step_ka, step_kb, depth_a, depth_b) > 0
    db_a = 1 if plan.full_load == "a" else plan.l1_buffers or 0
    db_b = 1 if plan.full_load == "b" else plan.l1_buffers or 0
    assert depth_a == step_m * step_ka * db_a
    assert depth_b == step_n * step_kb * db_b

    check_l1(case, plan, size, c0)

    # "baseM and baseN by 16; A not transposed and B transposed: baseK by C0_size, else by 16".
    assert base_m % 16 == 0
    assert base_n % 16 == 0
    assert base_k % (c0 if not case.trans_a and case.trans_b else 16) == 0
    if case.format_b == "NZ" and plan.branch != "merge_batch":
        # Table 1: with NZ storage singleCoreK is a multiple of C0_size where K is cut.
        assert (plan.single_core_k or 0) == case.k or (plan.single_core_k or 0) % c0 == 0


def check_l1(case: BmmCase, plan: Plan, size: int, c0: int) -> None:
    """``AL1Size + BL1Size (+ bias) <= L1_size``.

    depthA1 and depthB1 count base blocks. Where they over-count, the true extent is used: a resident operand and a streamed
    part end at the matrix (step_m * base_m may reach past it), several resident batches (iter_l1, b_l1) count as often as
    they are there.
    """
    base_m, base_n, base_k = plan.base_m or 0, plan.base_n or 0, plan.base_k or 0
    m, n = case.m, case.n
    if plan.branch == "to_matmul":
        m, n = (m * case.batch, n) if plan.fold == "a" else (m, n * case.batch)
    # Axes along C0_size: M of a transposed A, N of a B that is not transposed; the other axis has fractals of 16 rows.
    pad_m, pad_n = max(c0, 16) if case.trans_a else 16, 16 if case.trans_b else max(c0, 16)
    all_m, all_n, all_k = padded(m, 16), padded(n, 16), padded(case.k, max(16, c0))
    step_ka, step_kb, db = plan.step_ka or 0, plan.step_kb or 0, plan.l1_buffers or 0
    if plan.branch == "merge_batch":
        batches = plan.b_l1 or 0
        # Merged rows lie packed unless A is transposed; columns keep the padding of each batch.
        height = batches * all_m if case.trans_a else padded(batches * m, 16)
        used = db * (padded(height, pad_m) + padded(batches * all_n, pad_n)) * step_ka * base_k * size
    elif plan.l1_form in ("a", "b"):
        used = db * (plan.iter_l1 or 0) * (padded(m, pad_m) + padded(n, pad_n)) * all_k * size
    else:
        cut_m, cut_n = (plan.step_m or 0) * base_m, (plan.step_n or 0) * base_n
        whole_k = plan.l1_form in ("c", "d")
        deep_a = all_k if whole_k or plan.full_load == "a" else step_ka * base_k
        deep_b = all_k if whole_k or plan.full_load == "b" else step_kb * base_k
        height = min(cut_m, all_m) if whole_k or plan.full_load == "a" else cut_m
        width = min(cut_n, all_n) if whole_k or plan.full_load == "b" else cut_n
        used = padded(height, pad_m) * deep_a * size * (1 if plan.full_load == "a" else db)
        used += padded(width, pad_n) * deep_b * size * (1 if plan.full_load == "b" else db)
    if case.bias:
        used += base_n * 4
    assert used <= L1_SIZE


def check_table_3(case: BmmCase, plan: Plan) -> None:
    """Table 3, the MDL template."""
    base_k = plan.base_k or 0
    step_m, step_n, step_ka, step_kb = plan.step_m or 0, plan.step_n or 0, plan.step_ka or 0, plan.step_kb or 0
    single_k = plan.single_core_k or 0
    if single_k / base_k > step_ka:
        assert step_m == 1
    if single_k / base_k > step_kb:
        assert step_n == 1
    ka_iter, kb_iter = ceil(single_k / (base_k * step_ka)), ceil(single_k / (base_k * step_kb))
    assert ka_iter % kb_iter == 0 or kb_iter % ka_iter == 0


def check_case(case: BmmCase, rules: Any) -> int:
    """Check every plan of a case; how many there were."""
    result = tileproof.solve(case, rules=rules, options=SolveOptions(tie_break=False, explain=False))
    plans = [r.plan for r in result.branches.values() if r.plan is not None and r.plan.branch != "special"]
    for plan in plans:
        check_table_2(case, plan)
        check_table_3(case, plan)
    return len(plans)


#: A seeded sample: about one row in seventeen.
SAMPLE = random.Random(4).sample(rows(), 60)


@pytest.mark.parametrize("rules", PROFILES)
def test_plans_obey_the_vendor_tables(rules: Any) -> None:
    plans = sum(check_case(case_of(row), rules) for row in SAMPLE)
    assert plans >= 60 if rules != "source" else plans >= 20


@pytest.mark.sweep
@pytest.mark.parametrize("rules", PROFILES)
def test_plans_obey_the_vendor_tables_on_all_shapes(rules: Any) -> None:
    plans = sum(check_case(case_of(row), rules) for row in rows())
    assert plans >= 500


def test_8_bit_operand_along_its_rows_is_padded_to_32() -> None:
    """A shape (s90) whose optimum, were 8-bit rows padded to 16, would need 546816 B of L1 by the vendor's formula."""
    case = BmmCase(batch_a=(210,), batch_b=(210,), m=1296, n=1, k=751, dtype="hif8")
    assert check_case(case, "none") >= 1


def vendor_plan(**fields: Any) -> Plan:
    """A plan that fills L0A, L0B and L0C to the last byte, as shipped tilings do."""
    plan: dict[str, Any] = dict(
        branch="asw_basic", used_core_num=32, base_m=128, base_n=256, base_k=64, step_m=1, step_n=1, step_ka=4, step_kb=4,
        depth_a1=8, depth_b1=8, l0_buffers=2, l0c_buffers=2, l1_buffers=2, full_load="none", single_core_k=1024,
    )  # fmt: skip
    return Plan(**{**plan, **fields})


def test_the_recommended_block_passes() -> None:
    """The document recommends the block (128, 256, 64) with double buffers."""
    case = BmmCase(m=4096, n=4096, k=1024)
    check_table_2(case, vendor_plan())
    check_table_3(case, vendor_plan())


@pytest.mark.parametrize(
    "broken",
    [
        {"used_core_num": 33},
        {"base_k": 80},
        {"base_m": 136},
        {"base_n": 272},
        {"base_m": 272, "base_k": 32},
        {"l0c_buffers": 3},
        {"depth_a1": 4},
        {"step_n": 2, "depth_b1": 16},
        {"step_ka": 16, "step_kb": 16, "depth_a1": 32, "depth_b1": 32},
        {"step_ka": 4, "step_kb": 6, "depth_b1": 12, "single_core_k": 1024},
    ],
    ids=str,
)
def test_the_tables_refuse(broken: dict[str, Any]) -> None:
    """Each rule above can fail."""
    case, plan = BmmCase(m=4096, n=4096, k=1024), vendor_plan(**broken)
    with pytest.raises(AssertionError):
        (check_table_2(case, plan), check_table_3(case, plan))
