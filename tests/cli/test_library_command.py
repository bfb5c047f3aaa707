"""``tileproof library`` and ``--library`` of solve: entries, damage, foreign files, wrong names."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tileproof.solver.cli.commands import solve as solve_command

CASE = ("solve", "-b", "4", "-m", "32", "-n", "32", "-k", "64")


@pytest.fixture
def library(run: Any, tmp_path: Path) -> Path:
    path = tmp_path / "plans.db"
    assert run(*CASE, "--library", path).exit_code == 0
    assert run(*CASE, "--library", path, "--rules", "none", "--pin", "base_m=16").exit_code == 0
    return path


def keys(run: Any, library: Path) -> list[str]:
    return [json.loads(line)["key"] for line in run("library", "get", library, "--json").stdout.splitlines()]


def edited(library: Path, statement: str) -> None:
    database = sqlite3.connect(library)
    database.execute(statement)
    database.commit()
    database.close()


def test_solve_serves_what_it_kept(run: Any, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = run(*CASE)
    branch = "tileproof.solver.search.solve_branch.solve_branch"
    monkeypatch.setattr(branch, lambda *_: pytest.fail("solved again"))
    served = run(*CASE, "--library", library)
    assert (served.exit_code, served.stdout) == (0, fresh.stdout)
    document = json.loads(run(*CASE, "--library", library, "--json").stdout)
    assert {one["solve_ms"] for one in document["branches"].values()} == {0.0}
    assert solve_command._EXIT_CODES[document["verdict"]] == 0


def test_stats(run: Any, library: Path) -> None:
    assert run("library", "stats", library).stdout.startswith("2 entries, 2 of model version ")
    assert json.loads(run("library", "stats", library, "--json").stdout)["entries"] == 2


def test_get_lists_and_shows(run: Any, library: Path) -> None:
    first, second = run("library", "get", library).stdout.splitlines()
    assert "[4,32,64] x [4,64,32] fp16 -> fp16" in first
    assert sum("base_m=16" in line for line in (first, second)) == 1
    free = next(line.split()[0] for line in (first, second) if "base_m" not in line)
    assert run("library", "get", library, free[:8].upper()).stdout == run(*CASE).stdout
    document = json.loads(run("library", "get", library, free, "--json").stdout)
    assert document["case"]["m"] == 32


def test_get_of_a_wrong_key(run: Any, library: Path) -> None:
    key = keys(run, library)[0]
    wrong = key[:5] + "x" + key[6:12]
    answer = run("library", "get", library, wrong)
    text = f"no key starts with {wrong!r}; did you mean {key[:12]!r}?; `tileproof library get` lists the keys"
    assert (answer.exit_code, answer.stdout, answer.stderr) == (2, "", f"error: {library}: {text}\n")
    both = run("library", "get", library, "")
    assert both.stderr == f"error: {library}: several keys start with ''; give more of it\n"


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_export(run: Any, library: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"out.{ending}"
    answer = run("library", "export", library, "--out", out)
    assert (answer.exit_code, answer.stdout, answer.stderr) == (0, "", "2 entries\n")
    if ending == "csv":
        with out.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert [row["key"] for row in rows] == keys(run, library)
        assert {row["pins"] for row in rows} == {"", "base_m=16"}
        assert all(row["plan_branch"] == row["winner"] for row in rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["plans.db", out.name])


def test_prune_drops_other_model_versions(run: Any, library: Path) -> None:
    edited(library, "UPDATE entries SET model = '0' WHERE key = (SELECT min(key) FROM entries)")
    assert "1 of other model versions are never served" in run("library", "stats", library).stdout
    assert len(keys(run, library)) == 1
    assert run("library", "prune", library).stdout == "1 entries dropped, 1 left\n"


def test_check(run: Any, library: Path) -> None:
    answer = run("library", "check", library)
    assert (answer.exit_code, answer.stdout) == (0, f"{library}: ok, 2 entries\n")
    edited(library, "UPDATE entries SET result = '{}' WHERE key = (SELECT min(key) FROM entries)")
    answer = run("library", "check", library)
    assert (answer.exit_code, answer.stderr) == (3, "")
    assert answer.stdout.endswith(" cannot be read\n")
    for command in (("get", library), ("export", library, "--out", library.with_name("o.csv"))):
        answer = run("library", *command)
        assert answer.exit_code == 2
        assert answer.stderr == f"error: {library}: holds an entry that cannot be read; see library check\n"


def test_damaged_pages(run: Any, library: Path) -> None:
    data = bytearray(library.read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)
    library.write_bytes(data)
    answer = run("library", "check", library)
    assert answer.exit_code == 3
    assert answer.stdout
    answer = run(*CASE, "--library", library)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr == f"error: {library}: cannot be used (database disk image is malformed)\n"


@pytest.mark.parametrize("command", ["stats", "get", "prune", "check"])
def test_files_that_are_no_library(run: Any, tmp_path: Path, command: str) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database at all, but long enough to be one" * 20)
    foreign = tmp_path / "foreign.db"
    edited(foreign, "CREATE TABLE t (x)")
    for path, message in (
        (text, "is no plan library (file is not a database)"),
        (foreign, "is a database of another program, not a plan library"),
        (tmp_path / "none.db", "does not exist"),
        (tmp_path, "is no plan library (unable to open database file)"),
    ):
        answer = run("library", command, path)
        assert (answer.exit_code, answer.stdout, answer.stderr) == (2, "", f"error: {path}: {message}\n")
    assert run(*CASE, "--library", foreign).exit_code == 2
    assert not (tmp_path / "none.db").exists()


def test_a_wrong_command_name_gets_a_suggestion(run: Any) -> None:
    answer = run("library", "stat", "plans.db")
    assert answer.exit_code == 2
    assert "Did you mean 'stats'?" in answer.stderr
