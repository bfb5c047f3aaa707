"""One formula, several interpreters: they must tell the same story about the same plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pytest
from bmm_cases import CASES
from random_cases import random_context
from sampling import draw, feasible, forms

from tileproof import BmmCase, solve
from tileproof.models.algebra import ArrayAlgebra, IntAlgebra
from tileproof.models.branches import BRANCH_OF, Branch, Structure
from tileproof.models.branches.base import Wide
from tileproof.models.context import Context
from tileproof.models.intervals import Interval, IntervalAlgebra, ReachAlgebra
from tileproof.models.plan import BRANCHES, BranchName
from tileproof.models.points import Points, evaluate_points, lower_bounds, point_values
from tileproof.solver.api import make_context
from tileproof.solver.cpsat.algebra import CpAlgebra
from tileproof.solver.cpsat.errors import RowOverflow
from tileproof.solver.cpsat.linear import Lin
from tileproof.solver.cpsat.run import Budget, Verdict, run
from tileproof.solver.search.explain import RulesAlgebra

#: Case rules without which a branch has no formulas.
_FATAL = ("entry.k", "entry.output", "entry.batch_to_fold", "entry.fold_one_side", "entry.equal_batch")
PROFILES: tuple[Any, ...] = ("v0.4", "source", "none")
SMALL, FULL = 12, 200

Found = tuple[Structure, dict[str, int]]


def applicable(ctx: Context, branch: Branch) -> bool:
    """Whether the branch has formulas for the case (policy entry rules may fail)."""
    alg = IntAlgebra()
    branch.entry(alg, ctx)
    return all(check.holds for check in alg.checks if check.rule.startswith(_FATAL))


@cache
def contexts(name: BranchName, small: int) -> tuple[Context, ...]:
    """Small random chips, and real chips, under every rules profile."""
    branch = BRANCH_OF[name]
    found = [random_context(name, seed) for seed in range(small)]
    for number, (_, owner, sizes, chip, environment) in enumerate(CASES):
        if owner == name:
            found.append(make_context(BmmCase(**sizes), chip, PROFILES[number % 3], environment))
    return tuple(ctx for ctx in found if applicable(ctx, branch))


def structures_of(ctx: Context, branch: Branch, rng: np.random.Generator, most: int = 8) -> list[Structure]:
    """A few structures: one of every form, of the complete and of the search's own space."""
    chosen = []
    for complete in (True, False):
        for listed in forms(ctx, branch, complete=complete).values():
            chosen.append(listed[int(rng.integers(len(listed)))])
    return [chosen[int(i)] for i in rng.permutation(len(chosen))[:most]]


def stages_of(outcome: Any) -> dict[str, Any]:
    """Stage values by name."""
    return dict(vars(outcome.stages))


# -- IntAlgebra and ArrayAlgebra ------------------------------------------------------------------------------------


def compare_arrays(ctx: Context, branch: Branch, structure: Structure, points: Points) -> int:
    """Check stages, counts and rules point by point; the number of points that obey all rules."""
    array = ArrayAlgebra(points.size, keep=True)
    outcome = branch.formula(array, ctx, point_values(structure, points))
    columns = {name: np.broadcast_to(value, points.size) for name, value in stages_of(outcome).items()}
    counts = {name: np.broadcast_to(outcome.count(name), points.size) for name in outcome.counts}
    total, mask = evaluate_points(ctx, branch, structure, points)
    assert np.array_equal(total, columns["total"])
    assert np.array_equal(mask, array.mask)
    obeying = 0
    for index in range(points.size):
        alg = IntAlgebra()
        single = branch.formula(alg, ctx, {**structure.constants, **points.row(index)})
        assert {name: int(column[index]) for name, column in columns.items()} == asdict(single.stages)
        assert {name: int(column[index]) for name, column in counts.items()} == {
            n: c() for n, c in single.counts.items()
        }
        truth: dict[str, bool] = {}
        for check in alg.checks:
            truth[check.rule] = truth.get(check.rule, True) and check.holds
        flags = {rule: bool(np.broadcast_to(holds, points.size)[index]) for rule, holds in array.by_rule.items()}
        within = flags.pop("", True)
        # A rule that one point makes void (no tail split, one batch in L0) is posted for arrays and then holds.
        assert {rule: flag for rule, flag in flags.items() if rule in truth} == truth
        assert all(flag for rule, flag in flags.items() if rule not in truth)
        assert bool(mask[index]) == (all(truth.values()) and within)
        obeying += all(truth.values())
    return obeying


