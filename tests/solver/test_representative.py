"""Cases whose answer is known beforehand: the table of the v0.4 analysis, and sizes at the edges."""

from __future__ import annotations

from typing import Any

import pytest

import tileproof
from tileproof.models.branches import BRANCH_OF
from tileproof.models.case import make_case
from tileproof.models.evaluation import evaluate_plan
from tileproof.solver.api import make_context
from tileproof.solver.proof.enumerator import Enumerator
from tileproof.solver.result import CaseResult


def solve(rules: str = "v0.4", **case: Any) -> CaseResult:
    """Solve a case on the default chip and check the winner's plan again."""
    result = tileproof.solve(make_case(**case), rules=rules)  # type: ignore[arg-type]
    for branch in result.branches.values():
        if branch.plan is not None:
            evaluation = evaluate_plan(make_context(result.case, rules=rules), branch.plan)  # type: ignore[arg-type]
            assert evaluation.feasible
            assert evaluation.ticks == branch.latency_ticks
    return result


@pytest.mark.parametrize(
    ("winner", "case"),
    [
        ("special", dict(batch_a=4, batch_b=4, m=300, n=200, k=0)),
        ("special", dict(batch_a=128, batch_b=128, m=64, n=64, k=1)),
        ("to_matmul", dict(batch_a=128, batch_b=1, m=2048, n=2048, k=2048)),
        ("asw_basic", dict(batch_a=32, batch_b=32, m=4096, n=4096, k=4096)),
        ("asw_basic", dict(batch_a=2, batch_b=2, m=8192, n=8192, k=1024)),
        ("stream_k", dict(m=64, n=64, k=65536)),
    ],
)
def test_winner_of_the_v04_table(winner: str, case: dict[str, Any]) -> None:
    result = solve(**case, dtype="bf16")
    assert (result.winner, result.verdict) == (winner, "proven")


def test_the_v04_merge_example_is_solved_without_policy() -> None:
    case = dict(batch_a=128, batch_b=128, m=32, n=128, k=64, dtype="bf16")
    merge = solve(**case).branches["merge_batch"]
    assert [member.rule for member in merge.conflict or []] == ["policy.merge_core_bytes"]
    assert merge.policy_only
    free = solve("none", **case).branches["merge_batch"]
    assert free.status == "optimal"
    assert merge.without_policy_us == free.latency_us


def test_32_batches_of_4096_cubed_in_iter_batch() -> None:
    """Beyond 2^30 ticks of 1/1024 cycle, where a careless model returns a wrong optimum (form f, every plan listed)."""
    branch = solve(batch_a=32, batch_b=32, m=4096, n=4096, k=4096).branches["iter_batch"]
    ctx = make_context(make_case(batch_a=32, batch_b=32, m=4096, n=4096, k=4096))
    best = Enumerator(ctx, BRANCH_OF["iter_batch"], exhaustive=True).run().best
    assert best is not None
    assert branch.plan is not None
    assert branch.plan.l1_form == "f"
    assert (branch.latency_ticks, branch.plan) == (best.ticks, best.plan)
    assert (branch.latency_us or 0) * 1650 * 1024 > 2**30


def test_64_batches_of_512_cubed_tie_without_policy() -> None:
    """Design section 10: IterBatch (f) and ASW_Basic tie at 60.24 us under none, ASW_Basic wins under v0.4."""
    free = solve("none", batch_a=64, batch_b=64, m=512, n=512, k=512)
    assert free.winner == "iter_batch"
    assert free.branches["iter_batch"].latency_us == pytest.approx(60.24, abs=0.005)
    assert free.branches["asw_basic"].latency_us == pytest.approx(60.24, abs=0.005)
    assert solve(batch_a=64, batch_b=64, m=512, n=512, k=512).winner == "asw_basic"


@pytest.mark.parametrize("rules", ["v0.4", "none"])
@pytest.mark.parametrize(
    "case",
    [
        dict(m=17408, n=17408, k=3473408),
        dict(m=1, n=65535, k=65536),
        dict(m=65537, n=1, k=65535),
        dict(m=104729, n=7919, k=611953),
        dict(m=7, n=7, k=7),
        dict(m=1, n=1, k=2),
        dict(m=1, n=1, k=2**31 - 1),
        dict(batch_a=65536, batch_b=65536, m=1, n=1, k=4),
        dict(batch_a=65537, batch_b=1, m=17, n=31, k=2),
        dict(batch_a=2**18, batch_b=2**18, m=64, n=96, k=128),
        dict(batch_a=8192, batch_b=8192, m=9, n=1, k=4, dtype="fp32"),
        dict(batch_a=1024, batch_b=1024, m=4096, n=128, k=65537, dtype="bf16", bias="fp16", format_b="NZ"),
        dict(batch_a=65537, batch_b=65537, m=4096, n=17, k=2048, trans_a=True, bias="int32"),
    ],
)
def test_big_and_odd_sizes_are_proven(rules: str, case: dict[str, Any]) -> None:
    assert solve(rules, **case).verdict == "proven"


def test_beyond_the_sound_range_the_answer_stays_open_with_its_reason() -> None:
    result = solve(m=2**31 - 1, n=2**20, k=3)
    assert result.verdict == "open"
    assert "2^62" in (result.branches["asw_basic"].reason or "")
    assert result.branches["asw_basic"].plan is not None


def test_an_empty_result_takes_no_time() -> None:
    result = solve(batch_a=4, batch_b=4, m=0, n=7, k=5)
    assert (result.winner, result.verdict) == ("special", "proven")
    assert result.branches["special"].latency_ticks == 0


def test_k_1_is_hardly_slower_than_k_2() -> None:
    """Design section 5: with 16-bit output the vector path of K = 1 costs at most 1 % more than K = 2."""
    for size in ((128, 64, 64), (4096, 8, 8), (16, 512, 512), (1, 2048, 4096)):
        batch, m, n = size
        one, two = (solve("none", batch_a=batch, batch_b=batch, m=m, n=n, k=k).best for k in (1, 2))
        assert one is not None
        assert two is not None
        assert (one.latency_us or 0) <= 1.01 * (two.latency_us or 0), size


def test_the_winner_does_not_change_from_run_to_run() -> None:
    case = make_case(batch_a=8, batch_b=8, m=256, n=512, k=1024)
    first, second = (tileproof.solve(case, rules="none") for _ in range(2))
    plain = [{n: b.model_dump(exclude={"solve_ms"}) for n, b in r.branches.items()} for r in (first, second)]
    assert plain[0] == plain[1]
