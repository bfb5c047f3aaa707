"""``recommend`` as a batch engine: the same bytes however it runs, formats, resumption, crashes, the library."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from tileproof.solver.batch import recommend as batch
from tileproof.solver.pools import executors
from tileproof.solver.pools.ordered_rows import Crash
from tileproof.solver.tables.read import TextRows

HEADER = "case_id,b,m,n,k,dtype,trans_b,pin_base_m"
COMMAND = [sys.executable, "-W", "error", "-m", "tileproof.solver.cli.main", "recommend"]
needs_posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def rows(count: int) -> str:
    """Small cases, with bad rows, repeats, twins of another type and a pin among them."""
    lines = [HEADER]
    for i in range(count):
        kind = i % 8
        name = f'"a, {i}"' if kind == 1 else f"case{i}"
        dtype = "bf16" if kind == 3 else "fp16"
        m = "-1" if kind == 5 else 16 * (1 + i % 3)
        lines.append(f"{name},{1 + i % 2}x{1 + i % 2},{m},32,64,{dtype},{i % 2},{16 if kind == 6 else ''}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.csv"
    path.write_text(rows(24))
    return path


def outputs(folder: Path, ending: str = "csv") -> list[bytes]:
    return [(folder / f"{name}.{ending}").read_bytes() for name in ("result", "plans")]


def targets(folder: Path, ending: str = "csv") -> list[str]:
    folder.mkdir(exist_ok=True)
    return ["--out", str(folder / f"result.{ending}"), "--plans", str(folder / f"plans.{ending}")]


@pytest.fixture
def expected(run: Any, cases: Path, tmp_path: Path) -> list[bytes]:
    answer = run("recommend", cases, *targets(tmp_path / "expected"), "--jobs", "1")
    assert answer.exit_code == 2  # the bad rows
    assert answer.stderr.endswith("24 cases: 21 optimal, 0 infeasible, 0 unproven, 3 bad rows\n")
    return outputs(tmp_path / "expected")


def test_bytes_do_not_depend_on_jobs_or_library(run: Any, cases: Path, tmp_path: Path, expected: list[bytes]) -> None:
    assert run("recommend", cases, *targets(tmp_path / "two"), "--jobs", "2").exit_code == 2
    assert outputs(tmp_path / "two") == expected
    library = ("--library", tmp_path / "plans.db")
    for folder, jobs, served in (("filled", "2", 12), ("served", "2", 21), ("alone", "1", 21)):
        answer = run("recommend", cases, *targets(tmp_path / folder), *library, "--jobs", jobs)
        assert answer.stderr.splitlines()[-1].endswith(f"3 bad rows, {served} from the library")
        assert outputs(tmp_path / folder) == expected


def test_equal_rows_in_work_are_solved_once(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order in which an executor works: here all rows are read before the first is solved."""
    solved = []

    class ReadsAhead(executors.InProcess):
        def map(self, payloads: Any) -> Iterator[Any]:
            for task in list(payloads):
                solved.append(task[1].cells["case_id"])
                yield Crash("gone") if task[1].case.m == 3 else self._call(task)

    monkeypatch.setattr(executors, "InProcess", ReadsAhead)
    cases = tmp_path / "cases.csv"
    cases.write_text("case_id,m,n,k,dtype\na,16,16,16,fp16\nb,16,16,16,bf16\nc,3,16,16,fp16\nd,3,16,16,fp16\n")
    answer = run("recommend", cases, *targets(tmp_path / "out"), "--library", tmp_path / "l.db", "--jobs", "1")
    assert answer.exit_code == 70
    assert solved == ["a", "c"]
    assert answer.stderr.splitlines() == [
        f"error: {cases}, row 4: crashed: gone",
        f"error: {cases}, row 5: crashed: gone",
        "4 cases: 2 optimal, 0 infeasible, 0 unproven, 0 bad rows, 2 crashed, 2 from the library",
    ]


