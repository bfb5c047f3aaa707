"""Conflicts: the named ones by hand, random ones against a listing of every plan."""

from __future__ import annotations

import random

import pytest
from listing import Listing
from random_cases import random_context

from tileproof.models.branches import BRANCH_OF
from tileproof.models.case import make_case
from tileproof.models.context import Context
from tileproof.models.pins import Pin, parse_pins
from tileproof.models.plan import BranchName
from tileproof.solver.api import make_context
from tileproof.solver.result import Conflict, Status
from tileproof.solver.search.explain import Explainer
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch

CUBE: tuple[BranchName, ...] = ("to_matmul", "iter_batch", "merge_batch", "asw_basic", "stream_k")


def conflicts(branch: BranchName, rules: str, pins: list[str], **case: object) -> list[Conflict]:
    """Conflicts of a case on the default chip."""
    ctx = make_context(make_case(**case), rules=rules)  # type: ignore[arg-type]
    return Explainer(ctx, branch, parse_pins(pins)).conflicts()


def test_a_tile_too_large_for_l0b_names_its_two_sides_and_l0b_only() -> None:
    (conflict,) = conflicts("asw_basic", "none", ["base_m=64", "base_n=512", "base_k=128"], m=64, n=512, k=128)
    assert set(conflict.rules) == {"pin.base_n", "pin.base_k", "cap.l0b"}
    by_rule = {member.rule: member for member in conflict.members}
    # 512 columns x 128 deep x 2 B against one whole L0B.
    assert (by_rule["cap.l0b"].needs, by_rule["cap.l0b"].has) == (512 * 128 * 2, 65536)
    assert by_rule["pin.base_n"].needs == 65536 // (128 * 2)
    assert by_rule["pin.base_k"].needs == 65536 // (512 * 2)


def test_only_l0b_is_blamed_when_l0a_is_filled_exactly() -> None:
    (conflict,) = conflicts("asw_basic", "none", ["base_m=128", "base_n=256", "base_k=256"], m=256, n=256, k=256)
    assert set(conflict.rules) == {"pin.base_n", "pin.base_k", "cap.l0b"}


def test_misaligned_base_k_names_the_alignment() -> None:
    (conflict,) = conflicts("asw_basic", "none", ["base_k=48"], m=64, n=128, k=200, dtype="int8")
    assert set(conflict.rules) == {"pin.base_k", "align.base_k"}


def test_two_pins_that_cannot_cover_the_matrix() -> None:
    (conflict,) = conflicts("asw_basic", "none", ["single_core_m=96", "m_cnt=2"], m=256, n=256, k=256)
    assert {"pin.single_core_m", "pin.m_cnt"} <= set(conflict.rules)
    assert all(rule.startswith(("pin.", "cover.")) for rule in conflict.rules)


@pytest.mark.parametrize("extra", [[], ["base_m=128"]])
def test_a_latency_out_of_reach_of_a_large_case_is_named_with_the_optimum(extra: list[str]) -> None:
    case: dict[str, object] = {"batch_a": 32, "batch_b": 32, "m": 4096, "n": 4096, "k": 4096}
    found = conflicts("asw_basic", "none", [*extra, "latency_us<=1000"], **case)
    assert [conflict.rules for conflict in found] == [["pin.latency_us"]]
    ctx = make_context(make_case(**case), rules="none")  # type: ignore[arg-type]
    solved = solve_branch(ctx, "asw_basic", SolveOptions(pins=parse_pins(extra)))
    assert solved.result.status is Status.OPTIMAL
    assert solved.evaluation is not None
    (member,) = found[0].members
    assert (member.needs, member.has) == (solved.evaluation.ticks, int(1000 * ctx.ticks_per_us))


@pytest.mark.parametrize("branch", CUBE)
def test_no_product_no_cube_branch(branch: BranchName) -> None:
    found = conflicts(branch, "v0.4", [], batch_a=4, batch_b=4, m=256, n=256, k=0)
    assert ["entry.k_at_least_2"] in [conflict.rules for conflict in found]


def test_31_batches_break_the_batch_per_core_rule_of_v04_only() -> None:
    (conflict,) = conflicts("iter_batch", "v0.4", [], batch_a=31, batch_b=31, m=64, n=64, k=64)
    assert conflict.rules == ["policy.iter_batches"]
    assert conflict.policy_only
    assert conflicts("iter_batch", "none", [], batch_a=31, batch_b=31, m=64, n=64, k=64) == []


