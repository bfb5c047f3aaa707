"""``tileproof solve --pin``: echo, price, conflicts for people, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tileproof
from tileproof.models.case import make_case
from tileproof.models.evaluation import Evaluation
from tileproof.models.pins import parse_pins
from tileproof.models.plan import Plan
from tileproof.solver import api
from tileproof.solver.cli import render
from tileproof.solver.describe import conflicts_of
from tileproof.solver.result import BranchResult, Conflict, ConflictMember, Status
from tileproof.solver.search.best import assemble, least_ticks
from tileproof.solver.search.solve_branch import Solved, SolveOptions

SMALL = ("solve", "-m", "64", "-n", "96", "-k", "128", "--rules", "none")


def pins(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--pin", text)]


def test_every_form_of_a_pin_is_obeyed_and_echoed(run: Any) -> None:
    texts = ["base_m=48", "base_k=32..64", "step_ka>=2", "full_load=none", "base_m=base_n", "latency_us<=50"]
    answer = run(*SMALL, *pins(*texts), "--branch", "asw_basic", "--json")
    document = json.loads(answer.stdout)
    plan = document["branches"]["asw_basic"]["plan"]
    assert (answer.exit_code, document["pins"]) == (0, texts)
    assert plan["base_m"] == plan["base_n"] == 48
    assert 32 <= plan["base_k"] <= 64
    assert plan["step_ka"] >= 2
    assert plan["full_load"] == "none"
    free = tileproof.solve(make_case(m=64, n=96, k=128), rules="none", branches=["asw_basic"])
    assert free.best is not None
    price = document["branches"]["asw_basic"]["latency_us"] - (free.best.latency_us or 0)
    assert document["price_of_pins_us"] == pytest.approx(price)
    assert price > 0


def test_people_see_the_pins_and_their_price(run: Any) -> None:
    options = (*SMALL, "--branch", "asw_basic")
    document = json.loads(run(*options, *pins("base_m = 64", "base_n>=96"), "--json").stdout)
    lines = run(*options, *pins("base_m = 64", "base_n>=96")).stdout.splitlines()
    assert lines[2] == "pins: base_m=64, base_n>=96"
    assert f"price of the pins: {document['price_of_pins_us']:.3f} us over the optimum without them" in lines
    assert document["price_of_pins_us"] > 0.001
    free = run(*options, *pins("base_m>=16")).stdout.splitlines()
    assert "price of the pins: none" in free
    assert not any(line.startswith("price") for line in run(*options).stdout.splitlines())


def test_the_price_refers_to_the_least_latency_and_not_to_the_winner() -> None:
    """The winner may be 1/1000 above the least latency; a pin that changes the winner must not seem to gain."""

    def solved(ticks: int) -> Solved:
        evaluation = Evaluation(Plan(branch="asw_basic"), ticks, {}, (), 0)
        return Solved(BranchResult(status=Status.OPTIMAL, latency_us=float(ticks), latency_ticks=ticks), evaluation)

    result = assemble(
        api.make_context(make_case(m=4, n=4, k=4)),
        {
            "special": Solved(BranchResult(status=Status.INFEASIBLE)),
            "asw_basic": solved(10_005),
            "stream_k": solved(10_000),
        },
    )
    assert result.winner == "asw_basic"
    assert least_ticks(result) == 10_000


def test_a_price_too_small_to_show_is_not_called_zero() -> None:
    result = tileproof.solve(make_case(m=4, n=4, k=4), pins=["base_m=16"], branches=["asw_basic"])
    small = result.model_copy(update={"price_of_pins_us": 0.0002})
    assert render._price(small) == "less than 0.001 us over the optimum without them"


def test_an_open_branch_leaves_the_price_unknown(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = api.assemble

    def undecided(*args: Any) -> Any:
        return real(*args).model_copy(update={"verdict": "open"})

    monkeypatch.setattr(api, "assemble", undecided)
    answer = run(*SMALL, *pins("base_m=16"), "--branch", "asw_basic")
    assert answer.exit_code == 4
    assert "price of the pins: not known, a branch is open at the time limit" in answer.stdout


def test_impossible_pins_exit_3_with_the_conflict(run: Any) -> None:
    """Issue 3: the tile is too large for L0B, which its two sides and nothing else explain."""
    answer = run(
        "solve", "-m", "64", "-n", "512", "-k", "128", "--rules", "none", "--branch", "asw_basic",
        *pins("base_m=64", "base_n=512", "base_k=128"),
    )  # fmt: skip
    assert answer.exit_code == 3
    *_, last = answer.stdout.partition("no winner: ")
    assert last == (
        "every branch asked is proven infeasible with these pins\n"
        "\n"
        "infeasible branches\n"
        "  asw_basic: pin.base_k + pin.base_n + cap.l0b have no plan together, any one fewer has\n"
        "    pin.base_k: base_k=128; the nearest base_k that works is 64\n"
        "    pin.base_n: base_n=512; the nearest base_n that works is 256\n"
        "    cap.l0b: l0_buffers * columns of B in L0B * base_k * s <= L0B (needs 131072 B, has 65536 B); "
        "the limit would have to be 131072 B\n"
    )


def test_conflicts_fit_the_terminal_and_name_the_others(run: Any) -> None:
    answer = run("solve", "-b", "8", "-m", "256", "-n", "512", "-k", "1024", COLUMNS="80")
    text = answer.stdout.partition("infeasible branches\n")[2]
    assert max(map(len, text.splitlines())) <= 80
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("  stream_k: "))
    assert lines[start].startswith("  stream_k: policy.streamk_parallel: B * ceil(M/16) * ceil(N/16) < C")
    assert "    other conflicts: policy.streamk_k" in lines[start:]
    assert lines[-1].startswith("    policy only: without policy rules the branch would reach ")
    assert lines[-1].endswith(" us")


def test_policy_is_behind_a_branch_when_each_conflict_has_a_policy_rule() -> None:
    """iter_batch: one conflict of policy and hardware rules, and yet feasible without policy rules."""
    case = make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024)
    branch = tileproof.solve(case, branches=["iter_batch"]).branches["iter_batch"]
    without = tileproof.solve(case, branches=["iter_batch"], rules="none").branches["iter_batch"]
    assert not branch.policy_only
    assert branch.without_policy_us == without.latency_us is not None


def test_a_field_that_a_branch_lacks_makes_it_infeasible(run: Any) -> None:
    answer = run("solve", "-m", "64", "-n", "96", "-k", "1", *pins("base_k=16"), "--branch", "special")
    assert answer.exit_code == 3
    assert "  special: pin.base_k: base_k=16; branch special has no base_k; drop the pin\n" in answer.stdout


def test_an_infeasible_branch_without_conflict_says_why() -> None:
    member = ConflictMember(rule="policy.x", kind="policy", text="t", repair="r")
    other = Conflict(members=[member], policy_only=True)
    assert conflicts_of(BranchResult(status=Status.INFEASIBLE)) == []
    both = conflicts_of(BranchResult(status=Status.INFEASIBLE, conflict=[member], other_conflicts=[other]))
    assert both == [other, other]


BAD_PINS = {
    "base_q=3": "pin 'base_q=3': 'base_q' is no plan field; did you mean 'base_n'?",
    "base_m": (
        "pin 'base_m' is not understood; allowed: field=value, field=low..high, field>=value, field=field"
    ),
    "base_m=12x": "pin 'base_m=12x': '12x' is no number and no plan field",
    "base_k=9..3": "pin 'base_k=9..3': the range is empty, 9 is above 3",
    "l1_form=z": "pin 'l1_form=z': l1_form is one of a, b, c, d, e, f",
    "base_m=1.5": "pin 'base_m=1.5': base_m is a whole number",
    "base_m=full_load": "pin 'base_m=full_load': full_load is a word and cannot be compared with a number",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD_PINS)
@pytest.mark.parametrize("command", ["solve", "explain"])
def test_a_bad_pin_is_one_sentence(run: Any, command: str, text: str) -> None:
    answer = run(command, *SMALL[1:], "--branch", "asw_basic", "--pin", text)
    assert (answer.exit_code, answer.stdout, answer.stderr) == (2, "", f"error: {BAD_PINS[text]}\n")


def test_options_carry_pins_too() -> None:
    result = tileproof.solve(
        make_case(m=64, n=96, k=128), branches=["asw_basic"], options=SolveOptions(pins=parse_pins(["base_m=16"]))
    )
    assert result.pins == ["base_m=16"]
    assert result.price_of_pins_us is not None
