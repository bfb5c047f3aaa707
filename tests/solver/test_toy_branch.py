"""A branch that only ``toy_branch.py`` knows appears in every command and in the Python API, and its optimum is one."""

from __future__ import annotations

import csv
import io
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import toy_commands
from random_cases import small_chip
from toy_branch import NAME, Panel, with_panel

from tileproof import evaluate, solve
from tileproof.hardware import InputError, get_spec
from tileproof.models.branches import BRANCH_OF, likely_first, registered
from tileproof.models.case import make_case
from tileproof.models.context import Context
from tileproof.models.plan import BRANCHES, Plan
from tileproof.solver.proof.enumerator import Enumerator
from tileproof.solver.proof.verify import verify_result
from tileproof.solver.result import Status
from tileproof.solver.review.judge import judge
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch
from tileproof.solver.tcube.word_writer import write_words

CASES = "case_id,b,m,n,k\nwide,1,512,2048,256\nmany,8,256,512,1024\nsmall,40,16,64,64\n"
TILINGS = "case_id,m,n,k,branch,base_m,base_n,base_k\nx,512,2048,256,panel,128,128,64\ny,512,2048,256,,128,128,64\n"
CASE = ("-m", "512", "-n", "2048", "-k", "256", "--rules", "none")
COMMANDS = {
    "solve": ("solve", *CASE, "--json", "--certificate", "proof.json", "--library", "library"),
    "shown": ("solve", *CASE),
    "winner only": ("solve", *CASE, "--winner-only", "--json"),
    "pinned": ("solve", *CASE, "--pin", "branch=panel", "--pin", "iterate_order=1", "--json"),
    "unknown": ("solve", *CASE, "--branch", "panal"),
    "help": ("solve", "--help"),
    "library": ("library", "export", "library", "--out", "library.csv"),
    "verify": ("verify", "proof.json"),
    "explain": ("explain", *["-b", "40", "-m", "16", "-n", "64", "-k", "64", "--branch", "panel", "--json"]),
    "recommend": ("recommend", "cases.csv", "--rules", "none", "--out", "r.csv", "--plans", "plans.csv", "--jobs", "1"),
    "evaluate": ("evaluate", "cases.csv", "plans.csv", "--gap", "--json"),
    "audit": ("audit", "tilings.csv", "--rules", "none", "--json", "--jobs", "1"),
    "diff-rules": ("diff-rules", *["-m", "64", "-n", "96", "-k", "512", "--json"]),
    "export": ("export", "cases.csv", "plans.csv", "--out", "structs"),
    "import": ("evaluate", "cases.csv", "structs/wide.json", "--format", "tcubetiling", "--json"),
    "next-experiments": ("next-experiments", "cases.csv", "--count", "1", "--rules", "none", "--out", "next.csv"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """(exit code, stdout, stderr) of every command, and ``folder``."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "cases.csv").write_text(CASES)
    (folder / "tilings.csv").write_text(TILINGS)
    command = [sys.executable, toy_commands.__file__]
    given = json.dumps([list(arguments) for arguments in COMMANDS.values()])
    ended = subprocess.run(command, input=given, capture_output=True, text=True, cwd=folder, check=True, timeout=300)
    return {**dict(zip(COMMANDS, json.loads(ended.stdout), strict=True)), "folder": folder}


@pytest.fixture
def panel() -> Iterator[Panel]:
    with with_panel() as branch:
        yield branch


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


# -- commands
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "unknown"])
def test_every_command_ends_well(name: str, answers: dict[str, Any]) -> None:
    code, _, err = answers[name]
    assert (code, "error" in err) == (0, False), err


def test_solve_lists_it_and_it_wins(answers: dict[str, Any]) -> None:
    result = json.loads(answers["solve"][1])
    assert list(result["branches"]) == [*BRANCHES, NAME]
    assert (result["winner"], result["verdict"]) == (NAME, "proven")
    assert "panel *" in answers["shown"][1]
    assert "order 0, base" in answers["shown"][1]
    assert json.loads(answers["winner only"][1])["winner"] == NAME
    assert json.loads(answers["pinned"][1])["branches"][NAME]["plan"]["iterate_order"] == 1


def test_options_know_its_name(answers: dict[str, Any]) -> None:
    assert NAME in answers["help"][1]
    code, _, err = answers["unknown"]
    assert code == 2
    assert "did you mean 'panel'?" in err


def test_its_certificate_is_checked(answers: dict[str, Any]) -> None:
    proof = json.loads((answers["folder"] / "proof.json").read_text())
    assert proof["winner"] == NAME
    assert answers["verify"][1].startswith("proof.json: ok")


def test_explain_names_its_own_rule(answers: dict[str, Any]) -> None:
    conflict = json.loads(answers["explain"][1])["branches"][NAME]
    members = [[(m["rule"], m["needs"], m["has"]) for m in one["members"]] for one in conflict["conflicts"]]
    assert members == [[("policy.panel_block", 2048, 16384)]]
    assert conflict["policy_only"]


def test_recommend_has_its_column(answers: dict[str, Any]) -> None:
    result = rows(answers["folder"] / "r.csv")
    assert [row[f"status_{NAME}"] for row in result] == ["optimal"] * 3
    assert [row["winner"] for row in result][:2] == [NAME, NAME]
    assert [row["branch"] for row in rows(answers["folder"] / "plans.csv")][:2] == [NAME, NAME]
    assert rows(answers["folder"] / "library.csv")[0]["winner"] == NAME


def test_its_plans_are_judged(answers: dict[str, Any]) -> None:
    for row in json.loads(answers["evaluate"][1])[:2]:
        assert (row["plan"]["branch"], row["feasible"], row["chosen"]) == (NAME, True, [])
        assert row["gap"]["branch_optimum"]["ratio"] == row["gap"]["optimum"]["ratio"] == 1
    given, open_ = json.loads(answers["audit"][1])
    assert given["legal"]
    assert given["branch"] == open_["branch"] == NAME


def test_profiles_are_compared_with_it(answers: dict[str, Any]) -> None:
    """64 x 96 elements of C have less than the 16 KB that v0.4 asks of a block."""
    document = json.loads(answers["diff-rules"][1])
    assert document["profiles"]["none"]["winner"] == NAME
    assert document["profiles"]["v0.4"]["winner"] != NAME


def test_its_structs_come_back(answers: dict[str, Any]) -> None:
    (row,) = json.loads(answers["import"][1])
    assert row["plan"]["branch"] == NAME
    assert row["feasible"]
    assert NAME in answers["next-experiments"][1]


# -- Python
def test_the_api_solves_and_evaluates_it(panel: Panel) -> None:
    case = make_case(m=512, n=2048, k=256)
    for all_branches in (True, False):
        result = solve(case, rules="none", all_branches=all_branches)
        assert list(result.branches) == list(BRANCHES)
        assert result.winner == NAME
        assert result.best is not None
        assert result.best.plan is not None
        judged = evaluate(case, result.best.plan)
        assert (judged.latency_ticks, judged.feasible) == (result.best.latency_ticks, True)


def test_its_verdict_is_confirmed_without_the_solver(panel: Panel) -> None:
    result = solve(make_case(m=48, n=96, k=64), rules="none", branches=[NAME])
    (line,) = verify_result(result, hardware="ascend950pr")
    assert (line.where, line.ok) == (NAME, True), line.text


def test_no_order_misses_a_branch(panel: Panel) -> None:
    assert set(likely_first(BRANCHES)) == set(BRANCHES) == set(BRANCH_OF)
    assert likely_first(BRANCHES)[0] == NAME  # the likeliest
    assert list(BRANCHES)[-1] == NAME


def test_names_are_checked_against_the_registry() -> None:
    with with_panel() as branch:
        assert Plan(branch=NAME).branch == NAME
        with pytest.raises(ValueError, match="already"), registered(branch):
            pass
    with pytest.raises(ValueError, match="'stream_k'"):
        Plan(branch=NAME)
    assert NAME not in BRANCH_OF


def test_a_partial_plan_is_completed(panel: Panel) -> None:
    ctx = Context.of(make_case(m=512, n=2048, k=256), get_spec("ascend950pr"), "none")
    verdict = judge(ctx, {"branch": NAME, "base_m": 64, "iterate_order": 1})
    assert verdict.feasible
    assert "base_n" in verdict.chosen
    assert not {"base_m", "iterate_order"} & set(verdict.chosen)
    optimum = verdict.evaluation
    assert optimum is not None
    stated = judge(ctx, {**optimum.plan.model_dump(exclude_none=True), "step_kb": 2})
    assert stated.rules == ("derived.step_kb",)


def test_no_shipped_kernel_takes_it(panel: Panel) -> None:
    case = make_case(m=512, n=2048, k=256)
    plan = solve(case, rules="none", branches=[NAME]).branches[NAME].plan
    assert plan is not None
    with pytest.raises(InputError, match="no shipped kernel has branch panel"):
        write_words(case, plan, get_spec("ascend950pr"))


def toy_context(seed: int) -> Context:
    rng = random.Random(f"panel {seed}")
    m, n = rng.sample(range(1, 49), 2)
    batch = rng.choice((1, 2, 5))
    case = make_case(
        batch_a=batch, batch_b=batch, m=m, n=n, k=rng.choice((2, 17, 40, 64, 130)), trans_a=rng.random() < 0.4,
        trans_b=rng.random() < 0.4, dtype=rng.choice(("fp16", "fp32", "int8")),
    )  # fmt: skip
    return Context.of(case, small_chip(rng), rng.choice(("none", "v0.4")))


def test_its_optimum_is_that_of_the_listing(panel: Panel) -> None:
    """Every plan is listed without CP-SAT. M differs from N, so the HBM bytes tell the two orders apart."""
    statuses = set()
    for seed in range(25):
        ctx = toy_context(seed)
        solved = solve_branch(ctx, NAME, SolveOptions())
        best = Enumerator(ctx, panel, exhaustive=True).run().best
        statuses.add(solved.result.status)
        assert solved.result.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL), seed
        if best is not None:
            assert solved.result.latency_ticks == best.ticks, seed
            assert solved.result.plan == best.plan, seed
    assert Status.OPTIMAL in statuses


def test_pins_on_its_decisions_hold(panel: Panel) -> None:
    case = make_case(m=512, n=2048, k=256)
    result = solve(case, rules="none", branches=[NAME], pins=["base_m=64", "step_ka=3", "iterate_order=1"])
    plan = result.branches[NAME].plan
    assert plan is not None
    assert (plan.base_m, plan.step_ka, plan.step_kb, plan.iterate_order) == (64, 3, 3, 1)
    broken = solve(case, rules="none", branches=[NAME], pins=["iterate_order=2"]).branches[NAME]
    assert broken.conflict is not None
    assert {member.rule for member in broken.conflict} == {"pin.iterate_order", "cover.panel_order"}