# -- formats
def as_json_lines(path: Path) -> str:
    """The CSV cases with types, in an order of keys of their own."""
    lines = []
    with path.open(newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream)):
            typed: dict[str, Any] = {name: int(row[name]) for name in ("k", "n", "m")}
            typed |= {"case_id": row["case_id"], "b": [int(n) for n in row["b"].split("x")], "dtype": row["dtype"]}
            typed["trans_b"] = row["trans_b"] == "1"
            typed["pin_base_m"] = int(row["pin_base_m"]) if row["pin_base_m"] else None
            lines.append(json.dumps(typed) + ("\n\n" if number == 0 else "\n"))
    return "".join(lines)


def without_row(path: Path) -> list[dict[str, str]]:
    """Rows without their number, which depends on the format, as the number 0, which CSV writes as 0.0, does."""
    rows = [dict(row.texts) for row in TextRows(path)]
    return [{name: "0" if text == "0.0" else text for name, text in row.items() if name != "row"} for row in rows]


def test_formats_in_and_out_hold_the_same(run: Any, cases: Path, tmp_path: Path, expected: list[bytes]) -> None:
    lines = tmp_path / "cases.jsonl"
    lines.write_text(as_json_lines(cases))
    import pyarrow.csv

    parquet.write_table(pyarrow.csv.read_csv(cases), tmp_path / "cases.parquet")
    answer = run("recommend", lines, *targets(tmp_path / "j", "parquet"), "--jobs", "1")
    assert answer.exit_code == 2
    assert f"error: {lines}, row 7, column m: -1 is out of range" in answer.stderr
    answer = run("recommend", tmp_path / "cases.parquet", *targets(tmp_path / "p", "jsonl"), "--jobs", "1")
    assert f"error: {tmp_path / 'cases.parquet'}, row 6, column m: -1 is out of range" in answer.stderr
    for name in ("result", "plans"):
        want = without_row(tmp_path / "expected" / f"{name}.csv")
        assert without_row(tmp_path / "j" / f"{name}.parquet") == want
        assert without_row(tmp_path / "p" / f"{name}.jsonl") == want
    schema = parquet.read_schema(tmp_path / "j" / "result.parquet")
    kinds = {name: str(schema.field(name).type) for name in schema.names}
    assert [kinds[name] for name in ("case_id", "batch_a", "row", "m", "trans_a")] == [
        "string", "string", "int64", "int64", "bool",
    ]  # fmt: skip
    assert [kinds[name] for name in ("plan_base_m", "plan_fold", "latency_us", "latency_ticks", "error")] == [
        "int64", "string", "double", "int64", "string",
    ]  # fmt: skip


BAD_LINES = {
    '{"m": 1, "n": 2, "k": 3, "dtpye": "fp16"}': (
        ", column 'dtpye': is not known; did you mean 'dtype'?; allowed: case_id, batch_a, batch_b, m, n, k, dtype, "
        "out_dtype, trans_a, trans_b, bias, bias_batch, format_b, b, and pin_ before a plan field"
    ),
    '{"m": 1, "n": 2': ": is no JSON: Expecting ',' delimiter",
    "[1, 2]": ': is no JSON object; write {"m": 64, "n": 64, "k": 64} on one line',
    "[" * 100_000: ": is no JSON: nested too deeply",
    '{"m": 1, "n": 2}': ", column k: is missing",
    '{"m": 1, "n": 2, "k": 3, "k": 3}': ", column k: is there more than once",
    '{"m": 1.5, "n": 2, "k": 3}': ", column m: '1.5' is no whole number; allowed is 0 to 2147483647",
    '{"m": {"x": 1}, "n": 2, "k": 3}': (
        ", column m: allowed is a number, a text, true, false, null, or a list of whole numbers (batch dims)"
    ),
    '{"m": 1, "n": 2, "k": 3, "b": 4, "batch_a": 4}': (
        ": b stands for the batch of A and B; give b, or batch_a and batch_b"
    ),
    '{"m": 1, "n": 2, "k": 3, "case_id": "\\ud800"}': ", column case_id: is not Unicode text",
    '{"m": 1, "n": 2, "k": 3, "trans_a": 2}': (
        ", column trans_a: '2' is neither yes nor no; allowed: 0, false, no, 1, true, yes"
    ),
}  # fmt: skip


