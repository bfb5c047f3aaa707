"""``tileproof recommend``: tables in and out, bad rows, bad files."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest

import tileproof
from tileproof.hardware import InternalError
from tileproof.models.plan import BRANCHES, PLAN_FIELDS
from tileproof.solver.batch import recommend as batch
from tileproof.solver.tables import frames as tables
from tileproof.solver.tables import write as rows_out
from tileproof.solver.tables.tilings import plan_of_cells

EXAMPLES = Path(__file__).parents[2] / "examples" / "cases.csv"
GOOD = """case_id,batch_a,batch_b,m,n,k,dtype,out_dtype,trans_a,trans_b,bias,bias_batch,format_b
first,6x1,1x6,64,64,64,fp16,,0,1,,,
second,8,8,32,48,0,bf16,fp32,no,false,fp32,yes,ND
,4,4,16,16,1,,,,,,,
"""


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write(tmp_path / "cases.csv", GOOD)


@pytest.fixture
def targets(tmp_path: Path) -> tuple[str | Path, ...]:
    return ("--out", tmp_path / "result.csv", "--plans", tmp_path / "plans.csv")


def test_rows_in_order_with_the_columns_of_the_design(
    run: Any, cases: Path, targets: tuple[str | Path, ...], tmp_path: Path
) -> None:
    answer = run("recommend", cases, *targets)
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert answer.stderr == "3 cases: 3 optimal, 0 infeasible, 0 unproven, 0 bad rows\n"
    results = read(tmp_path / "result.csv")
    assert [row["case_id"] for row in results] == ["first", "second", "row4"]
    assert [row["row"] for row in results] == ["2", "3", "4"]
    assert [row["batch_a"] for row in results] == ["6x1", "8", "4"]
    assert [row["out_dtype"] for row in results] == ["fp16", "fp32", "fp16"]
    assert [row["bias_batch"] for row in results] == ["0", "1", "0"]
    assert [row["winner"] for row in results][1:] == ["special", "special"]
    for row in results:
        assert (row["hardware"], row["rules"], row["environment"]) == ("ascend950pr", "v0.4", "profiler")
        assert (row["verdict"], row["error"]) == ("proven", "")
        assert row["plan_branch"] == row["winner"]
        assert row["latency_us"] == row["bound_us"] != ""
        assert all(row[f"status_{name}"] for name in BRANCHES)
        assert " of the time" in row["advice"]
    assert tuple(read(tmp_path / "plans.csv")[0]) == ("case_id", "row", *PLAN_FIELDS, "latency_us", "latency_ticks")


def test_plans_evaluate_to_the_same_ticks_and_stay_legal(run: Any, tmp_path: Path) -> None:
    answer = run("recommend", EXAMPLES, "--out", tmp_path / "r.csv", "--plans", tmp_path / "p.csv")
    assert answer.exit_code == 0
    rows = tables.read_cases(EXAMPLES)
    plans = read(tmp_path / "p.csv")
    assert len(plans) == len(rows) >= 12
    for row, cells in zip(rows, plans, strict=True):
        assert row.case is not None
        assert (cells["case_id"], cells["row"]) == (row.case.case_id, str(row.number))
        judged = tileproof.evaluate(row.case, plan_of_cells(cells), rules="v0.4")
        assert judged.latency_ticks == int(cells["latency_ticks"])
        assert repr(judged.latency_us) == cells["latency_us"]
        assert judged.violations == []
    assert [row["case_id"] for row in read(tmp_path / "r.csv")] == [row.cells["case_id"] for row in rows]


def test_twice_gives_the_same_bytes(run: Any, cases: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run("recommend", cases, "--out", tmp_path / f"{name}.csv", "--plans", tmp_path / f"{name}_plans.csv")
    for kind in ("", "_plans"):
        once, twice = ((tmp_path / f"{name}{kind}.csv").read_bytes() for name in ("one", "two"))
        assert once == twice
        assert b"\r" not in once
        assert once.endswith(b"\n")


def test_settings_reach_the_rows(run: Any, cases: Path, tmp_path: Path) -> None:
    options = ("--hardware", "ascend950pr_c28", "--rules", "none", "--environment", "cold", "--all-branches")
    run("recommend", cases, "--out", tmp_path / "r.csv", *options)
    row = read(tmp_path / "r.csv")[0]
    assert (row["hardware"], row["rules"], row["environment"]) == ("ascend950pr_c28", "none", "cold")
    assert "dominated" not in row.values()
    assert not (tmp_path / "plans.csv").exists()


def test_one_column_b_stands_for_both(run: Any, tmp_path: Path) -> None:
    cases = write(tmp_path / "cases.csv", "b,m,n,k\n2x3,16,16,16\n")
    run("recommend", cases, "--out", tmp_path / "r.csv")
    row = read(tmp_path / "r.csv")[0]
    assert (row["case_id"], row["batch_a"], row["batch_b"], row["dtype"]) == ("row2", "2x3", "2x3", "fp16")


def test_no_batch_column_means_one(run: Any, tmp_path: Path) -> None:
    # a byte-order mark, Windows line ends, spaces, blank lines and rows of empty cells are all fine
    text = '\ufeffm, n ,k,case_id\r\n\r\n 16,16,16,"a, b"\r\n,,,\r\n16,16,32,\r\n'
    cases = write(tmp_path / "cases.csv", text)
    assert run("recommend", cases, "--out", tmp_path / "r.csv").exit_code == 0
    rows = read(tmp_path / "r.csv")
    assert [(row["case_id"], row["row"], row["batch_a"]) for row in rows] == [("a, b", "3", "1"), ("row5", "5", "1")]


BAD_ROWS = {
    ",1,1,-5,16,16,fp16,,,,,,": "column m: -5 is out of range; allowed is 0 to 2147483647",
    ",1,1,1e3,16,16,fp16,,,,,,": "column m: '1e3' is no whole number; allowed is 0 to 2147483647",
    ",1,1,16,12.0,16,fp16,,,,,,": "column n: '12.0' is no whole number; allowed is 0 to 2147483647",
    ",1,1,16,16,,fp16,,,,,,": "column k: is missing",
    ",1,1,16,16,16,fp17,,,,,,": (
        "column dtype: 'fp17' is not known; allowed: fp16, bf16, fp32, hf32, int8, fp8_e4m3, fp8_e5m2, hif8"
    ),
    ",6x2,3x2,16,16,16,fp16,,,,,,": (
        "batch_a 6x2 and batch_b 3x2 do not broadcast: dim -2 is 6 against 3; allowed are equal dims or a 1"
    ),
    ",x,1,16,16,16,fp16,,,,,,": "column batch_a: 'x' is no list of batch dims; write 8, 6x1 or 6,1",
    ",1,1x1x1x1x1,16,16,16,fp16,,,,,,": "column batch_b: 5 batch dims; allowed are 1 to 4",
    ",1,1,16,16,16,fp16,fp64,,,,,": "column out_dtype: 'fp64' is not known; allowed: fp16, bf16, fp32, int8, int32",
    ",1,1,16,16,16,fp16,,maybe,,,,": (
        "column trans_a: 'maybe' is neither yes nor no; allowed: 0, false, no, 1, true, yes"
    ),
    ",1,1,16,16,16,fp16,,,,1,,": "column bias: '1' is not known; allowed: fp16, bf16, fp32, int32",
    ",1,1,16,16,16,fp16,,,,,,NHWC": "column format_b: 'NHWC' is not known; allowed: ND, NZ",
    ",1,1,16": "4 cells, but the header has 13",
    ",1,1,16,16,16,fp16,,,,,,,7": "14 cells, but the header has 13",
}


def test_bad_rows_are_named_and_the_others_done(run: Any, tmp_path: Path, targets: tuple[str | Path, ...]) -> None:
    header, *good = GOOD.splitlines()
    cases = write(tmp_path / "cases.csv", "\n".join([header, good[0], *BAD_ROWS, good[1], ""]))
    answer = run("recommend", cases, *targets, "--jobs", "1")
    assert (answer.exit_code, answer.stdout) == (2, "")
    expected = []
    for number, text in enumerate(BAD_ROWS.values(), start=3):
        separator = ", " if text.startswith("column") else ": "
        expected.append(f"error: {cases}, row {number}{separator}{text}")
    *errors, summary = answer.stderr.splitlines()
    assert errors == expected
    assert summary == f"{len(BAD_ROWS) + 2} cases: 2 optimal, 0 infeasible, 0 unproven, {len(BAD_ROWS)} bad rows"
    results = read(tmp_path / "result.csv")
    assert [row["case_id"] for row in results] == ["first", *(f"row{3 + i}" for i in range(len(BAD_ROWS))), "second"]
    for row, text in zip(results[1:-1], BAD_ROWS.values(), strict=True):
        assert row["error"] == text
        assert (row["winner"], row["verdict"], row["latency_us"], row["plan_branch"], row["advice"]) == ("",) * 5
    assert results[5]["dtype"] == "fp17"  # kept as it was written
    assert results[-1]["winner"] == "special"
    assert [row["case_id"] for row in read(tmp_path / "plans.csv")] == ["first", "second"]


BAD_FILES = {
    b"": "{file}: the file is empty; the first line must name the columns",
    b"\n\n": "{file}: the file is empty; the first line must name the columns",
    b"m,n,k\n": "{file}: there is no case below the header",
    b"m,n\n1,2\n": "{file}, row 1: column k missing; needed are m, n and k",
    b"case_id,k\nx,2\n": "{file}, row 1: columns m, n missing; needed are m, n and k",
    b"m,n,k,m\n1,2,3,4\n": "{file}, row 1, column m: is there more than once",
    b"b,batch_a,m,n,k\n1,1,2,3,4\n": (
        "{file}, row 1: b stands for the batch of A and B; give b, or batch_a and batch_b"
    ),
    b"m,n,k,dtpye\n1,2,3,fp16\n": (
        "{file}, row 1, column 'dtpye': is not known; did you mean 'dtype'?; allowed: case_id, batch_a, batch_b, m, n, "
        "k, dtype, out_dtype, trans_a, trans_b, bias, bias_batch, format_b, b, and pin_ before a plan field"
    ),
    b"m;n;k\n1;2;3\n": "{file}, row 1: the columns are not separated by commas",
    b"m,n,k\n1,2,\xff\n": "{file}: is not UTF-8 text (invalid start byte at byte 10)",
    b'm,n,k\n1,2,3\n4,"5,6\n': "{file}, row 3: is no CSV (unexpected end of data)",
}


@pytest.mark.parametrize("content", BAD_FILES)
def test_bad_file_is_one_sentence(run: Any, tmp_path: Path, content: bytes) -> None:
    cases = tmp_path / "cases.csv"
    cases.write_bytes(content)
    answer = run("recommend", cases, "--out", tmp_path / "r.csv")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == f"error: {BAD_FILES[content].format(file=cases)}\n"
    assert not (tmp_path / "r.csv").exists()


def test_unreadable_files(run: Any, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "r.csv")
    missing = run("recommend", tmp_path / "no.csv", *out)
    message = f"error: {tmp_path / 'no.csv'}: cannot be read: No such file or directory\n"
    assert (missing.exit_code, missing.stderr) == (2, message)
    folder = run("recommend", tmp_path, *out)
    assert (folder.exit_code, folder.stderr) == (2, f"error: {tmp_path}: cannot be read: Is a directory\n")


def test_bad_settings_stop_before_the_work(run: Any, cases: Path, targets: tuple[str | Path, ...]) -> None:
    for option, value in (("--hardware", "nothing"), ("--rules", "x"), ("--environment", "x"), ("--time-limit", "-1")):
        answer = run("recommend", cases, *targets, option, value)
        assert (answer.exit_code, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
        assert not Path(targets[1]).exists()


def test_targets_that_cannot_be_written(run: Any, cases: Path, tmp_path: Path) -> None:
    for target, reason in (
        (cases, "the cases are read from it"),
        (tmp_path, "it is a folder"),
        (tmp_path / "none" / "r.csv", f"there is no folder {tmp_path / 'none'}"),
    ):
        answer = run("recommend", cases, "--out", target)
        assert (answer.exit_code, answer.stderr) == (2, f"error: {target}: cannot be written: {reason}\n")
    same = run("recommend", cases, "--out", tmp_path / "r.csv", "--plans", tmp_path / "r.csv")
    assert same.stderr == f"error: {tmp_path / 'r.csv'}: cannot be written: another table is written to it\n"
    assert cases.read_text() == GOOD


def test_a_full_disk_leaves_the_old_files_and_a_run_to_go_on_from(
    run: Any, cases: Path, targets: tuple[str | Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "result.csv").write_text("old")
    real = rows_out._Part.write

    def fail_on_the_second_plan(part: Any, cells: Any) -> None:
        if "plans" in part.path.name and cells[0] == "second":
            raise OSError(28, "No space left on device")
        real(part, cells)

    monkeypatch.setattr(rows_out._Part, "write", fail_on_the_second_plan)
    answer = run("recommend", cases, *targets)
    assert answer.exit_code == 2
    assert answer.stderr == (
        "1 of 3 rows are finished; continue with the same command and --resume\n"
        "error: output: No space left on device\n"
    )
    assert (tmp_path / "result.csv").read_text() == "old"
    parts = {"plans.csv.partial", "result.csv.partial", "result.csv.partial.json"}
    assert set(os.listdir(tmp_path)) == {"cases.csv", "result.csv", *parts}
    monkeypatch.undo()
    assert run("recommend", cases, *targets, "--resume").exit_code == 0
    assert [row["case_id"] for row in read(tmp_path / "result.csv")] == ["first", "second", "row4"]
    assert [row["case_id"] for row in read(tmp_path / "plans.csv")] == ["first", "second", "row4"]
    assert set(os.listdir(tmp_path)) == {"cases.csv", "result.csv", "plans.csv"}


def test_result_goes_through_a_link_and_into_a_pipe(run: Any, cases: Path, tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert run("recommend", cases, "--out", tmp_path / "link.csv", "--plans", os.devnull).exit_code == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("case_id,row,")
    assert not Path(os.devnull).is_file()


def test_infeasible_and_open_rows_set_the_exit_code(
    run: Any, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tileproof.solve
    for verdict, code, words in (
        ("infeasible", 3, "every branch is proven infeasible"),
        ("open", 4, "nothing found in the time limit"),
    ):

        def undecided(case: Any, verdict: str = verdict, **settings: Any) -> Any:
            update: dict[str, Any] = (
                {"winner": None, "verdict": verdict, "buffers": []} if case.case_id == "second" else {}
            )
            return real(case, **settings).model_copy(update=update)

        monkeypatch.setattr(batch, "solve", undecided)
        answer = run("recommend", cases, "--out", tmp_path / "r.csv", "--plans", tmp_path / "p.csv")
        assert answer.exit_code == code
        assert read(tmp_path / "r.csv")[1]["advice"] == words
        assert [row["case_id"] for row in read(tmp_path / "p.csv")] == ["first", "row4"]


def test_internal_error_names_the_row(run: Any, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise InternalError("ticks differ")

    monkeypatch.setattr(batch, "solve", fail)
    answer = run("recommend", cases, "--out", tmp_path / "r.csv")
    assert (answer.exit_code, answer.stderr) == (70, f"error: internal error: {cases}, row 2: ticks differ\n")
    assert not (tmp_path / "r.csv").exists()
