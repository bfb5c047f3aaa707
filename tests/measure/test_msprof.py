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
    ("column", "value", "reason"),
    [
        ("Task Duration(us)", "0.000", "its Task Duration(us) is 0 (row 3)"),
        ("Task Duration(us)", "N/A", "its Task Duration(us) is missing (row 3)"),
        ("Task Duration(us)", "-3", "its Task Duration(us) is no time of 0 or more (row 3: '-3')"),
        ("aic_mte2_time(us)", "nan", "its aic_mte2_time(us) is no time of 0 or more (row 3: 'nan')"),
        ("Input Shapes", "8,64,32;8,48,96", "its shapes share no K (row 3: 8x64x32 and 8x48x96)"),
        ("Input Shapes", "8,64", "it does not have two inputs of two or more dims (row 3: '8,64')"),
        ("Input Shapes", "N/A", "its Input Shapes are missing (row 3)"),
        ("Input Shapes", "8,x;8,4", "its Input Shapes are no shapes (row 3: '8,x;8,4')"),
        ("Input Shapes", "[8,4];[4,8]tail", "its Input Shapes are no shapes (row 3: '[8,4];[4,8]tail')"),
        ("Input Shapes", "-1,64;64,32", "an extent is not above 0 (row 3: -1x64 and 64x32)"),
        (
            "Input Shapes",
            "2,8,64;3,64,32",
            "its shapes or types are no case (row 3: batch_a 2 and batch_b 3 do not broadcast",
        ),
        ("Input Shapes", "8,64;64,32;8,32", "its third input is no bias of N elements (row 3: 8x32, N is 32)"),
        ("Input Data Types", "FLOAT16;FLOAT", "its two inputs differ in type (row 3: FLOAT16 and FLOAT)"),
        ("Input Data Types", "COMPLEX64;COMPLEX64", "type COMPLEX64 is not modelled (row 3)"),
        ("Input Data Types", "FLOAT16", "a type is missing (row 3)"),
        ("Input Formats", "ND;FRACTAL_NZ", "an operand is in FRACTAL_NZ, whose true extents the export does not tell"),
        ("Task Type", "AI_CPU", "it ran on AI_CPU, not on a Cube core (row 3)"),
        ("Task Type", "AI_VECTOR_CORE", "it ran on vector cores alone (row 3)"),
    ],
)
def test_a_bad_row_is_left_out_and_not_the_file(
    tmp_path: Path, rows: list[Task], column: str, value: str, reason: str
) -> None:
    tasks = export_rows(rows)
    bad = {**tasks[2], column: value, "Output Shapes": "N/A"}
    notes: list[str] = []
    found = read(tmp_path, [tasks[0], bad, *tasks[3:]], notes)
    assert [run.op for run in found] == ["run2", "run3", "run4", "run5"]
    assert notes[0].startswith(f"{tmp_path / 'op_summary_0.csv'}: BatchMatMulV3: 1 row is left out, because {reason}")
    with pytest.raises(InputError, match=r"no matmul task to use .*; its 1 matmul tasks were all left out"):
        read(tmp_path, [tasks[0], bad], notes)


def test_a_row_of_another_length_is_left_out(tmp_path: Path, rows: list[Task]) -> None:
    file = write_rows(tmp_path / "op_summary_0.csv", export_rows(rows))
    lines = file.read_text().splitlines()
    width = len(export_rows(rows)[0])
    file.write_text("\n".join([*lines[:3], lines[3] + ",7", ",".join(lines[4].split(",")[:8])]))
    notes: list[str] = []
    assert [run.op for run in read_runs(file, notes.append)] == ["run0"]
    assert f"(row 4: {width + 1} cells instead of {width}; row 5: 8 cells instead of {width})" in notes[0]


