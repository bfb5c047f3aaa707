"""``tileproof explain``: whole answers for the named examples of the issue, JSON, exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tileproof.models.plan import BRANCHES
from tileproof.solver.result import BranchResult, Status
from tileproof.solver.search import solve_branch as branch_module
from tileproof.solver.search.solve_branch import Solved


def conflicts(run: Any, text: str) -> list[list[str]]:
    """Rule ids of every conflict of the one branch asked."""
    answer = run("explain", *text.split(), "--json")
    assert answer.exit_code == 0, answer.stderr
    (branch,) = json.loads(answer.stdout)["branches"].values()
    return [[member["rule"] for member in conflict["members"]] for conflict in branch.get("conflicts", [])]


def test_whole_answer_of_a_conflict_of_two_pins_and_a_buffer(run: Any) -> None:
    options = "-m 256 -n 256 -k 256 --pin base_m=128 --pin base_n=256 --pin base_k=256 --rules none"
    answer = run("explain", *options.split(), "--branch", "asw_basic", COLUMNS="100")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert answer.stdout == (
        "[1,256,256] x [1,256,256] fp16 -> fp16\n"
        "hardware ascend950pr, rules none, environment profiler; times are those of latency model 1, not measured\n"
        "pins: base_m=128, base_n=256, base_k=256\n"
        "\n"
        "asw_basic: infeasible\n"
        "  pin.base_k + pin.base_n + cap.l0b have no plan together, any one fewer has\n"
        "    pin.base_k: base_k=256\n"
        "      repair: the nearest base_k that works is 128\n"
        "    pin.base_n: base_n=256\n"
        "      repair: the nearest base_n that works is 128\n"
        "    cap.l0b: l0_buffers * columns of B in L0B * base_k * s <= L0B (needs 131072 B, has 65536 B)\n"
        "      repair: the limit would have to be 131072 B\n"
        "\n"
    )


def test_whole_answer_of_policy_conflicts_and_a_feasible_branch(run: Any) -> None:
    answer = run(
        "explain",
        *[
            "-b",
            "31",
            "-m",
            "64",
            "-n",
            "64",
            "-k",
            "64",
            "--branch",
            "iter_batch",
            "--branch",
            "stream_k",
            "--branch",
            "asw_basic",
        ],
    )
    without = run("explain", *["-b", "31", "-m", "64", "-n", "64", "-k", "64", "--rules", "none", "--json"])
    reach = {name: branch.get("latency_us") for name, branch in json.loads(without.stdout)["branches"].items()}
    assert answer.exit_code == 0
    assert answer.stdout.partition("\n\n")[2] == (
        "iter_batch: infeasible\n"
        "  policy.iter_batches (policy only): B >= C: every core has a batch (here 31 >= 32 is false)\n"
        "      repair: the threshold would have to be 31 batches instead of 32\n"
        f"  policy only: without policy rules the branch would reach {reach['iter_batch']:.3f} us\n"
        "\n"
        f"asw_basic: feasible, {reach['asw_basic']:.3f} us\n"
        "\n"
        "stream_k: infeasible, 2 conflicts that share no rule\n"
        "  1. policy.streamk_parallel (policy only): B * ceil(M/16) * ceil(N/16) < C: too few blocks uncut "
        "(condition 1) (here 496 <= 31 is false)\n"
        "      repair: no change of it alone helps: policy.streamk_k still clashes\n"
        "  2. policy.streamk_k (policy only): K >= 1690 * grid_k^2: the reduction stays small (condition 2) (needs 1690 elements, has 64 elements)\n"
        "      repair: no change of it alone helps: policy.streamk_parallel still clashes\n"
        f"  policy only: without policy rules the branch would reach {reach['stream_k']:.3f} us\n"
        "\n"
    )


def test_the_named_examples(run: Any) -> None:
    base = "--branch asw_basic --rules none"
    l0b = f"-m 64 -n 512 -k 128 {base} --pin base_m=64 --pin base_n=512 --pin base_k=128"
    assert [set(c) for c in conflicts(run, l0b)] == [{"pin.base_n", "pin.base_k", "cap.l0b"}]
    aligned = f"-m 64 -n 128 -k 200 --dtype int8 {base} --pin base_k=48"
    assert [set(c) for c in conflicts(run, aligned)] == [{"pin.base_k", "align.base_k"}]
    (covered,) = conflicts(run, f"-m 256 -n 256 -k 256 {base} --pin single_core_m=96 --pin m_cnt=2")
    assert {"pin.single_core_m", "pin.m_cnt"} <= set(covered)
    merge = "-b 128 -m 32 -n 128 -k 64 --dtype bf16 --branch merge_batch"
    assert conflicts(run, merge) == [["policy.merge_core_bytes"]]
    assert conflicts(run, f"{merge} --rules none") == []
    assert conflicts(run, "-b 31 -m 64 -n 64 -k 64 --branch iter_batch --rules none") == []
    unequal = conflicts(run, "--batch-a 64 -m 16 -n 16 -k 64 --branch merge_batch --rules none")
    assert ["entry.equal_batch"] in unequal
    assert conflicts(run, "-b 64 -m 64 -n 64 -k 64 --branch iter_batch --rules none --pin grid_m=3") == [["pin.grid_m"]]


@pytest.mark.parametrize("branch", [name for name in BRANCHES if name != "special"])
def test_no_cube_branch_without_a_product(run: Any, branch: str) -> None:
    assert ["entry.k_at_least_2"] in conflicts(run, f"-b 4 -m 256 -n 256 -k 0 --branch {branch}")


def test_json_has_members_with_numbers_and_repairs(run: Any) -> None:
    answer = run(
        "explain",
        *["-b", "128", "-m", "32", "-n", "128", "-k", "64", "--branch", "merge_batch", "--pin", "base_k>=16", "--json"],
    )
    document = json.loads(answer.stdout)
    assert (document["pins"], document["rules"], document["hardware"]) == (["base_k>=16"], "v0.4", "ascend950pr")
    branch = document["branches"]["merge_batch"]
    assert branch["without_policy_us"] > 0
    assert {**branch, "without_policy_us": 0} == {
        "status": "infeasible",
        "conflicts": [
            {
                "members": [
                    {
                        "rule": "policy.merge_core_bytes",
                        "kind": "policy",
                        "text": "ceil(B/C) * (M+N) * K * s >= 480 KB a core (condition 6) (here 81920 >= 491520 is false)",
                        "repair": "the threshold would have to be 81920 B instead of 491520",
                        "needs": 81920,
                        "has": 491520,
                    }
                ],
                "policy_only": True,
            }
        ],
        "policy_only": True,
        "without_policy_us": 0,
        "reason": None,
    }


def test_all_branches_by_default_in_their_order(run: Any) -> None:
    document = json.loads(run("explain", *["-m", "16", "-n", "16", "-k", "1", "--json"]).stdout)
    assert list(document["branches"]) == BRANCHES
    assert document["branches"]["special"]["status"] == "feasible"
    assert document["branches"]["special"]["latency_us"] > 0


def test_a_branch_without_verdict_exits_4(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    undecided = Solved(BranchResult(status=Status.UNKNOWN, reason="time limit"))
    monkeypatch.setattr(branch_module, "solve_branch", lambda *_: undecided)
    answer = run("explain", *["-m", "64", "-n", "64", "-k", "64", "--branch", "asw_basic"])
    assert answer.exit_code == 4
    assert answer.stdout.endswith("\nasw_basic: no verdict, time limit\n\n")


def test_bad_input(run: Any) -> None:
    answer = run("explain", *["-m", "64", "-n", "64", "-k", "64", "--branch", "asw-basik"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith("error: --branch: 'asw_basik' is not known; did you mean 'asw_basic'?")