def check_arrays(name: BranchName, small: int) -> None:
    branch = BRANCH_OF[name]
    obeying = broken = 0
    for number, ctx in enumerate(contexts(name, small)):
        rng = np.random.default_rng([1, number])
        for structure in structures_of(ctx, branch, rng):
            parts = [draw(structure, rng, 8)]
            found = feasible(ctx, branch, [structure], rng, 4)
            if found and structure.decisions:
                names = [d.name for d in structure.decisions]
                parts.append(Points.listed(names, [tuple(values[n] for n in names) for _, values in found]))
            points = Points.concat(parts) if len(parts) > 1 else parts[0]
            good = compare_arrays(ctx, branch, structure, points)
            obeying, broken = obeying + good, broken + points.size - good
    assert obeying >= 20
    assert broken >= 20


@pytest.mark.parametrize("name", BRANCHES)
def test_integers_and_arrays_agree(name: BranchName) -> None:
    check_arrays(name, SMALL)


@pytest.mark.sweep
@pytest.mark.parametrize("name", BRANCHES)
def test_integers_and_arrays_agree_sweep(name: BranchName) -> None:
    check_arrays(name, FULL)


def test_streamk_slice_shorter_than_the_l1_part() -> None:
    """A K slice of 16 with base_k = 48: rows are 32 B long however many grids are evaluated together."""
    branch = BRANCH_OF["stream_k"]
    ctx = make_context(BmmCase(m=128, n=128, k=96, trans_b=True), rules="none")
    structure = next(s for s in branch.structures(ctx, complete=True) if s.constants["l0_buffers"] == 1)
    point = dict(grid_k=6, grid_b=1, grid_m=1, grid_n=1, um=4, un=8, uk=3, step_ka=1, step_kb=1, l1_buffers=4)
    other = {**point, "grid_k": 3}
    assert (
        compare_arrays(ctx, branch, structure, Points.listed(list(point), [(*point.values(),), (*other.values(),)]))
        == 2
    )


def test_streamk_total_of_the_solver_is_that_of_the_evaluator() -> None:
    """Ended in an internal error: the model cut rows at K, the evaluator at the slice."""
    result = solve(BmmCase(m=128, n=128, k=300), rules="none", environment="resident", branches=["stream_k"])
    assert result.branches["stream_k"].status == "optimal"


# -- intervals --------------------------------------------------------------------------------------------------------


def boxes_around(
    structure: Structure, points: list[dict[str, int]], open_names: set[str], rng: np.random.Generator
) -> dict[str, Any]:
    """One box around each point: the open decisions are intervals that contain it, the others are decided."""
    values: dict[str, Any] = dict(structure.constants)
    for decision in structure.decisions:
        column = np.asarray([point[decision.name] for point in points], dtype=np.int64)
        if decision.name not in open_names:
            values[decision.name] = column
            continue
        lo = column - (rng.random(len(points)) * (column - decision.lo + 1)).astype(np.int64)
        hi = column + (rng.random(len(points)) * (decision.hi - column + 1)).astype(np.int64)
        values[decision.name] = Interval(lo, hi)
    return values


def ends(value: Any, size: int) -> tuple[Any, Any]:
    """Least and largest value of a count, one each box."""
    lo, hi = (value.lo, value.hi) if isinstance(value, Interval) else (value, value)
    return np.broadcast_to(lo, size), np.broadcast_to(hi, size)