#: Operators of ops-nn and ops-transformer, and what the note says about them.
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("MatmulAllReduce", "it communicates between chips in the same task"),
        ("MatmulReduceScatterV2", "it communicates between chips in the same task"),
        ("MatMulAllReduceAddRmsNorm", "it communicates between chips in the same task"),
        ("AllGatherMatmul", "it communicates between chips in the same task"),
        ("AlltoAllAllGatherBatchMatMul", "it communicates between chips in the same task"),
        ("TransposeBatchMatMul", "it permutes its operands in the same task"),
        ("QuantBatchMatmulV3", "it scales quantised operands in the same task"),
        ("WeightQuantBatchMatmulV2", "it scales quantised operands in the same task"),
        ("GroupedMatmul", "it multiplies groups of sizes of their own"),
        ("MatMulV3Custom", "it is another operator than MatMul, MatMulV2, MatMulV3"),
        ("SparseMatMul", "it is another operator than MatMul, MatMulV2, MatMulV3"),
    ],
)
def test_relatives_of_matmul_are_counted_and_not_read(tmp_path: Path, rows: list[Task], kind: str, reason: str) -> None:
    tasks = export_rows(rows)
    notes: list[str] = []
    found = read(tmp_path, [tasks[1], *[{**tasks[2], "OP Type": kind}] * 5], notes)
    assert [run.op for run in found] == ["run0"]
    assert len(notes) == 2
    assert f": {kind}: 5 rows are left out, because {reason}" in notes[0]
    assert notes[0].endswith("(row 3; row 4; row 5; and 2 more)")
    assert notes[1].endswith(": 1 of 6 rows are used")


@pytest.mark.parametrize(
    "kind", ["MatMul", "Matmul", "MatMulV2", "MATMULV3", "BatchMatMul", "BatchMatmulV2", "BatchMatMulV3", "Mat_Mul"]
)
def test_plain_matmuls_are_read_by_their_whole_name(tmp_path: Path, rows: list[Task], kind: str) -> None:
    notes: list[str] = []
    (found,) = read(tmp_path, [{**export_rows(rows)[1], "OP Type": kind}], notes)
    assert found.op == "run0"
    assert notes == []


def test_every_row_is_used_or_counted(tmp_path: Path, rows: list[Task]) -> None:
    tasks = export_rows(rows)
    extra = [{**tasks[0], "OP Type": kind} for kind in ("Add", "Add", "Softmax", "N/A", "GroupedMatmul")]
    notes: list[str] = []
    found = read(tmp_path, [*tasks, *extra], notes)
    assert len(notes) == 3
    assert ": GroupedMatmul: 1 row is left out" in notes[0]
    assert notes[1].endswith(
        ": 6 rows are left out, because the operator is no matmul: Add 3, (no OP Type) 1, Cast 1, Softmax 1"
    )
    assert notes[2].endswith(f": {len(found)} of {len(tasks) + len(extra)} rows are used")
    assert len(found) + 1 + 6 == len(tasks) + len(extra)


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
    assert len(notes) == 4
    assert "because it is the vector half of a task that has a Cube row (row 4)" in notes[0]
    assert "because the vector cores worked in the same task (row 5: 9.5 us of " in notes[1]


def test_a_start_without_unit_only_tells_tasks_apart(tmp_path: Path, rows: list[Task]) -> None:
    tasks = export_rows(rows)
    tasks.insert(2, {**tasks[1], "Task Type": "AI_VECTOR_CORE"})
    notes: list[str] = []
    found = read(tmp_path, renamed(tasks, "Task Start Time(us)", "Task Start Time"), notes)
    assert [run.op for run in found] == [row["case_id"] for row in rows]
    assert "the vector half of a task that has a Cube row (row 4)" in notes[0]


