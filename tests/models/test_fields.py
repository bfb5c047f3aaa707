"""The table of plan fields against the plan, the branches and the order of the design."""

from __future__ import annotations

import pytest
from random_cases import random_context

from tileproof.models.branches import BRANCH_OF
from tileproof.models.context import ATOM
from tileproof.models.fields import FIELD_PREFERENCE, FIELDS, PREFERENCE, decided_value, fields_of
from tileproof.models.plan import BRANCHES, PLAN_FIELDS, BranchName, Plan
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch

#: Design section 8, after HBM bytes; L0C stands last because the search settles it by itself.
TIE_BREAK = (
    "+l0_buffers +base_k +k_l1 +l1_buffers +ub_buffers +used_core_num +base_m +base_n -step_ka -step_kb -step_m -step_n "
    "-tail_m -tail_n -iter_l1 +iter_l0 -merge_b0 -b_l1 -grid_b -grid_m -grid_n -grid_k l1_form full_load inner_branch "
    "+l0c_buffers +fixpipe_unitflag"
)


def test_every_row_is_a_plan_field() -> None:
    assert set(FIELDS) == set(PLAN_FIELDS)


def test_the_tie_break_is_that_of_the_design() -> None:
    assert " ".join(f"{'- +'[sign + 1].strip()}{name}" for name, sign in FIELD_PREFERENCE) == TIE_BREAK


@pytest.mark.parametrize("name", BRANCHES)
def test_decisions_show_in_the_fields_of_a_plan(name: BranchName) -> None:
    """Every decision is a field or a level of the tie-break; a found plan says the values that it was built from."""
    branch, levels, seen = BRANCH_OF[name], {level for level, _ in PREFERENCE}, 0
    counted = {"used", "rows", "runs"}  # their levels are the counts of the cores, and of the tile in elements
    for seed in range(12):
        ctx = random_context(name, seed)
        plan = solve_branch(ctx, name, SolveOptions(explain=False)).result.plan
        values = {} if plan is None else branch.values(ctx, plan)
        for structure in branch.structures(ctx, complete=True):
            for decision in structure.decisions:
                assert set(fields_of(decision.name)) <= set(PLAN_FIELDS), decision.name
                assert decision.name in levels | counted
                told = None if plan is None else decided_value(ctx, decision.name, plan.model_dump())
                if told is not None and decision.name in values:
                    assert told == values[decision.name], (seed, decision.name)
                    seen += 1
    assert seen


@pytest.mark.parametrize("name", BRANCHES)
def test_an_optimum_gives_every_field_that_decides_it(name: BranchName) -> None:
    """... and a plan of the deciding fields alone is the same plan."""
    branch, seen = BRANCH_OF[name], 0
    for seed in range(12):
        ctx = random_context(name, seed)
        plan = solve_branch(ctx, name, SolveOptions(explain=False)).result.plan
        if plan is None or not plan.used_core_num:
            continue
        seen += 1
        given = plan.model_dump(exclude_none=True)
        deciding = branch.deciding(given)
        assert set(deciding) <= set(given)
        alone = Plan.model_validate({field: given[field] for field in ("branch", *deciding)})
        values = branch.values(ctx, plan)
        open_ = branch.optional(given)
        assert {n: v for n, v in branch.values(ctx, alone).items() if n not in open_} == {
            n: v for n, v in values.items() if n not in open_
        }
    assert seen


def test_atoms() -> None:
    ctx = random_context("asw_basic", 0)
    assert FIELDS["base_m"].atom_of(ctx) == FIELDS["single_core_n"].atom_of(ctx) == ATOM == 16
    assert FIELDS["base_k"].atom_of(ctx) == ctx.atom_k
    assert FIELDS["step_ka"].atom_of(ctx) == 1
