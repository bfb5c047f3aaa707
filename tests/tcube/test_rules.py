"""Each constraint of the vendor's tables: one tiling that just meets it and one that just misses it, the miss named.

Source: seed 004, tables 1, 2 and 3 ("TCubeTiling结构体", CANN 9.0); ``<=`` for capacities (design section 10).
"""

from __future__ import annotations

from typing import Any

import pytest

from tileproof.hardware import get_spec
from tileproof.models.case import make_case
from tileproof.solver.tcube import TCubeTiling, check_tcube, tcube_violations

SPEC = get_spec("ascend950pr")
#: A legal tiling of 1024 x 1024 x 1024 in fp16 on 32 cores.
GOOD = dict(
    usedCoreNum=32, M=1024, N=1024, Ka=1024, Kb=1024, singleCoreM=256, singleCoreN=128, singleCoreK=1024, baseM=128,
    baseN=128, baseK=64, depthA1=8, depthB1=8, stepM=1, stepN=1, stepKa=4, stepKb=4, isBias=0, iterateOrder=0, dbL0A=2,
    dbL0B=2, dbL0C=1,
)  # fmt: skip
L1 = "AL1Size + BL1Size <= L1_size"
L1_BIAS = "AL1Size + BL1Size + baseN * sizeof(Bias_type) <= L1_size"
# 1-byte operands: 48 rows take 64 where they lie along a fractal row (C0_size = 32).
INT8_A = dict(baseM=48, depthA1=64, stepKa=32, baseN=128, depthB1=40, stepKb=20)
INT8_B = dict(baseN=48, depthB1=64, stepKb=32, baseM=128, depthA1=40, stepKa=20)
WIDE_BIAS = dict(isBias=1, baseM=48, baseK=16, dbL0B=1)

