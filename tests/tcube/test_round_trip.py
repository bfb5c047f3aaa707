"""Plan -> TCubeTiling -> JSON or C -> plan is the identity, and what a bare or an edited struct is read as."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import random_context
from sampling import feasible, forms

import tileproof
from tileproof.hardware import InputError, get_spec
from tileproof.models.branches import BRANCH_OF
from tileproof.models.case import BmmCase, make_case
from tileproof.models.evaluation import evaluate_plan, evaluate_values
from tileproof.models.plan import BranchName, Plan
from tileproof.solver.api import make_context
from tileproof.solver.search.solve_branch import SolveOptions
from tileproof.solver.tables.frames import read_cases
from tileproof.solver.tcube import (
    TCubeTiling,
    case_of_tcube,
    import_notes,
    plan_to_tcube,
    read_tcube_text,
    read_words,
    tcube_c,
    tcube_json,
    tcube_to_fields,
    tcube_violations,
    write_words,
)
from tileproof.solver.tcube.struct import FIELDS, INT32, TABLE_1

SPEC = get_spec("ascend950pr")
SIZES = Path(__file__).parent.parent / "data" / "bmm_sizes.csv"
CUBE: tuple[BranchName, ...] = ("to_matmul", "iter_batch", "merge_batch", "asw_basic", "stream_k")


def check_round_trip(case: BmmCase, plan: Plan, spec: tileproof.NpuSpec = SPEC) -> None:
    """JSON, C and, where they can express the plan, words."""
    tiling = plan_to_tcube(case, plan, spec)
    assert set(TABLE_1) <= tiling.given
    for text in (tcube_json(tiling), tcube_c(tiling)):
        (back,) = read_tcube_text(text)
        assert back == tiling
        assert case_of_tcube(back) == case
        branch, fields = tcube_to_fields(back)
        assert branch == plan.branch
        assert Plan.model_validate(fields) == plan
    # The model takes any size of an NZ operand: its storage is padded.
    assert [check for check in tcube_violations(tiling, case, spec) if "(B is NZ)" not in check.name] == []
    assert read_words(tiling.words()).tiling.words() == tiling.words()  # type: ignore[union-attr]
    try:
        words = write_words(case, plan, spec)
    except InputError:
        return
    key = {"a": 0x10002, "b": 0x20002}.get(plan.full_load or "")  # the words do not tell a full load
    branch, fields = read_words(words, tiling_key=key).fields(case)
    assert {**plan.model_dump(), **fields} == plan.model_dump()


@pytest.mark.parametrize("branch", CUBE)
def test_random_plans(branch: BranchName) -> None:
    found = 0
    for seed in range(12):
        ctx = random_context(branch, seed)
        rng = np.random.default_rng(seed)
        for structures in forms(ctx, BRANCH_OF[branch]).values():
            for structure, point in feasible(ctx, BRANCH_OF[branch], structures[:6], rng, 2, tries=300):
                values = {**structure.constants, **point}
                plan = evaluate_values(ctx, BRANCH_OF[branch], values).plan
                check_round_trip(ctx.case, plan, ctx.spec)
                found += 1
    assert found >= 10


@pytest.mark.parametrize(("rules", "count"), [("v0.4", 10), ("source", 5), ("none", 10)])
def test_best_plans_of_real_sizes(rules: str, count: int) -> None:
    rows = [row.case for row in read_cases(SIZES) if row.case is not None]
    written = 0
    for case in random.Random(f"tcube {rules}").sample(rows, count):
        result = tileproof.solve(case, rules=rules, options=SolveOptions(tie_break=False))  # type: ignore[arg-type]
        for branch in result.branches.values():
            if branch.plan is not None and branch.plan.branch != "special":
                check_round_trip(case, branch.plan)
                written += 1
    assert written >= count // 2


VALUES = st.integers(*INT32)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1))
@settings(max_examples=60, deadline=None)
def test_any_struct_survives_its_text(fields: dict[str, int]) -> None:
    tiling = TCubeTiling(**fields)
    for text in (tcube_json(tiling), tcube_c(tiling)):
        (back,) = read_tcube_text(text)
        assert back.values() == tiling.values()


@pytest.mark.parametrize("name", ['a "quoted" name', "*/ // \\", "line\nbreak", "ünïcode 名", "??/", "};"])
def test_names_survive_the_comment_line(name: str) -> None:
    case = make_case(case_id=name, batch_a=8, batch_b=8, m=256, n=256, k=256)
    plan = solved_plan(case)
    (back,) = read_tcube_text(tcube_c(plan_to_tcube(case, plan, SPEC)))
    assert case_of_tcube(back).case_id == name


def solved_plan(case: BmmCase, branch: BranchName = "asw_basic") -> Plan:
    """Best plan of a branch under ``none``."""
    plan = tileproof.solve(case, rules="none", branches=(branch,)).branches[branch].plan
    assert plan is not None
    return plan


# -- bare structs
BARE = dict(
    usedCoreNum=32, M=1024, N=2048, Ka=512, Kb=512, singleCoreM=256, singleCoreN=256, singleCoreK=512, baseM=128,
    baseN=256, baseK=64, depthA1=8, depthB1=8, stepM=1, stepN=1, stepKa=4, stepKb=4, isBias=0, dbL0A=2, dbL0B=2, dbL0C=1,
)  # fmt: skip
CASE = make_case(m=1024, n=2048, k=512)


def test_a_bare_struct_is_asw_basic() -> None:
    branch, fields = tcube_to_fields(TCubeTiling(**BARE), CASE)
    assert branch == "asw_basic"
    assert fields == dict(
        branch="asw_basic", base_m=128, base_n=256, base_k=64, step_ka=4, step_kb=4, l0_buffers=2, l0c_buffers=1,
        l1_buffers=2, full_load="none",
    )  # fmt: skip
    assert case_of_tcube(TCubeTiling(**BARE)) == CASE


def test_a_bare_struct_can_be_of_another_branch() -> None:
    tiling = TCubeTiling(**{**BARE, "singleCoreK": 128})
    branch, fields = tcube_to_fields(tiling, CASE, "stream_k")
    assert branch == fields["branch"] == "stream_k"
    assert (fields["single_core_k"], fields["grid_k"]) == (128, 4)


def test_what_is_not_given_stays_open() -> None:
    assert tcube_to_fields(TCubeTiling(baseM=64), CASE) == ("asw_basic", {"branch": "asw_basic", "base_m": 64})
    _, fields = tcube_to_fields(TCubeTiling(depthA1=8, stepM=1, stepKa=3), CASE)  # 8 is no multiple of 3
    assert "l1_buffers" not in fields


def test_an_operand_in_one_buffer_is_resident() -> None:
    tiling = TCubeTiling(**{**BARE, "M": 200, "baseM": 208, "stepKa": 8, "depthA1": 8})
    _, fields = tcube_to_fields(tiling, make_case(m=200, n=2048, k=512))
    assert (fields["full_load"], fields["l1_buffers"], fields.get("step_ka")) == ("a", 2, None)


def test_a_folded_size_is_to_matmul() -> None:
    case = make_case(batch_a=4, batch_b=1, m=256, n=2048, k=512)
    branch, fields = tcube_to_fields(TCubeTiling(**BARE), case)
    assert (branch, fields["inner_branch"], fields["fold"]) == ("to_matmul", "asw_basic", "a")


def test_notes_say_what_is_not_followed() -> None:
    assert import_notes(TCubeTiling(**{**BARE, "singleCoreM": 128}), CASE) == []
    odd = TCubeTiling(**{**BARE, "dbL0A": 1, "depthA1": 4, "iterateOrder": 1, "stepN": 2, "depthB1": 16})
    notes = " / ".join(import_notes(odd, CASE))
    for part in (
        "dbL0A = 1 and dbL0B = 2",
        "A1 has 1 buffers and B1 2",
        "stepN = 2",
        "singleCoreM = 256",
        "iterateOrder",
    ):
        assert part in notes


@pytest.mark.parametrize(
    ("change", "column"), [({"M": 1000}, "M"), ({"Kb": 500}, "Kb"), ({"isBias": 1}, "isBias"), ({"N": 4096}, "N")]
)
def test_a_struct_for_another_case_is_refused(change: dict[str, int], column: str) -> None:
    with pytest.raises(InputError) as caught:
        tcube_to_fields(TCubeTiling(**{**BARE, **change}), CASE)
    assert caught.value.column == column


def test_a_bare_struct_without_sizes_needs_a_case() -> None:
    with pytest.raises(InputError, match="is missing") as caught:
        tcube_to_fields(TCubeTiling(baseM=64))
    assert caught.value.column == "M"


# -- edited structs
def test_an_edited_struct_wins_over_the_plan_it_carries() -> None:
    case = make_case(batch_a=8, batch_b=8, m=512, n=512, k=512)
    plan = solved_plan(case)
    tiling = plan_to_tcube(case, plan, SPEC).with_fields(baseM=64)
    branch, fields = tcube_to_fields(tiling)
    assert branch == "asw_basic"
    assert fields["base_m"] == 64
    assert not {"m_cnt", "used_core_num", "depth_a1", "single_core_m"} & set(fields)  # follow from the others
    evaluation = evaluate_plan(make_context(case, rules="none"), Plan.model_validate(fields))
    assert evaluation.feasible
    assert evaluation.plan.m_cnt == 8


def test_an_edited_depth_changes_the_buffers() -> None:
    case = make_case(batch_a=8, batch_b=8, m=512, n=512, k=512)
    tiling = plan_to_tcube(case, solved_plan(case), SPEC)
    steps_a, steps_b = tiling.stepM * tiling.stepKa, tiling.stepN * tiling.stepKb
    _, fields = tcube_to_fields(tiling.with_fields(depthA1=steps_a, depthB1=steps_b))
    assert fields["l1_buffers"] == 1


@pytest.mark.parametrize("branch", ["iter_batch", "merge_batch", "stream_k"])
def test_edited_plans_of_other_branches_are_complete(branch: BranchName) -> None:
    sizes = {"iter_batch": (64, 64, 64), "merge_batch": (256, 16, 64), "stream_k": (1, 64, 8192)}
    batch, extent, k = sizes[branch]
    case = make_case(batch_a=batch, batch_b=batch, m=extent, n=extent, k=k)
    plan = solved_plan(case, branch)
    double = 2 if plan.l0c_buffers == 1 else 1
    _, fields = tcube_to_fields(plan_to_tcube(case, plan, SPEC).with_fields(dbL0C=double))
    evaluation = evaluate_plan(make_context(case, rules="none"), Plan.model_validate(fields))
    assert evaluation.plan.l0c_buffers == double
    assert evaluation.plan.base_m == plan.base_m


def test_a_wrong_plan_inside_is_named() -> None:
    case = make_case(m=512, n=512, k=512)
    text = tcube_json(plan_to_tcube(case, solved_plan(case), SPEC)).replace('"branch": "asw_basic"', '"branch": "asw"')
    with pytest.raises(InputError) as caught:
        tcube_to_fields(read_tcube_text(text)[0])
    assert caught.value.column == "tileproof.plan.branch"


def test_special_has_no_struct() -> None:
    case = make_case(m=64, n=64, k=1)
    with pytest.raises(InputError, match="vector cores"):
        plan_to_tcube(case, solved_plan(case, "special"), SPEC)


def test_numbers_beyond_int32_are_refused() -> None:
    case = make_case(batch_a=4, batch_b=1, m=2**30, n=16, k=16)
    plan = Plan(branch="to_matmul", inner_branch="asw_basic", fold="a")
    with pytest.raises(InputError, match="int32") as caught:
        plan_to_tcube(case, plan, SPEC)
    assert caught.value.column == "M"