@pytest.mark.parametrize(
    "shapes",
    ["2,48,64;2,64,96", "2,48,64;2,64,96;", "[2,48,64];[2,64,96]", "[2,48,64];[2,64,96];[]", "[[2, 48, 64], [2, 64, 96]]",
     "(2,48,64);(2,64,96)", "[2,48,64;2,64,96]"],
)  # fmt: skip
@pytest.mark.parametrize("types", ["FLOAT16;FLOAT16", "[FLOAT16;FLOAT16]", "DT_FLOAT16;DT_FLOAT16;DT_UNDEFINED"])
def test_shapes_and_types_in_brackets(tmp_path: Path, rows: list[Task], shapes: str, types: str) -> None:
    task = {**export_rows(rows)[1], "Input Shapes": shapes, "Input Data Types": types, "Output Shapes": "[2,48,96]"}
    (run,) = read(tmp_path, [task])
    case = prepare(run, SPEC).case
    assert case is not None
    assert (case.batch, case.m, case.n, case.k) == (2, 48, 96, 64)
    assert case.dtype == "fp16"


@pytest.mark.parametrize(
    ("name", "header", "row", "what"),
    [
        ("op_statistic_1.csv",
         "Device_id,Model Name,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)",
         "0,m,BatchMatMulV3,AI_CORE,12,240.5,19.1,20.04,21.3,40.1", "is an op_statistic export, a summary by operator"),
        ("op_statistic_2.csv", "OP Type,Core Type,Count,Total Time,Avg Time(us),Min Time(us),Max Time(us),Ratio(%)",
         "MatMulV3,AI_CORE,12,240.5,20.04,19.1,21.3,40.1", "is an op_statistic export, a summary by operator"),
        ("task_time_1.csv",
         "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),task_stop(us)",
         "0,MatMulV3_1,KERNEL_AICORE,2,3,20.1,100.0,120.1", "is a task_time export, a list of kernels"),
        ("OpBasicInfo.csv", "Op Name,Op Type,Task Duration(us),Block Dim,Device Id,Pid,Current Freq,Rated Freq",
         "MatMulV3_1,cube,20.1,32,0,77,1650,1650", "is an OpBasicInfo export, one operator"),
    ],
)  # fmt: skip
def test_exports_without_shapes_are_named(tmp_path: Path, name: str, header: str, row: str, what: str) -> None:
    file = tmp_path / name
    file.write_text(f"{header}\n{row}\n")
    with pytest.raises(InputError) as caught:
        read_runs(file)
    assert what in str(caught.value)
    assert "without shapes; needed is op_summary_*.csv" in str(caught.value)


def test_a_quote_that_does_not_end_is_refused_by_row(tmp_path: Path, rows: list[Task]) -> None:
    file = write_rows(tmp_path / "op_summary_0.csv", export_rows(rows))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:3], lines[3].replace('"""', '"', 1).replace('"""', "", 1), *lines[4:]]))
    with pytest.raises(InputError, match=r"op_summary_0\.csv, row 4: is no CSV"):
        read_runs(file)


def test_a_long_broken_cell_is_cut_in_the_note(tmp_path: Path, rows: list[Task]) -> None:
    tasks = export_rows(rows)
    notes: list[str] = []
    read(tmp_path, [{**tasks[1], "Input Shapes": "x" * 5000}, tasks[2]], notes)
    assert "its Input Shapes are no shapes (row 2: 'xxxx" in notes[0]
    assert len(notes[0]) < 400


def test_a_profile_without_types_is_named(tmp_path: Path, rows: list[Task]) -> None:
    tasks = [{**task, "OP Type": "N/A", "Input Shapes": "N/A"} for task in export_rows(rows)]
    with pytest.raises(InputError, match="no row has an OP Type; a profile taken with --task-time=l0"):
        read(tmp_path, tasks)


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path, rows: list[Task]) -> None:
    file = write_rows(tmp_path / "op_summary_0.csv", export_rows(rows))
    file.write_text(file.read_text().replace("Task Wait Time(us)", "Task Duration(us)"))
    with pytest.raises(InputError, match=r"row 1: the header names column 'Task Duration\(us\)' twice"):
        read_runs(file)


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