def check_boxes(
    ctx: Context, branch: Branch, structure: Structure, points: list[dict[str, int]], values: dict[str, Any]
) -> None:
    """Every box holds its point: alive, the bound not above its total, every count inside."""
    size = len(points)
    exact = [branch.formula(IntAlgebra(), ctx, {**structure.constants, **point}) for point in points]
    bounds = IntervalAlgebra(size)
    outcome = branch.formula(bounds, ctx, values)
    assert bounds.alive.all(), (structure.constants, values)
    for stage, value in stages_of(outcome).items():
        lowest = np.broadcast_to(value, size)
        assert all(lowest[i] <= getattr(exact[i].stages, stage) for i in range(size)), (
            stage,
            structure.constants,
            values,
        )
    reach = ReachAlgebra(size)
    counted = branch.formula(reach, ctx, values)
    assert reach.alive.all(), (structure.constants, values)
    for where in (outcome, counted):
        for name in where.counts:
            lo, hi = ends(where.count(name), size)
            for i in range(size):
                assert lo[i] <= exact[i].count(name) <= hi[i], (name, structure.constants, points[i])


def check_intervals(name: BranchName, small: int) -> int:
    branch = BRANCH_OF[name]
    boxes = 0
    for number, ctx in enumerate(contexts(name, small)):
        rng = np.random.default_rng([2, number])
        for structure in structures_of(ctx, branch, rng):
            found = [values for _, values in feasible(ctx, branch, [structure], rng, 8)]
            if not found:
                continue
            names = [d.name for d in structure.decisions]
            for share in (0.0, 0.3, 0.6, 1.0):
                opened = {n for n in names if rng.random() < share}
                check_boxes(ctx, branch, structure, found, boxes_around(structure, found, opened, rng))
                boxes += len(found)
            # The way the search asks: some decisions decided, the others over their whole domain.
            decided = [n for n in names if rng.random() < 0.5]
            columns = {n: np.asarray([v[n] for v in found], dtype=np.int64) for n in decided}
            totals, _ = evaluate_points(
                ctx, branch, structure, Points.listed(names, [tuple(v[n] for n in names) for v in found])
            )
            for points in (Points(columns, len(found) if columns else 1), Points({}, 1)):
                lowest, alive = lower_bounds(ctx, branch, structure, points)
                assert alive.all()
                assert (np.broadcast_to(lowest, len(found)) <= totals).all()
    return boxes


@pytest.mark.parametrize("name", BRANCHES)
def test_intervals_contain_the_points_of_a_box(name: BranchName) -> None:
    assert check_intervals(name, SMALL) >= 100


@pytest.mark.sweep
@pytest.mark.parametrize("name", BRANCHES)
def test_intervals_contain_the_points_of_a_box_sweep(name: BranchName) -> None:
    assert check_intervals(name, FULL) >= 1000


@pytest.mark.parametrize("name", BRANCHES)
def test_intervals_of_decided_points_are_exact(name: BranchName) -> None:
    """With nothing left open the bound is the total itself (a bound of zero would pass the tests above)."""
    branch = BRANCH_OF[name]
    compared = 0
    for number, ctx in enumerate(contexts(name, SMALL)):
        rng = np.random.default_rng([3, number])
        for structure in structures_of(ctx, branch, rng, 4):
            if not structure.decisions:
                continue
            # Two points at least: a single wide box may skip the choice of the window.
            found = [values for _, values in feasible(ctx, branch, [structure], rng, 8)]
            if len(found) < 2:
                continue
            names = [d.name for d in structure.decisions]
            points = Points.listed(names, [tuple(v[n] for n in names) for v in found])
            totals, mask = evaluate_points(ctx, branch, structure, points)
            lowest, alive = lower_bounds(ctx, branch, structure, points)
            assert mask.all()
            assert alive.all()
            assert np.array_equal(lowest, totals)
            compared += points.size
    assert compared >= 20