def test_unequal_batches_do_not_merge() -> None:
    found = conflicts("merge_batch", "none", [], batch_a=64, batch_b=1, m=16, n=16, k=64)
    assert ["entry.equal_batch"] in [conflict.rules for conflict in found]


def test_only_the_480_kb_rule_stands_against_the_merge_of_the_v04_example() -> None:
    (conflict,) = conflicts("merge_batch", "v0.4", [], batch_a=128, batch_b=128, m=32, n=128, k=64, dtype="bf16")
    assert conflict.rules == ["policy.merge_core_bytes"]
    # Four batches a core of (32 + 128) * 64 * 2 B.
    assert (conflict.members[0].needs, conflict.members[0].has) == (4 * 160 * 64 * 2, 480 * 1024)


def test_an_operand_with_batch_cannot_stay_in_l1_for_all_blocks() -> None:
    (conflict,) = conflicts("asw_basic", "none", ["full_load=a"], batch_a=8, batch_b=8, m=64, n=64, k=64)
    assert set(conflict.rules) == {"pin.full_load", "entry.full_load_batch"}


def test_a_field_the_branch_lacks_is_the_reason() -> None:
    (conflict,) = conflicts("iter_batch", "none", ["grid_m=3"], batch_a=64, batch_b=64, m=64, n=64, k=64)
    assert conflict.rules == ["pin.grid_m"]
    assert "no grid_m" in conflict.members[0].repair


def _random_pins(rng: random.Random, name: BranchName, ctx: Context) -> tuple[Pin, ...]:
    """Pins on some decisions of the branch, often out of reach."""
    structures = BRANCH_OF[name].structures(ctx, complete=True)
    if not structures:
        return ()
    fields = {"um": ("base_m", 16), "un": ("base_n", 16), "uk": ("base_k", ctx.atom_k)}
    names = [d.name for d in rng.choice(structures).decisions if d.name not in ("step_part", "step_k")]
    pins = []
    for decision in rng.sample(names, min(len(names), rng.choice((1, 2, 3)))):
        field, atom = fields.get(decision, (decision, 1))
        value = rng.choice((1, 2, 3, 4, 5)) * atom
        operator = rng.choice(("=", "=", ">=", "<="))
        pins.append(f"{field}{operator}{value}")
    if rng.random() < 0.3:
        pins.append(f"m_cnt{rng.choice(('=', '>='))}{rng.choice((1, 2, 3))}")
    if rng.random() < 0.2:
        pins.append("base_m=base_n")
    return parse_pins(pins)


def _check_conflicts(name: BranchName, seed: int) -> bool:
    """Check every conflict of one random case; False when the case is feasible or has no formulas."""
    rng = random.Random(f"pins {name} {seed}")
    ctx = random_context(name, seed)
    pins = tuple(pin for pin in _random_pins(rng, name, ctx) if pin.field != "single_core_m")
    if any(pin.field in ("m_cnt",) for pin in pins) and name == "special":
        return False
    explainer = Explainer(ctx, name, pins)
    if any(rule in BRANCH_OF[name].facts.no_formula and not c.holds for rule, c in explainer.entry.items()):
        return False
    found = explainer.conflicts()
    listing = Listing(ctx, name, pins)
    where = f"{name} seed {seed}: {[pin.text for pin in pins]}"
    assert listing.feasible(listing.rules) == (not found), where
    for conflict in found:
        members = {"", *conflict.rules}
        assert not listing.feasible(members), f"{where}: {conflict.rules} can be obeyed together"
        for member in conflict.members:
            assert listing.feasible(members - {member.rule}), f"{where}: {member.rule} is needless in {conflict.rules}"
            least = listing.least_excess(member.rule)
            helps = explainer.relaxation(member.rule).helps
            assert (least is not None) == helps, f"{where}: {member.rule}: {member.repair}"
            if least is not None and member.needs is not None and member.has is not None:
                assert abs(member.needs - member.has) == least, f"{where}: {member.rule}: {member.repair}"
    return bool(found)


@pytest.mark.parametrize("branch", ("merge_batch", "iter_batch", "stream_k", "asw_basic"))
def test_random_conflicts_are_minimal_and_their_relaxations_exact(branch: BranchName) -> None:
    assert sum(_check_conflicts(branch, seed) for seed in range(6)) >= 1


@pytest.mark.sweep
@pytest.mark.parametrize("branch", ("merge_batch", "iter_batch", "stream_k", "asw_basic"))
def test_200_random_conflicts(branch: BranchName) -> None:
    infeasible = 0
    for seed in range(400):
        infeasible += _check_conflicts(branch, seed)
        if infeasible >= 50:
            break
    assert infeasible >= 50
