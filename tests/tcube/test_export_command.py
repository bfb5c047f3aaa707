"""``tileproof export``: one case, tables, formats and what is refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tileproof.models.plan import Plan
from tileproof.solver.cli.main import app
from tileproof.solver.tables.tilings import plan_of_cells
from tileproof.solver.tcube import read_tcube_text, tcube_to_fields

Run = Callable[..., Any]
CASES = "case_id,b,m,n,k\nlayer/1,8,128,128,128\nlayer_1,2,64,64,64\nouter,4,20,20,1\n"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """The command, run in a folder with ``cases.csv`` and its ``plans.csv``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*args: str) -> Any:
        return CliRunner().invoke(app, list(args))

    Path("cases.csv").write_text(CASES, encoding="utf-8")
    return call


@pytest.fixture
def tables(run: Run) -> Run:
    """With plans."""
    assert run("recommend", "cases.csv", "--out", "result.csv", "--plans", "plans.csv").exit_code == 0
    return run


def plans() -> list[Plan]:
    with open("plans.csv", encoding="utf-8", newline="") as stream:
        return [plan_of_cells(row) for row in csv.DictReader(stream)]


def imported(text: str) -> list[Plan]:
    return [Plan.model_validate(tcube_to_fields(tiling)[1]) for tiling in read_tcube_text(text)]


@pytest.mark.parametrize(("style", "ending"), [("tcubetiling-json", "json"), ("tcubetiling-c", "c")])
def test_tables_to_files(tables: Run, style: str, ending: str) -> None:
    result = tables("export", "cases.csv", "plans.csv", "--format", style, "--out", "folder/tilings")
    assert result.exit_code == 2
    assert "error: plans.csv, row 4, column branch: branch special works on the vector cores" in result.stderr
    assert "2 files written to folder/tilings, 1 bad rows" in result.stderr
    files = sorted(Path("folder/tilings").iterdir())
    assert [path.name for path in files] == [f"layer_1_row2.{ending}", f"layer_1_row3.{ending}"]
    assert [imported(path.read_text(encoding="utf-8"))[0] for path in files] == plans()[:2]


@pytest.mark.parametrize("style", ["tcubetiling-json", "tcubetiling-c"])
def test_tables_to_stdout(tables: Run, style: str) -> None:
    result = tables("export", "cases.csv", "plans.csv", "--format", style)
    assert result.exit_code == 2
    assert imported(result.stdout) == plans()[:2]


def test_tables_to_csv(tables: Run) -> None:
    result = tables("export", "cases.csv", "plans.csv", "--format", "csv", "--out", "out")
    assert result.exit_code == 0
    assert sorted(path.name for path in Path("out").iterdir()) == ["layer_1_row2.csv", "layer_1_row3.csv", "outer.csv"]
    with open("out/outer.csv", encoding="utf-8", newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["case_id"], row["batch_a"], row["m"], row["k"]) == ("outer", "4", "20", "1")
    assert plan_of_cells(row) == plans()[2]


def test_plans_without_rows_are_found_by_name(tables: Run) -> None:
    Path("some.csv").write_text("case_id,branch,base_m,base_n,base_k\nlayer_1,asw_basic,16,32,48\n", encoding="utf-8")
    result = tables("export", "cases.csv", "some.csv")
    assert result.exit_code == 0
    assert json.loads(result.stdout)[0]["baseN"] == 32
    assert "depthA1" not in json.loads(result.stdout)[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case_id,branch,base_m\nlayer_1,asw_basic,x\n", "plans.csv, row 2, column base_m: 'x'"),
        ("case_id,branch\nlayer_1,asw\n", "plans.csv, row 2, column branch: 'asw' is not known"),
        ("case_id,branch\nnone,asw_basic\n", "plans.csv, row 2, column case_id: 'none' is no case_id of the cases"),
        ("case_id,row,branch\n,9,asw_basic\n", "plans.csv, row 2, column row: '9' is no row of a case"),
        ("case_id,row,branch\nouter,3,asw_basic\n", "plans.csv, row 2, column case_id: is 'outer', but row 3"),
        ("case_id,branch\nlayer_1\n", "plans.csv, row 2: 1 cells, but the header has 2"),
        (
            "case_id,brunch\nlayer_1,asw_basic\n",
            "row 1, column 'brunch': is no column of a plan table; did you mean 'branch'?",
        ),
        ("case_id,base_m\nlayer_1,16\n", "row 1, column branch: is missing"),
        ("branch\nasw_basic\n", "column row or case_id is missing"),
        ("case_id,branch,branch\nouter,asw_basic,asw_basic\n", "column branch: is there more than once"),
        ("case_id,branch\n", "there is no plan below the header"),
        ("", "the file is empty"),
    ],
)
def test_wrong_plan_tables(run: Run, text: str, message: str) -> None:
    Path("plans.csv").write_text(text, encoding="utf-8")
    result = run("export", "cases.csv", "plans.csv")
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_wrong_case_is_named_and_the_others_are_written(tables: Run) -> None:
    Path("cases.csv").write_text(CASES.replace("8,128", "8,-128"), encoding="utf-8")
    result = tables("export", "cases.csv", "plans.csv", "--format", "csv", "--out", "out")
    assert result.exit_code == 2
    assert "plans.csv, row 2: its case is wrong: cases.csv, row 2, column m" in result.stderr
    assert len(list(Path("out").iterdir())) == 2


def test_one_case(run: Run) -> None:
    result = run("export", "-b", "8", "-m", "256", "-n", "256", "-k", "256", "--pin", "base_m=64")
    assert result.exit_code == 0
    (plan,) = imported(result.stdout)
    assert plan.base_m == 64
    assert (
        run(
            "export", "-b", "8", "-m", "256", "-n", "256", "-k", "256", "--out", "t.c", "--format", "tcubetiling-c"
        ).exit_code
        == 0
    )
    assert imported(Path("t.c").read_text(encoding="utf-8"))[0].branch


def test_one_case_without_a_plan(run: Run) -> None:
    result = run("export", "-m", "8", "-n", "8", "-k", "8", "--branch", "special")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "proven infeasible" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["cases.csv"], "PLANS.csv is missing"),
        (["cases.csv", "plans.csv", "-m", "4"], "exclude tables"),
        (["-m", "4"], "-n, -k missing"),
        ([], "-m, -n, -k missing"),
        (["-m", "4", "-n", "4", "-k", "4", "--format", "tcubetiling-jso"], "did you mean 'tcubetiling-json'?"),
        (["-m", "4", "-n", "4", "-k", "4", "--out", "nowhere/t.json"], "nowhere"),
        (["-m", "4", "-n", "4", "-k", "1"], "vector cores"),
        (["missing.csv", "plans.csv"], "missing.csv: cannot be read"),
    ],
)
def test_wrong_options(run: Run, args: list[str], message: str) -> None:
    result = run("export", *args)
    assert result.exit_code == 2
    assert message in result.stderr


def test_sources_are_not_written_over(tables: Run) -> None:
    Path("cases.csv").write_text("case_id,m,n,k\nplans,64,64,64\n", encoding="utf-8")
    assert tables("recommend", "cases.csv", "--out", "result.csv", "--plans", "plans.csv").exit_code == 0
    result = tables("export", "cases.csv", "plans.csv", "--format", "csv", "--out", ".")
    assert result.exit_code == 2
    assert "plans.csv: cannot be written" in result.stderr
    result = tables("export", "cases.csv", "plans.csv", "--out", "cases.csv")
    assert (result.exit_code, "cases.csv: the folder cannot be made" in result.stderr) == (2, True)