@pytest.mark.parametrize("name", BRANCHES)
def test_decided_points_that_break_a_rule_are_not_alive(name: BranchName) -> None:
    """With everything decided ``alive`` is the truth of the rules, but for the divide rule that intervals skip."""
    branch = BRANCH_OF[name]
    dead = 0
    for number, ctx in enumerate(contexts(name, SMALL)):
        rng = np.random.default_rng([4, number])
        for structure in structures_of(ctx, branch, rng, 4):
            points = draw(structure, rng, 60)
            exact = ArrayAlgebra(points.size, keep=True)
            branch.formula(exact, ctx, point_values(structure, points))
            judged = [holds for rule, holds in exact.by_rule.items() if rule != "step.k_divide"]
            expected = np.logical_and.reduce(judged)
            for kind in (IntervalAlgebra, ReachAlgebra):
                alg = kind(points.size)
                branch.formula(alg, ctx, point_values(structure, points))
                assert (alg.alive >= exact.mask).all()
                assert (alg.alive <= expected).all()
            dead += int((~expected).sum())
    assert dead >= 20


# -- CP-SAT -----------------------------------------------------------------------------------------------------------


def posted(alg: CpAlgebra, ctx: Context, branch: Branch, structure: Structure, point: dict[str, int]) -> Any:
    """The formula over variables, every decision held at the point by a row; None when a rule is already violated."""
    values: dict[str, Lin] = {}
    for decision in structure.decisions:
        values[decision.name] = alg.variable(decision.lo, decision.hi, decision.name, decision.values)
    total = branch.formula(alg, ctx, {**structure.constants, **values}).stages.total
    for name, value in values.items():
        alg.row(value, point[name], point[name])
    return None if alg.violated else total


def solved_total(ctx: Context, branch: Branch, structure: Structure, point: dict[str, int], ceiling: int) -> int | None:
    """Least total of the model with the point fixed; None when it is infeasible."""
    alg = CpAlgebra(ceiling)
    total = posted(alg, ctx, branch, structure, point)
    if total is None or not alg.compare(total, "<=", ceiling):
        return None
    alg.model.minimize(alg.expression(total))
    verdict, solver = run(alg.model, Budget.of(20.0))
    if verdict is Verdict.INFEASIBLE:
        return None
    assert verdict is Verdict.OPTIMAL
    return alg.value(solver, total)


def check_exact(ctx: Context, branch: Branch, structure: Structure, point: dict[str, int], total: int) -> None:
    """With ``exact`` costs are bounded from above as well: the *largest* total is the total."""
    alg = CpAlgebra(4 * total, exact=True)
    expression = posted(alg, ctx, branch, structure, point)
    assert expression is not None
    alg.model.maximize(alg.expression(expression))
    verdict, solver = run(alg.model, Budget.of(20.0))
    assert verdict is Verdict.OPTIMAL
    assert alg.value(solver, expression) == total


def broken_points(
    ctx: Context, branch: Branch, structure: Structure, rng: np.random.Generator, wanted: int
) -> Iterator[dict[str, int]]:
    """Random points that break a rule (not merely a limit of the search)."""
    points = draw(structure, rng, 40)
    found = 0
    for index in range(points.size):
        alg = IntAlgebra()
        branch.formula(alg, ctx, {**structure.constants, **points.row(index)})
        if not all(check.holds for check in alg.checks):
            yield points.row(index)
            found += 1
        if found == wanted:
            return


