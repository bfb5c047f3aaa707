"""Exports of msprof: what is read, what is left out, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from measured_runs import export_rows, synthetic_rows, write_rows

from tileproof.hardware import InputError, get_spec
from tileproof.solver.measure.predict import prepare
from tileproof.solver.measure.rows import read_runs

SPEC = get_spec("ascend950pr")
Task = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> list[Task]:
    return synthetic_rows(SPEC, 1, counters=True)[:6]


def read(tmp_path: Path, tasks: list[Task], notes: list[str] | None = None) -> Any:
    return read_runs(write_rows(tmp_path / "op_summary_0.csv", tasks), None if notes is None else notes.append)


def renamed(tasks: list[Task], old: str, new: str | None, scale: float = 1.0) -> list[Task]:
    """Tasks with a column renamed (or dropped), its numbers scaled."""
    result = []
    for task in tasks:
        one = {}
        for name, value in task.items():
            if name != old:
                one[name] = value
            elif new is not None:
                one[new] = value if value == "N/A" or scale == 1.0 else str(float(value) * scale)
        result.append(one)
    return result


def test_matmul_tasks_are_read_back(tmp_path: Path, rows: list[Task]) -> None:
    found = read(tmp_path, export_rows(rows))
    assert [run.op for run in found] == [row["case_id"] for row in rows]
    for run, row in zip(found, rows, strict=True):
        assert run.latency_us == pytest.approx(row["latency_us"], abs=1e-4)
        assert run.counters["mte2_us"] == pytest.approx(row["mte2_us"], abs=1e-3)
        assert run.cores == row["used_core_num"]
        case = prepare(run, SPEC).case
        assert case is not None
        assert (case.batch, case.m, case.n, case.k) == (row["b"], row["m"], row["n"], row["k"])
        assert case.dtype == "fp16"
        square = row["n"] == row["k"]
        assert case.trans_b or square  # a square B does not tell, and is taken as it is stored


def test_nanoseconds_are_converted(tmp_path: Path, rows: list[Task]) -> None:
    plain = read(tmp_path, export_rows(rows))
    tasks = renamed(export_rows(rows), "Task Duration(us)", "Task Duration(ns)", 1000)
    tasks = renamed(tasks, "aic_mac_time(us)", "aic_mac_time(ns)", 1000)
    for one, two in zip(plain, read(tmp_path, tasks), strict=True):
        assert two.latency_us == pytest.approx(one.latency_us)
        assert two.counters["mac_us"] == pytest.approx(one.counters["mac_us"])


def test_other_spellings(tmp_path: Path, rows: list[Task]) -> None:
    tasks = export_rows(rows)
    for old, new in (
        ("Op Name", "Name"), ("OP Type", "Type"), ("Task Duration(us)", "Duration(us)"), ("Block Dim", "Block Num"),
        ("Task Type", "Accelerator Core"), ("aic_mac_time(us)", "aic_cube_time(us)"),
        ("aic_fixpipe_time(us)", "aic_fixp_time(us)"),
    ):  # fmt: skip
        tasks = renamed(tasks, old, new)
    found = read(tmp_path, tasks)
    assert len(found) == len(rows)
    assert set(found[0].counters) == {"mac_us", "mte1_us", "mte2_us", "fixpipe_us"}


def test_missing_counters_are_no_counters(tmp_path: Path, rows: list[Task]) -> None:
    tasks = renamed(export_rows(rows), "aic_mte1_time(us)", None)
    assert set(read(tmp_path, tasks)[0].counters) == {"mac_us", "mte2_us", "fixpipe_us"}


@pytest.mark.parametrize("column", ["OP Type", "Task Duration(us)", "Input Shapes", "Input Data Types"])
def test_missing_columns_are_refused(tmp_path: Path, rows: list[Task], column: str) -> None:
    with pytest.raises(InputError, match=r"column .* is missing"):
        read(tmp_path, renamed(export_rows(rows), column, None))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("Task Duration(us)", "0.000", "row 3, column Task Duration(us): the duration of run1 is 0.000"),
        ("Task Duration(us)", "N/A", "row 3, column Task Duration(us): the duration of run1 is empty"),
        ("Task Duration(us)", "-3", "row 3, column Task Duration(us): is '-3'"),
        ("aic_mte2_time(us)", "nan", "row 3, column aic_mte2_time(us): is 'nan'"),
        ("Input Shapes", "8,64,32;8,48,96", "row 3, column Input Shapes: run1: shapes 8x64x32 and 8x48x96 share no K"),
        ("Input Shapes", "8,64", "needs two inputs"),
    ],
)
def test_bad_cells_are_refused(tmp_path: Path, rows: list[Task], column: str, value: str, message: str) -> None:
    tasks = export_rows(rows)[2:]  # without the first matmul
    tasks = [export_rows(rows)[0], {**tasks[0], column: value, "Output Shapes": "N/A"}, *tasks[1:]]
    with pytest.raises(InputError) as caught:
        read(tmp_path, tasks)
    assert message in str(caught.value)


def test_a_time_without_unit_is_refused(tmp_path: Path, rows: list[Task]) -> None:
    with pytest.raises(InputError, match=r"column Task Duration: has no unit"):
        read(tmp_path, renamed(export_rows(rows), "Task Duration(us)", "Task Duration"))


def test_merged_and_split_vector_work(tmp_path: Path, rows: list[Task]) -> None:
    tasks = export_rows(rows)
    half = {**tasks[1], "Task Type": "AI_VECTOR_CORE", "Task Duration(us)": "1.0"}  # the other half of the first matmul
    mixed = {**tasks[2], "Task Type": "MIX_AIC", "aiv_time(us)": "9.5"}
    idle = {**tasks[3], "Task Type": "MIX_AIC", "aiv_time(us)": "0.001"}
    notes: list[str] = []
    found = read(tmp_path, [tasks[0], tasks[1], half, mixed, idle, *tasks[4:]], notes)
    assert [run.op for run in found] == ["run0", "run2", "run3", "run4", "run5"]
    assert len(notes) == 2
    assert "row 4: run0 is left out: it is the vector half of a task that has a Cube row" in notes[0]
    assert "row 5: run1 is left out: the vector cores worked 9.5 us" in notes[1]


def test_what_the_model_does_not_have_is_left_out(tmp_path: Path, rows: list[Task]) -> None:
    tasks = export_rows(rows)
    notes: list[str] = []
    complex_type = {**tasks[1], "Input Data Types": "COMPLEX64;COMPLEX64"}
    fractal = {**tasks[2], "Input Formats": "ND;FRACTAL_NZ"}
    found = read(tmp_path, [complex_type, fractal, tasks[3]], notes)
    assert [run.op for run in found] == ["run2"]
    assert "type COMPLEX64 is not modelled" in notes[0]
    assert "FRACTAL_NZ" in notes[1]
    with pytest.raises(InputError, match=r"no matmul task to use.*; its 1 matmul tasks were all left out"):
        read(tmp_path, [complex_type], [])
    with pytest.raises(InputError, match="no matmul task to use"):
        read(tmp_path, [tasks[0]], [])


def test_layouts_and_types_from_the_shapes(tmp_path: Path, rows: list[Task]) -> None:
    base = export_rows(rows)[1]
    tasks = [
        {**base, "Input Shapes": "64,32;64,128", "Output Shapes": "32,128"},
        {**base, "Input Shapes": "2,3,32,64;1,64,128;128", "Input Data Types": "FLOAT;FLOAT;FLOAT",
         "Output Shapes": "2,3,32,128", "Output Data Types": "FLOAT", "HF32 Eligible": "YES"},
    ]  # fmt: skip
    one, two = (prepare(run, SPEC).case for run in read(tmp_path, tasks))
    assert one is not None
    assert two is not None
    assert (one.trans_a, one.trans_b, one.m, one.n, one.k) == (True, False, 32, 128, 64)
    assert (two.batch_a, two.batch_b, two.dtype, two.bias) == ((2, 3), (1,), "hf32", "fp32")