Case = dict[str, Any]
Fields = dict[str, int]
#: (table, constraint, fields and case that meet it, fields and case that miss it).
PAIRS: list[tuple[int, str, Fields, Case, Fields, Case]] = [
    (2, "usedCoreNum <= aiCoreCnt", dict(usedCoreNum=32), {}, dict(usedCoreNum=33), {}),
    (2, "baseM * baseK * sizeof(A_type) * dbL0A <= l0a_size", dict(baseM=256), {}, dict(baseM=272), {}),
    (2, "baseM * baseK * sizeof(A_type) * dbL0A <= l0a_size", dict(baseM=512, dbL0A=1, depthA1=4), {}, dict(baseM=512, depthA1=4), {}),
    (2, "baseN * baseK * sizeof(B_type) * dbL0B <= l0b_size", dict(baseN=256), {}, dict(baseN=272), {}),
    (2, "baseM * baseN * sizeof(l0c_type) * dbL0C <= l0c_size", dict(baseM=256, dbL0C=2), {}, dict(baseM=256, baseN=144, dbL0C=2), {}),
    (2, "baseN * sizeof(Bias_type) <= biasT_size", dict(WIDE_BIAS, baseN=1024), dict(bias="fp32"), dict(WIDE_BIAS, baseN=1040), dict(bias="fp32")),
    (2, "baseN * sizeof(Bias_type) <= biasT_size", dict(WIDE_BIAS, baseN=1040), dict(bias="fp16"), dict(WIDE_BIAS, baseN=1040), dict(bias="int32")),
    (2, "stepM * stepKa * db = depthA1", dict(depthA1=4), {}, dict(depthA1=12), {}),
    (2, "stepM * stepKa * db = depthA1", dict(depthA1=8), {}, dict(depthA1=7), {}),
    (2, "stepN * stepKb * db = depthB1", dict(depthB1=4), {}, dict(depthB1=12), {}),
    (2, L1, dict(stepKa=8, depthA1=16, stepKb=8, depthB1=16), {}, dict(baseM=144, stepKa=8, depthA1=16, stepKb=8, depthB1=16), {}),
    (2, L1_BIAS, dict(baseM=112, isBias=1, stepKa=8, depthA1=16, stepKb=8, depthB1=16), dict(bias="fp32"),
     dict(isBias=1, stepKa=8, depthA1=16, stepKb=8, depthB1=16), dict(bias="fp32")),
    (2, L1, INT8_A, dict(dtype="int8", trans_b=True), INT8_A, dict(dtype="int8", trans_a=True, trans_b=True)),
    (2, L1, INT8_B, dict(dtype="int8", trans_b=True), INT8_B, dict(dtype="int8")),
    (2, "baseM % 16 = 0", dict(baseM=144), {}, dict(baseM=136), {}),
    (2, "baseN % 16 = 0", dict(baseN=144), {}, dict(baseN=136), {}),
    (2, "baseK % 16 = 0", dict(baseK=48), {}, dict(baseK=56), {}),
    (2, "baseK % 16 = 0", dict(baseK=16), dict(dtype="fp32"), dict(baseK=8), dict(dtype="fp32")),
    (2, "baseK % 16 = 0", dict(baseK=48), dict(dtype="int8", trans_a=True, trans_b=True), dict(baseK=40), dict(dtype="int8", trans_a=True, trans_b=True)),
    (2, "baseK % C0_size = 0", dict(baseK=8), dict(dtype="fp32", trans_b=True), dict(baseK=12), dict(dtype="fp32", trans_b=True)),
    (2, "baseK % C0_size = 0", dict(baseK=32), dict(trans_b=True), dict(baseK=40), dict(trans_b=True)),
    (2, "baseK % C0_size = 0", dict(baseK=96), dict(dtype="fp8_e4m3", trans_b=True), dict(baseK=80), dict(dtype="fp8_e4m3", trans_b=True)),
    (3, "Ka / baseK > stepKa: stepM = 1", dict(baseM=32, stepM=2, stepKa=16, depthA1=32), {}, dict(baseM=32, stepM=2, stepKa=15, depthA1=30), {}),
    (3, "Kb / baseK > stepKb: stepN = 1", dict(baseN=32, stepN=2, stepKb=16, depthB1=32), {}, dict(baseN=32, stepN=2, stepKb=15, depthB1=30), {}),
    (3, "kaStepIter_ % kbStepIter_ = 0 or kbStepIter_ % kaStepIter_ = 0", dict(stepKb=8, depthB1=8), {}, dict(stepKb=6, depthB1=12), {}),
]  # fmt: skip
TABLE_1_PAIRS: list[tuple[str, Fields, Case, Fields, Case]] = [
    ("usedCoreNum >= 1", dict(usedCoreNum=1), {}, dict(usedCoreNum=0), {}),
    ("usedCoreNum = (M / singleCoreM) * (N / singleCoreN)", dict(singleCoreM=300), {}, dict(singleCoreM=200), {}),
    ("singleCoreM <= M", dict(singleCoreM=1024), {}, dict(singleCoreM=1025), {}),
    ("singleCoreN <= N", dict(singleCoreN=1024), {}, dict(singleCoreN=1025), {}),
    ("singleCoreK = K", {}, {}, dict(singleCoreK=512), {}),
    ("Ka = Kb", {}, {}, dict(Kb=1008), {}),
    ("Kb % 16 = 0 (B is NZ)", {}, dict(format_b="NZ"), {}, dict(k=1000, format_b="NZ")),
    ("N % 16 = 0 (B is NZ)", {}, dict(format_b="NZ"), {}, dict(n=1000, format_b="NZ")),
    ("singleCoreN % 16 = 0 (B is NZ)", dict(singleCoreN=112), dict(format_b="NZ"), dict(singleCoreN=120), dict(format_b="NZ")),
    ("singleCoreK % 32 = 0 (B is NZ)", dict(singleCoreK=992), dict(dtype="int8", format_b="NZ"), dict(singleCoreK=1008), dict(dtype="int8", format_b="NZ")),
    ("scaleFactorKa = 1 .. 127", dict(mxTypePara=0x0101017F), {}, dict(mxTypePara=0x01010180), {}),
    ("scaleFactorN = 1 .. 127", dict(mxTypePara=0x01010101), {}, dict(mxTypePara=0x00010101), {}),
    ("baseK * stepKa * scaleFactorKa >= singleCoreK (scaleA: scaleFactorM > 1)", dict(mxTypePara=0x01020104), {}, dict(mxTypePara=0x01020103), {}),
    ("baseK % 64 = 0 (MxMatmul)", dict(mxTypePara=0x01010101, baseK=128), {}, dict(mxTypePara=0x01010101, baseK=96), {}),
    *((f"{name} > 0", {name: GOOD[name]}, {}, {name: 0}, {}) for name in (
        "M", "N", "Ka", "Kb", "singleCoreM", "singleCoreN", "singleCoreK", "baseM", "baseN", "baseK", "depthA1",
        "depthB1", "stepM", "stepN", "stepKa", "stepKb",
    )),
    *((f"{name} = 1 or 2", {name: 2}, {}, {name: 3}, {}) for name in ("dbL0A", "dbL0B", "dbL0C")),
    ("isBias = 0 or 1", dict(isBias=1), dict(bias="fp32"), dict(isBias=2), dict(bias="fp32")),
    ("iterateOrder = 0 or 1", dict(iterateOrder=1), {}, dict(iterateOrder=-1), {}),
]  # fmt: skip


