"""The words for plans and results."""

from __future__ import annotations

import pytest

import tileproof
from tileproof.hardware import InputError
from tileproof.models.case import make_case
from tileproof.models.rules import RULES
from tileproof.solver.describe import BUFFER_NAMES, case_line, deciding_parameters, percent
from tileproof.solver.tables.cells import case_fields, parse_batch
from tileproof.solver.tables.tilings import plan_of_cells


def test_every_capacity_rule_has_a_name() -> None:
    assert {rule for rule in RULES if rule.startswith("cap.")} == set(BUFFER_NAMES)


def test_case_line_shows_the_stored_shapes() -> None:
    case = make_case(
        case_id="x", batch_a=(6, 1), batch_b=(1, 6), m=2, n=3, k=4, dtype="int8", trans_a=True, trans_b=True,
        bias="fp32", bias_batch=True, format_b="NZ",
    )  # fmt: skip
    assert case_line(case) == "x: [6,1,4,2]^T x [1,6,3,4]^T int8 -> int32, bias fp32 of each batch, B in NZ"


@pytest.mark.parametrize(
    ("branch", "fields", "text"),
    [
        ("special", {"ub_buffers": 2}, "32 vector cores, tile 64x96, UB x2"),
        ("asw_basic", {}, "base 64x96x128, step k 2/4, L1 x2, L0 x2, L0C x1 unit flag, 32 cores"),
        (
            "asw_basic",
            {"tail_m": 2, "tail_n": 1, "full_load": "a", "fixpipe_unitflag": 0},
            "base 64x96x128, step k 2/4, L1 x2, L0 x2, L0C x1, tail 2x1, A stays in L1, 32 cores",
        ),
        (
            "to_matmul",
            {"fold": "b", "inner_branch": "stream_k", "grid_b": 1, "grid_m": 2, "grid_n": 3, "grid_k": 4},
            "fold B, stream_k, grid (b,m,n,k) 1x2x3x4, base 64x96x128, step k 2/4, L1 x2, L0 x2, L0C x1 unit flag, "
            "32 cores",
        ),
        (
            "iter_batch",
            {"l1_form": "b", "b_core": 4, "iter_l1": 2, "iter_l0": 1, "step_m": 1, "step_n": 3},
            "form b, 4 batches a core, 2 in L1, 1 in L0, base 64x96x128, step k 2/4, m/n 1/3, L1 x2, L0 x2, "
            "L0C x1 unit flag, 32 cores",
        ),
        (
            "merge_batch",
            {"merge_b0": 2, "b_core": 4, "b_l1": 4},
            "merge 2 of 4 batches a core, 4 in L1, base 64x96x128, step k 2/4, L1 x2, L0 x2, L0C x1 unit flag, "
            "32 cores",
        ),
    ],
)
def test_deciding_parameters(branch: str, fields: dict[str, object], text: str) -> None:
    common = {
        "used_core_num": 32, "base_m": 64, "base_n": 96, "base_k": 128, "step_ka": 2, "step_kb": 4, "l1_buffers": 2,
        "l0_buffers": 2, "l0c_buffers": 1, "fixpipe_unitflag": 1,
    }  # fmt: skip
    assert deciding_parameters(tileproof.Plan.model_validate({"branch": branch, **common, **fields})) == text


@pytest.mark.parametrize(("share", "text"), [(0.0, "0 %"), (0.994, "99 %"), (0.9999, "99 %"), (1.0, "100 %")])
def test_percent_says_100_only_for_all(share: float, text: str) -> None:
    assert percent(share) == text


def test_cells_name_their_column() -> None:
    with pytest.raises(InputError) as caught:
        case_fields({"m": "1", "trans_b": "perhaps"})
    assert str(caught.value) == "column trans_b: 'perhaps' is neither yes nor no; allowed: 0, false, no, 1, true, yes"
    assert case_fields({"m": " 12 ", "bias": "none", "dtype": "Float16", "n": None}) == {
        "m": 12, "bias": None, "dtype": "fp16",
    }  # fmt: skip
    assert parse_batch("6X1") == parse_batch("6, 1") == (6, 1)


def test_a_long_cell_is_cut_in_the_message() -> None:
    with pytest.raises(InputError) as caught:
        case_fields({"m": "x" * 1000})
    assert len(str(caught.value)) < 150


def test_plan_of_cells_names_a_bad_column() -> None:
    with pytest.raises(InputError) as caught:
        plan_of_cells({"branch": "asw_basic", "base_m": "many"})
    assert caught.value.column == "base_m"
