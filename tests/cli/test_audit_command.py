"""``tileproof audit``: table, CSV, JSON, Markdown, bad rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

TILINGS = """case_id,b,m,n,k,branch,base_m,base_n,base_k
mine,8,256,512,1024,asw_basic,256,176,64
wide,8,256,512,1024,asw_basic,512,176,64
"""


@pytest.fixture
def tilings(tmp_path: Path) -> Path:
    path = tmp_path / "tilings.csv"
    path.write_text(TILINGS)
    return path


def test_json(run: Any, tilings: Path) -> None:
    answer = run("audit", tilings, "--json")
    assert answer.exit_code == 3
    good, wide = json.loads(answer.stdout)
    assert (good["row"], good["legal"], good["violations"], good["branch"]) == (2, True, [], "asw_basic")
    assert good["latency_us"] == good["branch_optimum_us"] == good["optimum_us"]
    assert (good["regret_pct"], good["first_change"]) == (0.0, "none")
    assert (wide["legal"], wide["regret_pct"], wide["latency_us"]) == (False, None, None)
    assert wide["violations"] == ["cap.l0c", "pin.base_m", "pin.base_n"]
    assert answer.stderr.startswith("2 tilings: 1 legal, 1 not, 0 bad; regret 0.0 % at the median")


def test_table_csv_and_markdown(run: Any, tilings: Path, tmp_path: Path) -> None:
    text = run("audit", tilings).stdout
    assert "first change" in text
    assert "wide" in text
    out = tmp_path / "audit.csv"
    answer = run("audit", tilings, "--out", out, "--markdown")
    assert answer.stdout.startswith("| row | case |")
    with out.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["legal"] for row in rows] == ["1", "0"]
    assert "cap.l0c 360448 <= 262144" in rows[1]["violations"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case_id,m,n\nx,1,2\n", "row 1: column k missing"),
        ("m,n,k\n", "there is no tiling below the header"),
        ("", "the file is empty"),
        ("m;n;k\n1;2;3\n", "the columns are not separated by commas"),
    ],
)
def test_a_wrong_file_is_one_sentence(run: Any, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "tilings.csv"
    path.write_text(text)
    answer = run("audit", path)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert message in answer.stderr


def test_bad_rows_and_columns_are_named(run: Any, tilings: Path) -> None:
    tilings.write_text(TILINGS.replace("base_k", "base_x") + "bad,8,256,512,1024,asw_basic,1.5,,\n")
    answer = run("audit", tilings, "--json")
    assert answer.exit_code == 2
    assert "tilings.csv, row 1, column 'base_x': is not known and left out; did you mean 'base_" in answer.stderr
    assert "tilings.csv, row 4, column base_m" in answer.stderr
    assert [row.get("legal") for row in json.loads(answer.stdout)] == [True, False, None]
