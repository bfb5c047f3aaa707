"""Pins: their syntax, and what must hold whatever is pinned."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest
from random_cases import random_context

import tileproof
from tileproof.hardware import InputError, get_spec
from tileproof.models.branches import BRANCH_OF
from tileproof.models.case import make_case
from tileproof.models.pins import parse_pin, parse_pins
from tileproof.models.plan import BRANCHES, BranchName
from tileproof.solver.proof.enumerator import Enumerator
from tileproof.solver.result import Status
from tileproof.solver.search.branches import breaks_entry
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch
from tileproof.solver.tables.vendor_rows import read_vendor_row

SHIPPED = Path(__file__).parents[3] / "shared" / "data" / "shipped_tilings.csv"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base_q=3", "did you mean 'base_"),
        ("base_m", "is not understood"),
        ("base_m=12x", "is no number and no plan field"),
        ("l1_form=z", "l1_form is one of a, b, c, d, e, f"),
        ("l1_form>=b", "allowed is l1_form=word"),
        ("base_k=9..3", "the range is empty"),
        ("base_k=1.5", "is a whole number"),
        ("base_k=64...256", "'64...256' is no number and no plan field"),
        ("base_k=64..", "is no number and no plan field"),
        ("base_m=full_load", "is a word"),
        ("base_m=latency_us", "is a time and cannot be compared"),
        ("core_map=foo", "core_map is one of window, grid, batch, vector"),
        ("base_m>=", "is not understood"),
    ],
)
def test_a_bad_pin_is_one_clear_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tileproof.solve(make_case(m=64, n=64, k=64), rules="none", pins=[text], branches=["asw_basic"])


def test_the_forms_of_a_pin() -> None:
    assert parse_pin("base_k = 64..256").low == 64
    assert parse_pin("merge_b0>4").low == 5
    assert parse_pin("merge_b0<4").high == 3
    assert parse_pin("base_m=base_n").other == "base_n"
    assert [pin.text for pin in parse_pins({"base_m": 128, "base_k": (64, 256), "l1_form": "b"})] == [
        "base_m=128",
        "base_k=64..256",
        "l1_form=b",
    ]


@pytest.mark.parametrize("branch", BRANCHES)
def test_pinning_the_whole_optimum_returns_it(branch: BranchName) -> None:
    checked = 0
    for seed in range(12):
        ctx = random_context(branch, seed)
        free = solve_branch(ctx, branch, SolveOptions(explain=False)).result
        if free.plan is None or not ctx.batch * ctx.m * ctx.n:
            continue
        fields = {k: v for k, v in free.plan.model_dump().items() if v is not None}
        pinned = solve_branch(ctx, branch, SolveOptions(explain=False, pins=parse_pins(fields))).result
        assert (pinned.status, pinned.latency_ticks, pinned.plan) == (free.status, free.latency_ticks, free.plan), seed
        checked += 1
    assert checked


@pytest.mark.parametrize("branch", ("iter_batch", "merge_batch", "asw_basic", "stream_k"))
def test_a_pin_never_improves(branch: BranchName) -> None:
    """Free optimum <= optimum with one pin <= optimum with two; infeasible counts as worst."""
    for seed in range(12):
        rng = random.Random(f"metamorphic {branch} {seed}")
        ctx = random_context(branch, seed)
        if breaks_entry(ctx, branch):
            continue
        first = f"base_k={rng.choice(('>', '<'))}{rng.choice((16, 32, 48))}".replace("=>", ">=").replace("=<", "<=")
        second = rng.choice(("l1_buffers=1", "l0_buffers=1", "used_core_num<=2", "base_m<=16", "base_m=base_n"))
        ticks = []
        for pins in ([], [first], [first, second]):
            result = solve_branch(ctx, branch, SolveOptions(explain=False, pins=parse_pins(pins))).result
            assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
            ticks.append(result.latency_ticks if result.latency_ticks is not None else 2**62)
        assert ticks == sorted(ticks), f"{branch} seed {seed}: {first}, {second}"


@pytest.mark.parametrize("branch", ("iter_batch", "asw_basic", "stream_k"))
def test_a_least_latency_is_met_as_closely_as_the_listing_says(branch: BranchName) -> None:
    """``latency_us>=x`` asks for exact costs; the optimum is the fastest plan at or above x."""
    for seed in range(6):
        ctx = random_context(branch, seed)
        free = solve_branch(ctx, branch, SolveOptions(explain=False)).result
        if free.latency_us is None:
            continue
        pins = parse_pins([f"latency_us>={free.latency_us * 1.07}"])
        pinned = solve_branch(ctx, branch, SolveOptions(explain=False, pins=pins)).result
        from tileproof.models.pins import PinnedBranch

        best = Enumerator(ctx, PinnedBranch(BRANCH_OF[branch], pins), exhaustive=True).run().best
        assert pinned.latency_ticks == (None if best is None else best.ticks), seed


def test_a_latency_just_below_the_optimum_is_impossible_and_the_repair_is_not() -> None:
    """The repair is rounded to the side that works: 13.701454... us must read 13.702."""
    case = make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024)
    below, above = (
        tileproof.solve(case, pins=[f"latency_us<={limit}"], branches=["asw_basic"]) for limit in ("13.701", "13.702")
    )
    members = {member.rule: member for member in below.branches["asw_basic"].conflict or []}
    assert members["pin.latency_us"].repair == "latency_us would have to be at least 13.702"
    assert above.verdict == "proven"


@pytest.mark.parametrize(
    ("case", "branch", "exact", "loose"),
    [
        (dict(batch_a=8, batch_b=8, m=256, n=512, k=1024), "asw_basic", "swizzle_w=16", "swizzle_w>=16"),
        (dict(batch_a=8, batch_b=8, m=256, n=512, k=1024), "asw_basic", "swizzle_w=1", "swizzle_w<=1"),
        (dict(m=64, n=64, k=65536), "stream_k", "single_core_k=2050", "single_core_k=2050..2060"),
    ],
)
def test_a_range_that_holds_a_value_is_no_worse_than_the_value(
    case: dict[str, Any], branch: BranchName, exact: str, loose: str
) -> None:
    ticks = []
    for pin in (exact, loose):
        result = tileproof.solve(make_case(**case), rules="none", branches=[branch], pins=[pin]).branches[branch]
        assert result.status is Status.OPTIMAL
        assert result.latency_ticks is not None
        ticks.append(result.latency_ticks)
    assert ticks[1] <= ticks[0]


@pytest.mark.parametrize(
    ("case", "branch", "rules", "pins", "expected"),
    [
        (dict(m=512, n=512, k=512), "asw_basic", "v0.4", ["swizzle_w=8"], {"pin.swizzle_w", "policy.window"}),
        (dict(m=512, n=512, k=512), "asw_basic", "none", ["swizzle_w=3"], {"pin.swizzle_w", "cover.swizzle"}),
        (
            dict(m=512, n=512, k=512), "asw_basic", "none", ["swizzle_w=16", "swizzle_w=8"],
            {"pin.swizzle_w", "pin.swizzle_w#2"},
        ),
    ],
)  # fmt: skip
def test_conflicts_of_given_fields_name_the_pin(
    case: dict[str, Any], branch: BranchName, rules: Any, pins: list[str], expected: set[str]
) -> None:
    result = tileproof.solve(make_case(**case), rules=rules, branches=[branch], pins=pins).branches[branch]
    assert {member.rule for member in result.conflict or []} == expected
    assert not result.policy_only


def test_special_has_no_alignment() -> None:
    case = make_case(batch_a=8, batch_b=8, m=256, n=512, k=1)
    free = tileproof.solve(case, pins=["base_m=7"], branches=["special"])
    assert free.verdict == "proven"
    held = tileproof.solve(case, pins=["base_m=250", "base_n=512"], branches=["special"]).branches["special"]
    assert "cap.ub" in {member.rule for member in held.conflict or []}


def test_the_price_of_a_pin_is_the_difference_of_two_optima() -> None:
    case = make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024)
    free = tileproof.solve(case, rules="none")
    pinned = tileproof.solve(case, rules="none", pins=["base_m=64"])
    assert free.best is not None
    assert pinned.best is not None
    assert pinned.best.plan is not None
    assert pinned.best.plan.base_m == 64
    assert pinned.pins == ["base_m=64"]
    difference = (pinned.best.latency_us or 0) - min(b.latency_us for b in free.branches.values() if b.latency_us)
    assert pinned.price_of_pins_us == pytest.approx(difference)


def _shipped() -> list[Any]:
    if not SHIPPED.exists():
        return [pytest.param({}, marks=pytest.mark.skip(reason="../shared/data/shipped_tilings.csv is absent"))]
    with SHIPPED.open(newline="") as file:
        return [pytest.param(row, id=f"row{i}") for i, row in enumerate(csv.DictReader(file), 2)]


@pytest.mark.parametrize("row", _shipped())
def test_shipped_tilings_are_legal(row: dict[str, str]) -> None:
    """Every shipped tiling of a modelled branch obeys all hardware rules as it stands.

    Known exceptions: the 80 blocks x 2 slices of one StreamK tiling (whole blocks and slices mixed), the one-axis
    broadcast kernel of IterBatch, and multiplications with K > 1 on the vector cores.
    """
    if row["strategy"] in ("TO_MUL", "TO_MULTI_MUL") and row["k"] != "1":
        with pytest.raises(InputError, match="not modelled"):
            read_vendor_row(row)
        return
    tiling = read_vendor_row(row)
    spec = tiling.spec(get_spec("ascend950pr"))
    result = tileproof.solve(
        tiling.case, hardware=spec, rules="none", branches=[tiling.branch], pins=tiling.pins
    ).branches[tiling.branch]
    rules = {member.rule for member in result.conflict or []}
    if (row["m"], row["n"], row["k"]) == ("4096", "1280", "8192"):
        assert "cover.grid" in rules
    elif row["strategy"].startswith("ITER_BATCH_BROADCAST"):
        assert "entry.equal_batch" in rules
    else:
        assert result.status is Status.OPTIMAL, rules
        assert result.plan is not None
        for field, value in tiling.fixed.items():
            assert getattr(result.plan, field) == value
