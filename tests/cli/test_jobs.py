"""``--jobs`` of audit and verify: the same output in the same order; formats and resumption of audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tileproof.solver.batch import audit as audit_batch
from tileproof.solver.review.tilings import TilingJudge
from tileproof.solver.tables.read import TextRows

HEADER = "case_id,b,m,n,k,branch,base_m,base_n,base_k\n"
ROWS = [
    "fine,2,64,64,64,asw_basic,64,64,64",
    "wide,8,256,512,1024,asw_basic,512,176,64",
    "bad,2,64,64,64,asw_basic,1.5,,",
    "slow,2,64,64,64,asw_basic,16,16,16",
]


@pytest.fixture
def tilings(tmp_path: Path) -> Path:
    path = tmp_path / "tilings.csv"
    path.write_text(HEADER + "\n".join(ROWS) + "\n")
    return path


def errors(answer: Any) -> list[str]:
    """Lines of stderr but for those of progress, which a slow machine adds."""
    return [line for line in answer.stderr.splitlines() if line.startswith("error: ")]


def test_audit_with_workers_says_the_same(run: Any, tilings: Path, tmp_path: Path) -> None:
    for options in (("--json",), ("--markdown",), ()):
        one, two = (run("audit", tilings, *options, "--jobs", jobs) for jobs in "12")
        assert (one.exit_code, two.exit_code) == (2, 2)
        assert one.stdout == two.stdout != ""
    files = []
    for jobs in "12":
        assert run("audit", tilings, "--out", tmp_path / f"{jobs}.csv", "--jobs", jobs).stdout == ""
        files.append((tmp_path / f"{jobs}.csv").read_bytes())
    assert files[0] == files[1]


def test_audit_reads_and_writes_three_formats(run: Any, tilings: Path, tmp_path: Path) -> None:
    lines = tmp_path / "tilings.jsonl"
    with lines.open("w") as stream:
        for row in TextRows(tilings):
            stream.write(json.dumps({name: text or None for name, text in row.texts.items()}) + "\n")
        stream.write('{"case_id": "odd", "m": 1, "n": 1, "k": 1, "base_x": 3}\n')
    tables = []
    for ending in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"out.{ending}"
        answer = run("audit", lines, "--out", out, "--jobs", "1")
        assert f"{lines}, row 5, column 'base_x': is not known; did you mean 'base_" in answer.stderr
        tables.append([{n: "0" if t == "0.0" else t for n, t in row.texts.items()} for row in TextRows(out)])
    assert tables[0] == tables[1] == tables[2]
    assert [row["legal"] for row in tables[0]] == ["1", "0", "", "1", ""]


def test_audit_resumes_to_the_same_bytes(run: Any, tilings: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit.csv"
    whole = run("audit", tilings, "--out", tmp_path / "whole.csv", "--jobs", "1")
    real = TilingJudge.judge

    def fail(self: Any, row: Any) -> Any:
        if row.name == "slow":
            raise OSError(5, "Input/output error")
        return real(self, row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_batch.TilingJudge, "judge", fail)
        answer = run("audit", tilings, "--out", out, "--jobs", "1")
    assert "3 of 4 rows are finished; continue with the same command and --resume\n" in answer.stderr
    assert (
        "another --rules: none, now source"
        in run("audit", tilings, "--out", out, "--resume", "--rules", "source").stderr
    )
    answer = run("audit", tilings, "--out", out, "--resume", "--jobs", "1")
    assert answer.exit_code == whole.exit_code == 2
    assert answer.stderr.splitlines()[-1] == whole.stderr.splitlines()[-1]
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert run("audit", tilings, "--resume").stderr.startswith("error: --resume goes with --out alone")


def test_verify_with_workers_says_the_same(run: Any, tmp_path: Path) -> None:
    files = []
    for m in ("16", "32", "48"):
        files.append(tmp_path / f"{m}.json")
        assert run("solve", "-m", m, "-n", "32", "-k", "32", "--certificate", files[-1]).exit_code == 0
    files[1].write_text(files[1].read_text().replace('"m": 32', '"m": 64'))
    files.insert(1, tmp_path / "none.json")
    one, two = (run("verify", *files, "--jobs", jobs) for jobs in "12")
    assert (one.exit_code, two.exit_code) == (3, 3)
    assert (one.stdout, errors(one)) == (two.stdout, errors(two))
    assert len(errors(one)) == 1
    assert [line.split(": ")[0] for line in two.stdout.splitlines() if line[0] != " "] == [
        str(file) for file in files if file.exists()
    ]
    one, two = (run("verify", *files, "--jobs", jobs, "--json") for jobs in "12")
    assert json.loads(one.stdout) == json.loads(two.stdout)
