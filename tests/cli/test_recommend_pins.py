"""Pins of ``recommend``: columns of the case table, a pins file, and reasons on demand."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import tileproof
from tileproof.models.case import make_case
from tileproof.models.plan import BRANCHES
from tileproof.solver.tables.frames import read_cases
from tileproof.solver.tables.pins_file import pinned_rows, read_pins

CASES = """case_id,m,n,k,pin_base_m,pin_base_k,pin_l1_form
free,64,96,128,,,
wide,64,96,128,48,32..64,
least,64,96,128,>=32,,
both,64,96,128, base_n ,,
form,64,64,64,,,b
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def recommended(run: Any, folder: Path, *options: str | Path) -> tuple[Any, dict[str, dict[str, str]]]:
    answer = run("recommend", folder / "cases.csv", "--out", folder / "result.csv", "--rules", "none", *options)
    with (folder / "result.csv").open(newline="") as stream:
        return answer, {row["case_id"]: row for row in csv.DictReader(stream)}


def test_pin_columns_bind_their_row(run: Any, tmp_path: Path) -> None:
    write(tmp_path / "cases.csv", CASES)
    answer, rows = recommended(run, tmp_path)
    assert (answer.exit_code, answer.stdout) == (0, "")
    pins = {name: row["pins"] for name, row in rows.items()}
    assert pins == {
        "free": "", "wide": "base_m=48; base_k=32..64", "least": "base_m>=32", "both": "base_m=base_n",
        "form": "l1_form=b",
    }  # fmt: skip
    assert rows["free"]["price_of_pins_us"] == ""
    assert rows["wide"]["plan_base_m"] == "48"
    assert 32 <= int(rows["wide"]["plan_base_k"]) <= 64
    assert int(rows["least"]["plan_base_m"]) >= 32
    assert rows["both"]["plan_base_m"] == rows["both"]["plan_base_n"]
    assert (rows["form"]["winner"], rows["form"]["plan_l1_form"]) == ("iter_batch", "b")
    result = tileproof.solve(make_case(m=64, n=96, k=128), rules="none", pins=["base_m=48", "base_k=32..64"])
    assert rows["wide"]["price_of_pins_us"] == str(result.price_of_pins_us)
    assert "conflict_special" not in rows["free"]


def test_a_pins_file_binds_all_rows_and_single_ones(run: Any, tmp_path: Path) -> None:
    write(tmp_path / "cases.csv", CASES)
    pins = write(
        tmp_path / "pins.toml",
        '[pins]\nbase_m = 64\nl0_buffers = "2"\n\n[case."wide"]\nbase_k = ">=16"\nbase_n = "48..96"\n'
        '[case.free]\nbase_m = "<=16"\nlatency_us = "<=1e3"\n[case.both]\nlatency_us = 1e6\n',
    )  # fmt: skip
    rows = {
        row.cells["case_id"]: [pin.text for pin in row.pins]
        for row in pinned_rows(read_cases(tmp_path / "cases.csv"), read_pins(pins))
    }
    assert rows == {
        "free": ["base_m<=16", "l0_buffers=2", "latency_us<=1e3"],
        "wide": ["base_m=48", "l0_buffers=2", "base_k=32..64", "base_n=48..96"],
        "least": ["base_m>=32", "l0_buffers=2"],
        "both": ["base_m=base_n", "l0_buffers=2", "latency_us=1000000.0"],
        "form": ["base_m=64", "l0_buffers=2", "l1_form=b"],
    }
    answer, results = recommended(run, tmp_path, "--pins", pins)
    assert answer.exit_code == 3
    assert results["wide"]["pins"] == "base_m=48; l0_buffers=2; base_k=32..64; base_n=48..96"
    assert results["both"]["verdict"] == "infeasible"
    assert results["form"]["plan_base_m"] == "64"


def test_explain_names_the_rules_that_clash(run: Any, tmp_path: Path) -> None:
    """K = 128 columns of 512: L0B is too small, whatever the branch."""
    write(tmp_path / "cases.csv", "case_id,m,n,k,pin_base_n,pin_base_k\nx,64,512,128,512,128\n")
    answer, rows = recommended(run, tmp_path, "--explain")
    assert (answer.exit_code, rows["x"]["verdict"]) == (3, "infeasible")
    assert rows["x"]["conflict_special"] == "entry.k_at_most_1"
    assert rows["x"]["conflict_asw_basic"] == "pin.base_k;pin.base_n;cap.l0b"
    assert all(rows["x"][f"conflict_{name}"] for name in BRANCHES)
    answer, rows = recommended(run, tmp_path)
    assert rows["x"]["verdict"] == "infeasible"
    assert "conflict_special" not in rows["x"]


