"""Two models on which OR-Tools 9.15 proves a wrong optimum: our guards against both, and the news when they are cured."""

from __future__ import annotations

from typing import Any

import pytest
from ortools.sat.python import cp_model

from tileproof.solver.cpsat.algebra import LIMIT, CpAlgebra
from tileproof.solver.cpsat.errors import RowOverflow
from tileproof.solver.cpsat.run import PROFILE, Budget, Verdict, run

_CURED = "this wheel solves the canary right"


def best(model: cp_model.CpModel, **parameters: Any) -> int:
    """Objective that OR-Tools calls optimal; one worker, because a portfolio is wrong only now and then."""
    solver = cp_model.CpSolver()
    for name, value in {"max_time_in_seconds": 30.0, "num_workers": 1, **parameters}.items():
        setattr(solver.parameters, name, value)
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


# -- an enforced row with Boolean coefficients that add up past 2^31 loses its literal (or-tools #5293) ---------------


def enforced_row() -> cp_model.CpModel:
    """Optimum -1000 at a = 1, b = e = 0, t = 0."""
    model = cp_model.CpModel()
    a, b, e = (model.new_bool_var(name) for name in "abe")
    t = model.new_int_var(0, 10**11, "t")
    model.add_at_most_one(a, b)
    model.add(3_000_000_000 * a - 1_000_000_000 * b - t <= -2_862_674_903).only_enforce_if(e)
    model.minimize(t - 1000 * a - 1000 * e)
    return model


def test_enforced_row_by_hand() -> None:
    """The optimum, worked out without a solver: e = 1 costs at least 2862674903 - 10^9 ticks of t."""
    values = []
    for a, b, e in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1)):
        least_t = max(0, 3_000_000_000 * a - 1_000_000_000 * b + 2_862_674_903) if e else 0
        values.append(least_t - 1000 * a - 1000 * e)
    assert min(values) == -1000


def test_our_profile_solves_the_enforced_row() -> None:
    assert best(enforced_row(), **PROFILE) == -1000
    model = enforced_row()
    verdict, solver = run(model, Budget.of(30.0))
    assert verdict is Verdict.OPTIMAL
    assert round(solver.objective_value) == -1000


def test_the_default_profile_is_still_wrong() -> None:
    if best(enforced_row()) == -1000:
        pytest.fail(f"{_CURED}: presolve_inclusion_work_limit = 0 in solver/cpsat/run.py may be dropped")


def test_the_work_limit_alone_is_what_cures_it() -> None:
    """Without it the profile of record would be wrong: the parameter is in the profile for this reason."""
    without = {name: value for name, value in PROFILE.items() if name != "presolve_inclusion_work_limit"}
    if best(enforced_row(), **without) == -1000:
        pytest.fail(f"{_CURED} without presolve_inclusion_work_limit = 0")


# -- a row in which coefficient times the bound of another variable passes 2^63 ---------------------------------------

_T2_BOUND = 2**46
_COEFFICIENT = 414720


def ten_rows() -> cp_model.CpModel:
    """Optimum 0: c holds, x = y = 1, T2 = 207360, and T is bound to T2 only by a."""
    model = cp_model.CpModel()
    a, b, c = (model.new_bool_var(name) for name in "abc")
    total, t2 = model.new_int_var(0, 2**32, "T"), model.new_int_var(0, _T2_BOUND, "T2")
    u, p = model.new_int_var(2, 24, "u"), model.new_int_var(0, 24 * _T2_BOUND, "p")
    big = model.new_int_var(9091, 9091, "X")
    x, y, o = model.new_int_var(1, 9, "x"), model.new_int_var(1, 16, "y"), model.new_int_var(1, 1, "o")
    xy, z = model.new_int_var(1, 144, "xy"), model.new_int_var(0, 256, "z")
    model.add_exactly_one(a, b, c)
    model.add_multiplication_equality(xy, [x, y])
    model.add_multiplication_equality(z, [xy, o])
    model.add_multiplication_equality(p, [t2, u])
    model.add(p >= 24 * big)
    model.add(t2 >= _COEFFICIENT * z).only_enforce_if(b)
    model.add(t2 >= 207360 * z).only_enforce_if(c)
    model.add(total >= t2 + 5_497_856).only_enforce_if(a)
    model.minimize(total)
    return model


def fixed(model: cp_model.CpModel, **values: int) -> cp_model.CpModel:
    """The same model with some variables at a value."""
    clone = model.clone()
    for index, variable in enumerate(clone.proto.variables):
        if variable.name in values:
            clone.add(clone.get_int_var_from_proto_index(index) == values[variable.name])
    return clone


OPTIMAL_POINT = {
    "a": 0,
    "b": 0,
    "c": 1,
    "x": 1,
    "y": 1,
    "xy": 1,
    "z": 1,
    "u": 24,
    "T2": 207360,
    "p": 24 * 207360,
    "T": 0,
}


def test_zero_is_reached() -> None:
    """The point with T = 0 obeys every row: by hand, and as OR-Tools sees it with everything fixed."""
    v = OPTIMAL_POINT
    assert v["a"] + v["b"] + v["c"] == 1
    assert (v["xy"], v["z"], v["p"]) == (v["x"] * v["y"], v["xy"], v["T2"] * v["u"])
    assert v["p"] >= 24 * 9091
    assert v["T2"] >= 207360 * v["z"]
    assert v["T2"] <= _T2_BOUND
    assert best(fixed(ten_rows(), **v)) == 0


@pytest.mark.parametrize(
    "parameters", [{}, dict(PROFILE), {"cp_model_presolve": False}], ids=["default", "ours", "no_presolve"]
)
def test_or_tools_still_overflows(parameters: dict[str, Any]) -> None:
    """No parameter helps; the guard of ``CpAlgebra.row`` is the only protection."""
    if best(ten_rows(), **parameters) == 0:
        pytest.fail(f"{_CURED}: the row guard of solver/cpsat/algebra.py may be relaxed")


def test_the_guard_refuses_the_row() -> None:
    alg = CpAlgebra()
    t2, z = alg.variable(0, _T2_BOUND, "T2"), alg.variable(0, 256, "z")
    literal = alg.model.new_bool_var("b")
    with pytest.raises(RowOverflow):
        alg.row(t2 - z * _COEFFICIENT, 0, None, [literal])
    with pytest.raises(RowOverflow):
        alg.rule("cap.l1", t2, ">=", z * _COEFFICIENT)
    assert not list(alg.model.proto.constraints)


@pytest.mark.parametrize(("bound", "refused"), [(2**43 - 1, False), (2**43, True)])
def test_the_guard_stands_at_two_to_the_62(bound: int, refused: bool) -> None:
    """2^19 times the bound of the *other* variable: below 2^62 the row is posted, from there on refused."""
    assert LIMIT == 2**62
    alg = CpAlgebra()
    x, y = alg.variable(0, bound, "x"), alg.variable(0, 1, "y")
    row = x - y * 2**19
    if refused:
        with pytest.raises(RowOverflow):
            alg.row(row, 0, None)
    else:
        alg.row(row, 0, None)
        assert len(alg.model.proto.constraints) == 1
        assert alg.widest_row < LIMIT
