"""``tileproof evaluate``: plans of recommend, partial plans, TCubeTiling, bad rows, exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "cases.csv"
CASES = "case_id,b,m,n,k\nmine,8,256,512,1024\nother,128,32,128,64\n"
PLAN = "case_id,branch,base_m,base_n,base_k,step_ka,step_kb,l0_buffers,l0c_buffers,l1_buffers,fixpipe_unitflag,full_load,tail_m,tail_n"
GOOD = "mine,asw_basic,256,176,64,4,4,2,1,2,1,none,1,1"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture
def evaluate(run: Any, tmp_path: Path) -> Any:
    """``evaluate(plans_text, *options)``: the answer and the rows of eval.csv."""

    def call(plans: str, *options: str, cases: str = CASES) -> tuple[Any, list[dict[str, str]]]:
        (tmp_path / "cases.csv").write_text(cases)
        (tmp_path / "plans.csv").write_text(plans)
        out = tmp_path / "eval.csv"
        out.unlink(missing_ok=True)
        answer = run("evaluate", tmp_path / "cases.csv", tmp_path / "plans.csv", "--out", out, *options)
        return answer, read(out) if out.exists() else []

    return call


@pytest.mark.parametrize("rules", ["v0.4", "none", "source"])
def test_plans_of_recommend_evaluate_to_the_same_ticks(run: Any, tmp_path: Path, rules: str) -> None:
    plans, out = tmp_path / "plans.csv", tmp_path / "eval.csv"
    run("recommend", EXAMPLES, "--out", tmp_path / "r.csv", "--plans", plans, "--rules", rules)
    answer = run("evaluate", EXAMPLES, plans, "--out", out)
    assert answer.exit_code == 0, answer.stderr
    before, after = read(plans), read(out)
    assert len(before) == len(after) > 10
    for plan, judged in zip(before, after, strict=True):
        assert (judged["feasible"], judged["violations"], judged["chosen"]) == ("1", "", "")
        assert {name: judged[name] for name in plan} == plan
        stages = sum(float(judged[f"{name}_us"]) for name in ("head", "mmad", "mte2", "mte1", "fixpipe", "vector"))
        assert stages > 0
        assert judged["advice"]


def test_partial_plans_say_what_was_chosen(evaluate: Any) -> None:
    plans = "case_id,branch,base_m,base_n\nmine,asw_basic,128,\nother,,,\n"
    answer, rows = evaluate(plans)
    assert (answer.exit_code, answer.stderr) == (0, "2 plans: 2 feasible, 0 infeasible, 0 bad\n")
    assert rows[0]["base_m"] == "128"
    assert "base_n" in rows[0]["chosen"].split("; ")
    assert rows[1]["chosen"].startswith("branch; ")
    assert rows[1]["branch"] == "iter_batch"


def test_infeasible_rows_name_their_rules(evaluate: Any) -> None:
    deep = GOOD.replace(",64,4,4,", ",128,2,2,")
    answer, rows = evaluate(f"{PLAN}\n{GOOD}\n{deep}\nmine,asw_basic,512,176,,,,,,,,,,\n")
    assert answer.exit_code == 3
    assert [row["feasible"] for row in rows] == ["1", "0", "0"]
    assert rows[1]["violations"] == "cap.l0a 131072 <= 65536; cap.l0b 90112 <= 65536"
    assert rows[2]["violations"].startswith("cap.l0c 360448 <= 262144; pin.base_m (")
    assert rows[2]["latency_us"] == ""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD.replace("256", "many", 1), "row 3, column base_m: 'many'"),
        (GOOD.replace("256", "0", 1), "row 3, column base_m: 0 is out of range"),
        (GOOD.replace("asw_basic", "asw"), "row 3, column branch: 'asw' is not known; allowed: special"),
        (GOOD.replace("mine", "mina"), "row 3, column case_id: 'mina' is the name of no case; did you mean 'mine'?"),
        (GOOD + ",1", "row 3: 15 cells, but the header has 14"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_done(evaluate: Any, line: str, message: str) -> None:
    answer, rows = evaluate(f"{PLAN}\n{GOOD}\n{line}\n{GOOD}\n")
    assert answer.exit_code == 2
    assert f"plans.csv, {message}" in answer.stderr
    assert answer.stderr.endswith("3 plans: 2 feasible, 0 infeasible, 1 bad\n")
    assert [row["feasible"] for row in rows] == ["1", "", "1"]
    assert rows[1]["error"]
    assert rows[0]["latency_ticks"] == rows[2]["latency_ticks"] != ""


def test_an_unknown_column_is_named_and_left_out(evaluate: Any) -> None:
    answer, rows = evaluate(f"{PLAN},base_q\n{GOOD},3\n")
    assert answer.exit_code == 2
    assert "row 1, column 'base_q': is not known and left out; did you mean 'base_" in answer.stderr
    assert rows[0]["feasible"] == "1"


def test_rows_are_joined_by_line_as_well(evaluate: Any) -> None:
    cases = "case_id,b,m,n,k\nmine,8,256,512,1024\nmine,8,256,512,512\nworse,1,1,1,x\n"
    rest = GOOD.removeprefix("mine")
    plans = f"row,{PLAN}\n3,mine{rest}\n,mine{rest}\n9,mine{rest}\n2,other{rest}\n4,worse{rest}\n2,{rest}\n"
    answer, rows = evaluate(plans, cases=cases)
    assert answer.exit_code == 2
    errors = [row["error"] for row in rows]
    assert errors[0] == errors[5] == ""
    assert errors[1] == "column case_id: 'mine' is the name of 2 cases; give column row"
    assert errors[2] == "column row: '9' is no line of a case"
    assert errors[3] == "column case_id: is 'other', but line 2 of the cases is 'mine'"
    assert errors[4].startswith("its case cannot be used: ")
    assert [rows[i]["row"] for i in (0, 5)] == ["3", "2"]
    assert rows[0]["latency_ticks"] != rows[5]["latency_ticks"]


def test_gap_columns(evaluate: Any) -> None:
    answer, rows = evaluate(f"{PLAN}\n{GOOD}\n{GOOD.replace('256', '64', 1)}\n", "--gap")
    assert answer.exit_code == 0
    assert rows[0]["optimum_ratio"] == "1.0"
    assert float(rows[1]["optimum_ratio"]) > 1.05
    for row in rows:
        assert float(row["latency_us"]) >= float(row["roofline_us"]) > 0
        assert float(row["latency_us"]) >= float(row["traffic_us"]) > 0


def test_json(evaluate: Any, run: Any, tmp_path: Path) -> None:
    answer, _ = evaluate(f"{PLAN}\n{GOOD}\n{GOOD.replace('mine', 'none')}\n", "--json", "--gap")
    good, bad = json.loads(answer.stdout)
    assert (good["case_id"], good["row"], good["plan_row"], good["feasible"], good["violations"]) == ("mine", 2, 2, True, [])  # fmt: skip
    assert good["plan"]["m_cnt"] == 1
    assert good["stages_us"]["head"] == 2.5
    assert good["gap"]["optimum"]["ratio"] == 1.0
    assert bad["error"].startswith("column case_id: ")
    alone = run("evaluate", tmp_path / "cases.csv", tmp_path / "plans.csv", "--json")
    assert json.loads(alone.stdout)[0]["latency_ticks"] == good["latency_ticks"]


def test_usage_errors(run: Any, tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(CASES)
    (tmp_path / "plans.csv").write_text(f"{PLAN}\n{GOOD}\n")
    files = (tmp_path / "cases.csv", tmp_path / "plans.csv")
    for options, message in (
        ((), "give --out FILE, --json or both"),
        (("--json", "--format", "yaml"), "--format: 'yaml' is not known"),
        (("--json", "--rules", "v9"), "rules: 'v9' is not known"),
        (("--out", files[1]), "plans.csv: cannot be written"),
    ):
        answer = run("evaluate", *files, *options)
        assert (answer.exit_code, message in answer.stderr) == (2, True), answer.stderr


def test_structs_of_the_vendor(run: Any, tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(CASES)
    plans = tmp_path / "plans.csv"
    run("recommend", tmp_path / "cases.csv", "--out", tmp_path / "r.csv", "--plans", plans, "--rules", "none")
    for style in ("json", "c"):
        run("export", tmp_path / "cases.csv", plans, "--format", f"tcubetiling-{style}", "--out", tmp_path / style)
        text = [path.read_text() for path in sorted((tmp_path / style).iterdir())]
        file = tmp_path / f"all.{style}"
        file.write_text(json.dumps([json.loads(part) for part in text]) if style == "json" else "\n".join(text))
        answer = run("evaluate", tmp_path / "cases.csv", file, "--format", "tcubetiling", "--json")
        assert answer.exit_code == 0, answer.stderr
        for row, plan in zip(json.loads(answer.stdout), read(plans), strict=True):
            assert (row["case_id"], row["feasible"], row["violations"]) == (plan["case_id"], True, [])
            assert str(row["latency_ticks"]) == plan["latency_ticks"]


def test_a_bare_struct_is_a_partial_plan(run: Any, tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(CASES)
    file = tmp_path / "host.c"
    file.write_text(
        "TCubeTiling mine = { .baseM = 256, .baseN = 176, .baseK = 128, .dbL0A = 2 };\n"
        "TCubeTiling other = { .baseM = 32, .baseN = 128, .baseK = 64 };\n"
        "TCubeTiling nowhere = { .baseM = 32 };\n"
    )
    answer = run("evaluate", tmp_path / "cases.csv", file, "--format", "tcubetiling", "--json")
    assert answer.exit_code == 2
    first, second, third = json.loads(answer.stdout)
    assert first["feasible"] is False
    assert any("131072 <= 65536" in text for text in first["violations"])
    assert second["feasible"] is True
    assert second["plan"]["base_n"] == 128
    assert "host.c, row 3" in answer.stderr
    assert third["error"]