def check_cp(name: BranchName, small: int) -> tuple[int, int, int]:
    """(feasible points compared, infeasible ones, points beyond the sound number range)."""
    branch = BRANCH_OF[name]
    good = bad = refused = 0
    for number, ctx in enumerate(contexts(name, small)):
        rng = np.random.default_rng([5, number])
        for structure in structures_of(ctx, branch, rng, 3):
            for _, point in feasible(ctx, branch, [structure], rng, 2):
                total = int(branch.formula(IntAlgebra(), ctx, {**structure.constants, **point}).stages.total)
                try:
                    assert solved_total(ctx, branch, structure, point, 2 * total) == total, (structure.constants, point)
                    assert solved_total(ctx, branch, structure, point, total) == total, (structure.constants, point)
                    assert solved_total(ctx, branch, structure, point, total - 1) is None, (structure.constants, point)
                    check_exact(ctx, branch, structure, point, total)
                except RowOverflow:
                    refused += 1
                    continue
                good += 1
            for point in broken_points(ctx, branch, structure, rng, 2):
                total = int(branch.formula(IntAlgebra(), ctx, {**structure.constants, **point}).stages.total)
                try:
                    assert solved_total(ctx, branch, structure, point, 2 * total) is None, (structure.constants, point)
                except RowOverflow:
                    refused += 1
                    continue
                bad += 1
    return good, bad, refused


@pytest.mark.parametrize("name", BRANCHES)
def test_cp_sat_agrees_with_integers(name: BranchName) -> None:
    good, bad, refused = check_cp(name, SMALL)
    assert good >= 15
    assert bad >= 10
    assert refused <= (good + bad) // 4


@pytest.mark.sweep
@pytest.mark.parametrize("name", BRANCHES)
def test_cp_sat_agrees_with_integers_sweep(name: BranchName) -> None:
    good, bad, _ = check_cp(name, FULL)
    assert good >= 100
    assert bad >= 100


def test_unused_cost_of_a_missed_window_is_no_bound() -> None:
    """The working set fits L2, so what missing it would cost must not be held below the ceiling (one window only)."""
    branch = BRANCH_OF["asw_basic"]
    ctx = make_context(BmmCase(batch_a=(2,), batch_b=(2,), m=8192, n=8192, k=40000), rules="source")
    constants = {"full_load": "none", "l0_buffers": 2, "tail_m": 1}
    structure = next(s for s in branch.structures(ctx, complete=False) if constants.items() <= s.constants.items())
    point = dict(um=2, un=3, uk=19, step_ka=3, step_kb=3, l1_buffers=2)
    total = int(branch.formula(IntAlgebra(), ctx, {**structure.constants, **point}).stages.total)
    assert solved_total(ctx, branch, structure, point, total) == total


def check_explained(name: BranchName, small: int) -> int:
    """Explain mode at fixed points: the rules whose literal cannot be true are those that the integers find broken."""
    branch = BRANCH_OF[name]
    compared = 0
    for number, ctx in enumerate(contexts(name, small)):
        rng = np.random.default_rng([6, number])
        listed = branch.structures(ctx, complete=True, wide=Wide(free=True))
        for index in rng.permutation(len(listed))[:3]:
            structure = listed[int(index)]
            points = draw(structure, rng, 4)
            kept = ArrayAlgebra(points.size, keep=True)
            branch.formula(kept, ctx, point_values(structure, points))
            searched = np.broadcast_to(kept.by_rule.get("", True), points.size)
            for row in np.flatnonzero(searched):
                point = points.row(int(row))
                alg = RulesAlgebra(explain=True, costs=False)
                posted(alg, ctx, branch, structure, point)
                assert alg.literals is not None
                alg.model.maximize(sum(alg.literals.values()))
                verdict, solver = run(alg.model, Budget.of(20.0))
                assert verdict is Verdict.OPTIMAL, (structure.constants, point)
                broken = {rule for rule, literal in alg.literals.items() if not solver.value(literal)}
                integers = IntAlgebra()
                branch.formula(integers, ctx, {**structure.constants, **point})
                expected = {check.rule for check in integers.checks if not check.holds}
                assert broken == expected, (structure.constants, point)
                compared += 1
    return compared


@pytest.mark.parametrize("name", BRANCHES)
def test_explain_mode_names_the_broken_rules(name: BranchName) -> None:
    assert check_explained(name, SMALL) >= 20


@pytest.mark.sweep
@pytest.mark.parametrize("name", BRANCHES)
def test_explain_mode_names_the_broken_rules_sweep(name: BranchName) -> None:
    assert check_explained(name, FULL) >= 200