def test_bad_json_lines_are_named_and_the_others_done(run: Any, tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"m": 1, "n": 2, "k": 0.0}\n' + "\n".join(BAD_LINES) + '\n{"m": "1", "n": 2, "k": 0}')
    answer = run("recommend", cases, "--out", tmp_path / "r.csv", "--jobs", "1")
    *errors, summary = answer.stderr.splitlines()
    assert errors == [f"error: {cases}, row {n}{text}" for n, text in enumerate(BAD_LINES.values(), start=2)]
    assert summary.startswith(f"{len(BAD_LINES) + 2} cases: 2 optimal")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cases.txt", b"m,n,k\n1,2,0\n", "the ending '.txt' is not known; allowed: .csv, .jsonl, .parquet"),
        ("cases.cvs", b"m,n,k\n1,2,0\n", "the ending '.cvs' is not known; did you mean '.csv'?; allowed: .csv"),
        ("cases", b"m,n,k\n1,2,0\n", "has no ending; allowed: .csv, .jsonl, .parquet"),
        ("cases.jsonl", b"\n", "the file is empty; every line must be a case as a JSON object"),
        ("cases.parquet", b"no parquet at all", "is no Parquet file ("),
        ("cases.parquet", b"", "is no Parquet file ("),
    ],
)
def test_a_bad_file_is_one_sentence(run: Any, tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    answer = run("recommend", tmp_path / name, "--out", tmp_path / "r.csv")
    assert (answer.exit_code, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
    assert answer.stderr.startswith(f"error: {tmp_path / name}: {message}")
    assert os.listdir(tmp_path) == [name]


def test_outputs_and_options_are_checked_before_the_work(run: Any, cases: Path, tmp_path: Path) -> None:
    for options, message in (
        (("--out", tmp_path / "r.xls"), f"{tmp_path / 'r.xls'}: the ending '.xls' is not known"),
        (("--out", tmp_path / "r.csv", "--jobs", "0"), "--jobs: '0' is no number of processes; give a whole number"),
        (("--out", tmp_path / "r.csv", "--jobs", "two"), "--jobs: 'two' is no number of processes"),
        (
            ("--out", tmp_path / "r.csv", "--jobs", "2", "--cluster", "local"),
            "--cluster and --jobs exclude one another",
        ),
        (("--out", tmp_path / "r.csv", "--library", cases), f"{cases}: is no plan library (file is not a database)"),
        (("--out", os.devnull, "--resume"), f"{os.devnull}: --resume needs a file"),
    ):
        answer = run("recommend", cases, *options)
        assert (answer.exit_code, answer.stderr.count("\n")) == (2, 1)
        assert answer.stderr.startswith(f"error: {message}")
    assert os.listdir(tmp_path) == ["cases.csv"]


def test_parquet_without_pyarrow_says_what_to_install(
    run: Any, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = run("recommend", cases, "--out", tmp_path / "r.parquet")
    message = f"error: {tmp_path / 'r.parquet'}: Parquet needs pyarrow: pip install 'tileproof[parquet]'\n"
    assert (answer.exit_code, answer.stderr) == (2, message)


# -- interruption
def started(cases: Path, folder: Path, *options: str, ending: str = "csv") -> subprocess.Popen[str]:
    command = [*COMMAND, str(cases), *targets(folder, ending), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(reached: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 100
    while not reached():
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@needs_posix
@pytest.mark.parametrize(("jobs", "ending"), [("1", "csv"), ("2", "csv"), ("2", "parquet")])
def test_ctrl_c_leaves_valid_tables_that_resume_to_the_same_bytes(
    run: Any, cases: Path, tmp_path: Path, jobs: str, ending: str
) -> None:
    cases.write_text(rows(64))
    run("recommend", cases, *targets(tmp_path / "whole", ending), "--jobs", "1")
    folder = tmp_path / "out"
    with started(cases, folder, "--jobs", jobs, ending=ending) as running:
        part = folder / f"result.{ending}.partial"
        wait_for(lambda: lines_of(part) >= 12, running)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    last = err.splitlines()[-1]
    done = lines_of(part) - (ending == "csv")
    assert 0 < done < 64
    assert (running.returncode, out) == (130, "")
    assert last == f"error: interrupted after {done} of 64 rows; continue with the same command and --resume"
    assert not (folder / f"result.{ending}").exists()
    if ending == "csv":
        whole = (tmp_path / "whole" / "result.csv").read_bytes()
        assert whole.startswith(part.read_bytes())
    answer = run("recommend", cases, *targets(folder, ending), "--jobs", jobs, "--resume")
    assert answer.exit_code == 2
    assert answer.stderr.endswith("64 cases: 56 optimal, 0 infeasible, 0 unproven, 8 bad rows\n")
    assert outputs(folder, ending) == outputs(tmp_path / "whole", ending)
    assert len(os.listdir(folder)) == 2


@needs_posix
def test_kill_loses_nothing_that_was_written(run: Any, cases: Path, tmp_path: Path, expected: list[bytes]) -> None:
    folder = tmp_path / "out"
    with started(cases, folder, "--jobs", "2") as running:
        wait_for(lambda: lines_of(folder / "result.csv.partial") >= 4, running)
        running.kill()
    assert run("recommend", cases, *targets(folder), "--resume").exit_code == 2
    assert outputs(folder) == expected


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_torn_part_files_are_mended(run: Any, tmp_path: Path, seed: int, ending: str) -> None:
    """Both files cut anywhere, as by a power failure."""
    cases = tmp_path / "cases.csv"
    cases.write_text("case_id,m,n,k\n" + "".join(f'"x ""{i}""\ny",1,{-(i == 2)},0\n' for i in range(5)))
    run("recommend", cases, *targets(tmp_path / "whole", ending), "--jobs", "1")
    folder = tmp_path / "out"
    interrupted(run, cases, folder, ending)
    cut = random.Random(seed)
    for name in ("result", "plans"):
        part = folder / f"{name}.{ending}.partial"
        data = part.read_bytes()
        part.write_bytes(data[: cut.randrange(len(data) + 1)] + (b"\0\0" if seed == 3 else b""))
    assert run("recommend", cases, *targets(folder, ending), "--resume", "--jobs", "1").exit_code == 2
    assert outputs(folder, ending) == outputs(tmp_path / "whole", ending)


def interrupted(run: Any, cases: Path, folder: Path, ending: str = "csv", *options: str) -> None:
    """A run that stops with an error at its last row."""
    real = batch.solve
    last = cases.read_text().count("\n") // 2

    def fail(case: Any, **settings: Any) -> Any:
        calls.append(case)
        if len(calls) == last - 1:
            raise OSError(5, "Input/output error")
        return real(case, **settings)

    calls: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "solve", fail)
        answer = run("recommend", cases, *targets(folder, ending), "--jobs", "1", *options)
    assert "are finished; continue with the same command and --resume" in answer.stderr


def test_resuming_another_run_is_refused(run: Any, cases: Path, tmp_path: Path, expected: list[bytes]) -> None:
    folder = tmp_path / "out"
    interrupted(run, cases, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    part = folder / "result.csv.partial"
    resume = ("recommend", cases, *targets(folder), "--resume", "--jobs", "1")
    for options, what in (
        (("--rules", "none"), "--rules: v0.4, now none"),
        (("--hardware", "ascend950dt"), "chip: ascend950pr, now ascend950dt"),
        (("--explain",), "--explain: False, now True"),
        (("--time-limit", "5"), "--time-limit: 60.0, now 5.0"),
    ):
        answer = run(*resume, *options)
        text = f"cannot be continued: it was made with another {what}; run without --resume to start anew"
        assert (answer.exit_code, answer.stderr) == (2, f"error: {part}: {text}\n")
    text = cases.read_text()
    cases.write_text(text.replace("case0", "case9"))
    assert "it was made with another content of the case table; run without" in run(*resume).stderr
    cases.write_text(text)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / "result.csv.partial.json").unlink()
    assert "cannot be continued: result.csv.partial.json is not there" in run(*resume).stderr
    assert run("recommend", cases, *targets(folder), "--jobs", "1").exit_code == 2  # anew
    assert outputs(folder) == expected


@needs_posix
def test_two_runs_do_not_write_the_same_table(run: Any, cases: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with started(cases, folder, "--jobs", "1") as running:
        wait_for((folder / "result.csv.partial").exists, running)
        wait_for(lambda: lines_of(folder / "result.csv.partial") >= 1, running)
        running.send_signal(signal.SIGSTOP)
        answer = run("recommend", cases, *targets(folder), "--jobs", "1", "--resume")
        assert answer.exit_code == 2
        assert answer.stderr.endswith("cannot be written: another run is writing to it\n")
        running.send_signal(signal.SIGCONT)
        running.communicate(timeout=100)
    assert running.returncode == 2  # its bad rows


# -- crashes
def crashes(task: Any) -> Any:
    """``solve_row``, but one row ends its process and one only the first process that meets it."""
    _, row, _ = task
    if row.cells["case_id"] == "deadly":
        os._exit(9)
    if row.cells["case_id"].startswith("once"):
        flag = Path(row.file).with_name("died")
        if not flag.exists():
            flag.touch()
            os._exit(9)
    return batch.solve_row(task)


def test_a_crash_costs_its_row_alone(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(folder)
    import test_recommend_batch as importable

    monkeypatch.setattr("tileproof.solver.cli.commands.recommend_run.solve_row", importable.crashes)
    cases = tmp_path / "cases.csv"
    cases.write_text("case_id,m,n,k\n" + "".join(f"{name},16,16,16\n" for name in ("a", "deadly", "b", "once", "c")))
    answer = run("recommend", cases, *targets(tmp_path / "out"), "--jobs", "2")
    assert answer.exit_code == 70
    text = "crashed: its worker process died twice (exit code 9)"
    assert [line for line in answer.stderr.splitlines() if " after " not in line] == [
        f"error: {cases}, row 3: {text}",
        "5 cases: 4 optimal, 0 infeasible, 0 unproven, 0 bad rows, 1 crashed",
    ]
    with (tmp_path / "out" / "result.csv").open(newline="") as stream:
        assert [row["error"] for row in csv.DictReader(stream)] == ["", text, "", "", ""]


def test_rows_come_as_they_are_read_from_a_pipe(tmp_path: Path) -> None:
    """The first result can be read before the second case is there."""
    if not Path("/dev/stdin").exists():
        pytest.skip("needs /dev/stdin")
    out = tmp_path / "r.csv"
    command = [*COMMAND, "/dev/stdin", "--out", str(out), "--jobs", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        running.stdin.write("m,n,k\n16,16,0\n")
        running.stdin.flush()
        running.stdin.write("16,16,1\n" * 3000)  # more than the reader takes at once
        running.stdin.flush()
        wait_for(lambda: lines_of(tmp_path / "r.csv.partial") >= 2, running)
        running.send_signal(signal.SIGINT)
        running.stdin.close()
        running.stdin = None
        _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert err.splitlines()[-1].startswith("error: interrupted after ")
    assert "--resume" not in err


def test_a_hundred_errors_are_said_and_all_are_in_the_table(run: Any, tmp_path: Path) -> None:
    cases, out = tmp_path / "cases.jsonl", tmp_path / "out.csv"
    cases.write_text('{"m": 1, "n": 1, "k": 1, "dtpye": "fp16"}\n' * 130)
    answer = run("recommend", cases, "--out", out, "--jobs", "1")
    *said, last, summary = [line for line in answer.stderr.splitlines() if " after " not in line]
    assert answer.exit_code == 2
    assert [f", row {number}, column 'dtpye': " in line for number, line in enumerate(said, start=1)] == [True] * 100
    assert last == f"error: more than 100 rows have errors; column error of {out} holds the reason of each"
    assert summary.endswith("130 bad rows")
    with out.open(newline="") as file:
        assert all("did you mean 'dtype'?" in row["error"] for row in csv.DictReader(file))
