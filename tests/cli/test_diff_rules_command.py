"""``tileproof diff-rules``: what a profile changes, and the rule that does it."""

from __future__ import annotations

import json
from typing import Any

import tileproof
from tileproof.models.case import make_case


def test_the_rule_that_caps_the_grid(run: Any) -> None:
    answer = run("diff-rules", "-m", "64", "-n", "64", "-k", "65536", "--json")
    assert answer.exit_code == 0
    document = json.loads(answer.stdout)
    assert set(document["profiles"]) == {"v0.4", "source", "none"}
    for profile in ("v0.4", "source", "none"):
        best = tileproof.solve(make_case(m=64, n=64, k=65536), rules=profile, all_branches=False).best
        assert best is not None
        assert document["profiles"][profile]["latency_ticks"] == best.latency_ticks
    v04 = next(item for item in document["differences"] if item["profile"] == "v0.4")
    assert v04["branch"] == ["stream_k", "stream_k"]
    assert v04["fields"]["grid_k"] == [32, 6]
    assert [rule["rule"] for rule in v04["rules"]] == ["policy.streamk_k"]
    assert v04["cost_us"] > 5


def test_in_words(run: Any) -> None:
    text = run("diff-rules", "-m", "64", "-n", "64", "-k", "65536").stdout
    assert "v0.4 against none: grid_m 1 -> 4, grid_k 32 -> 6" in text
    assert "policy.streamk_k: 1730560 <= 65536 is false for the optimum of none" in text


def test_nothing_changes_for_an_empty_product(run: Any) -> None:
    answer = run("diff-rules", "-b", "4", "-m", "5", "-n", "5", "-k", "0")
    assert answer.exit_code == 0
    assert answer.stdout.count("the same branch and tile") == 2


def test_a_wrong_option_is_one_sentence(run: Any) -> None:
    answer = run("diff-rules", "-m", "x", "-n", "5", "-k", "0")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "m: 'x' is no whole number" in answer.stderr


def test_solve_shows_the_ladder(run: Any) -> None:
    options = ("-b", "8", "-m", "256", "-n", "512", "-k", "1024", "--gap")
    assert "roofline: Cube, HBM, output" in run("solve", *options).stdout
    gap = json.loads(run("solve", *options, "--json").stdout)["gap"]
    assert gap["optimum"]["ratio"] == gap["branch_optimum"]["ratio"] == 1.0
    assert gap["plan_us"] >= gap["roofline"]["us"] > gap["traffic"]["us"]
    assert "gap" not in json.loads(run("solve", *options[:-1], "--json").stdout)