def test_an_unknown_pin_column_stops_before_the_work(run: Any, tmp_path: Path) -> None:
    cases = write(tmp_path / "cases.csv", "m,n,k,pin_base_q\n1,2,3,4\n")
    answer = run("recommend", cases, "--out", tmp_path / "r.csv")
    assert answer.exit_code == 2
    assert answer.stderr.startswith(
        f"error: {cases}, row 1, column 'pin_base_q': is not known; did you mean 'pin_base_"
    )
    assert answer.stderr.endswith(", b, and pin_ before a plan field\n")


def test_a_bad_pin_cell_is_named_and_the_others_done(run: Any, tmp_path: Path) -> None:
    cases = write(
        tmp_path / "cases.csv",
        "case_id,m,n,k,pin_base_m,pin_l1_form,pin_base_k\nfirst,64,64,64,12x,,\nsecond,64,64,64,,z,\n"
        "third,64,64,64,16,,\nfourth,64,64,64,,,full_load\n",
    )
    answer, rows = recommended(run, tmp_path)
    assert answer.exit_code == 2
    assert answer.stderr.splitlines() == [
        f"error: {cases}, row 2, column pin_base_m: pin 'base_m=12x': '12x' is no number and no plan field",
        f"error: {cases}, row 3, column pin_l1_form: pin 'l1_form=z': l1_form is one of a, b, c, d, e, f",
        f"error: {cases}, row 5: pin 'base_k=full_load': full_load is a word and cannot be compared with a number",
        "4 cases: 1 optimal, 0 infeasible, 0 unproven, 3 bad rows",
    ]
    assert rows["first"]["error"] == "column pin_base_m: pin 'base_m=12x': '12x' is no number and no plan field"
    assert rows["third"]["plan_base_m"] == "16"


BAD_FILES: dict[bytes, str] = {
    b"[pins": "is no TOML (",
    b"[pins]\nbase_m = 1\nbase_m = 2\n": "is no TOML (",
    b"\xff": "is not UTF-8 text (invalid start byte at byte 0)",
    b"[pin]\nbase_m = 1\n": "[pin] is not known; did you mean 'pins'?; allowed: [pins] and [case.\"<case_id>\"]",
    b"pins = 3\n": "pins must be a table of field = value",
    b"case = 3\n": 'case must be tables [case."<case_id>"]',
    b"[case]\nfree = 1\n": 'case."free" must be a table of field = value',
    b"[pins]\nbase_q = 3\n": "[pins] pin 'base_q=3': 'base_q' is no plan field; did you mean 'base_n'?",
    b'[case.free]\nbase_m = ""\n': "[case.\"free\"] pin 'base_m=' is not understood",
    b"[pins]\nbase_m = true\n": '[pins] base_m: give a number or a text like "64..256", ">=4" or another field',
    b"[pins]\nbase_m = [1, 2]\n": "[pins] base_m: give a number or a text",
    b'[pins]\nl1_form = "z"\n': "[pins] pin 'l1_form=z': l1_form is one of",
    b"[case.fred]\nbase_m = 16\n": "[case.\"fred\"]: no row has this case_id; did you mean 'free'?",
}


@pytest.mark.parametrize("content", BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_bad_pins_file_is_one_sentence(run: Any, tmp_path: Path, content: bytes) -> None:
    cases = write(tmp_path / "cases.csv", CASES)
    (tmp_path / "pins.toml").write_bytes(content)
    answer = run("recommend", cases, "--out", tmp_path / "r.csv", "--pins", tmp_path / "pins.toml")
    assert (answer.exit_code, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
    assert answer.stderr.startswith(f"error: {tmp_path / 'pins.toml'}: {BAD_FILES[content]}")
    assert not (tmp_path / "r.csv").exists()


def test_a_pins_file_that_is_not_there(run: Any, tmp_path: Path) -> None:
    cases = write(tmp_path / "cases.csv", CASES)
    answer = run("recommend", cases, "--out", tmp_path / "r.csv", "--pins", tmp_path / "no.toml")
    message = f"error: {tmp_path / 'no.toml'}: cannot be read: No such file or directory\n"
    assert (answer.exit_code, answer.stderr) == (2, message)