def missed(fields: Fields, case: Case, tables: tuple[int, ...]) -> list[str]:
    """Constraints of the tables that a change of the good tiling breaks."""
    tiling = TCubeTiling(**{**GOOD, **fields})
    whole = make_case(**{"m": 1024, "n": 1024, "k": 1024, **case})
    return [check.name for check in tcube_violations(tiling, whole, SPEC) if check.table in tables]


def names(fields: Fields, case: Case, tables: tuple[int, ...]) -> set[str]:
    """Constraints that are checked."""
    whole = make_case(**{"m": 1024, "n": 1024, "k": 1024, **case})
    return {c.name for c in check_tcube(TCubeTiling(**{**GOOD, **fields}), whole, SPEC) if c.table in tables}


def test_the_good_tiling_meets_everything() -> None:
    assert missed({}, {}, (1, 2, 3)) == []


@pytest.mark.parametrize(("table", "name", "meets", "meets_case", "misses", "misses_case"), PAIRS)
def test_tables_2_and_3(
    table: int, name: str, meets: Fields, meets_case: Case, misses: Fields, misses_case: Case
) -> None:
    assert missed(meets, meets_case, (2, 3)) == []
    assert missed(misses, misses_case, (2, 3)) == [name]
    assert name in names(misses, misses_case, (table,))


@pytest.mark.parametrize(("name", "meets", "meets_case", "misses", "misses_case"), TABLE_1_PAIRS)
def test_table_1(name: str, meets: Fields, meets_case: Case, misses: Fields, misses_case: Case) -> None:
    assert name not in missed(meets, meets_case, (1,))
    assert name in missed(misses, misses_case, (1,))


def test_every_constraint_has_a_pair() -> None:
    """No constraint is checked without a pair here (the mirrored scale factors apart)."""
    everything = dict(mxTypePara=0x02020101, stepM=2, stepN=2, singleCoreN=112)
    checked = names(everything, {"format_b": "NZ"}, (1, 2, 3)) | names(dict(isBias=1), {"bias": "fp32"}, (1, 2, 3))
    checked |= names({}, {"trans_b": True}, (1, 2, 3))
    checked |= names(dict(singleCoreK=992), {"dtype": "int8", "format_b": "NZ"}, (1,))
    mirrored = {
        "scaleFactorKb = 1 .. 127", "scaleFactorM = 1 .. 127", "Kb % 32 = 0 (B is NZ)",
        "baseK * stepKb * scaleFactorKb >= singleCoreK (scaleB: scaleFactorN > 1)",
    }  # fmt: skip
    assert checked - mirrored == {pair[1] for pair in PAIRS} | {pair[0] for pair in TABLE_1_PAIRS}


def test_both_sides_are_shown() -> None:
    tiling = TCubeTiling(**{**GOOD, "baseM": 272})
    (check,) = tcube_violations(tiling, make_case(m=1024, n=1024, k=1024), SPEC)
    assert (check.table, check.left, check.operator, check.right) == (2, 272 * 64 * 2 * 2, "<=", 65536)
    assert check.name == "baseM * baseK * sizeof(A_type) * dbL0A <= l0a_size"


def test_the_transposed_footprint_counts_elements() -> None:
    """48 rows of a transposed 1-byte A are padded to 64 (two fractal rows of 32)."""
    case = make_case(m=1024, n=1024, k=1024, dtype="int8", trans_a=True, trans_b=True)
    checks = check_tcube(TCubeTiling(**{**GOOD, "baseM": 48}), case, SPEC)
    assert {c.name: c.left for c in checks}[L1] == 64 * 64 * 8 + 128 * 64 * 8


def test_mdl_rules_can_be_left_out() -> None:
    tiling = TCubeTiling(**{**GOOD, "stepKb": 6, "depthB1": 12})
    assert tcube_violations(tiling, make_case(m=1024, n=1024, k=1024), SPEC, mdl=False) == []


def test_fields_that_are_not_given_are_not_judged() -> None:
    checks = check_tcube(TCubeTiling(baseM=100, baseK=64), make_case(m=1024, n=1024, k=1024), SPEC)
    assert [c.name for c in checks if not c.holds] == ["baseM % 16 = 0"]
    assert not any("depth" in c.name or "L1" in c.name for c in checks)


def test_with_a_batch_the_cores_are_shared() -> None:
    case = make_case(batch_a=3, batch_b=3, m=1024, n=1024, k=1024)
    assert tcube_violations(TCubeTiling(**GOOD), case, SPEC) == []
