"""``tileproof explain``: why a branch is impossible, and the least change that would help."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from ..options import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_HARDWARE,
    DEFAULT_RULES,
    DEFAULT_TIME_LIMIT,
    AsJson,
    Batch,
    BatchA,
    BatchB,
    Bias,
    BiasBatch,
    Branches,
    Columns,
    Depth,
    Environment,
    FormatB,
    Hardware,
    InputType,
    OutputType,
    Pins,
    Rows,
    Rules,
    TimeLimit,
    TransposedA,
    TransposedB,
    branches_of,
    case_of,
    pins_of,
    seconds_of,
)
from ..progress import Progress
from ..shell import ExitCode

if TYPE_CHECKING:
    from ....models.context import Context
    from ....models.plan import BranchName
    from ...result import BranchResult, CaseResult
    from ...search.solve_branch import SolveOptions


def explain(
    m: Rows,
    n: Columns,
    k: Depth,
    b: Batch = None,
    batch_a: BatchA = None,
    batch_b: BatchB = None,
    dtype: InputType = "fp16",
    out_dtype: OutputType = None,
    trans_a: TransposedA = False,
    trans_b: TransposedB = False,
    bias: Bias = None,
    bias_batch: BiasBatch = False,
    format_b: FormatB = "ND",
    hardware: Hardware = DEFAULT_HARDWARE,
    branch: Branches = None,
    rules: Rules = DEFAULT_RULES,
    environment: Environment = DEFAULT_ENVIRONMENT,
    pin: Pins = None,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT,
    as_json: AsJson = False,
) -> None:
    """Why a branch is infeasible: up to three minimal sets of rules that clash, with numbers and repairs.

    Example: tileproof explain -b 128 -m 32 -n 128 -k 64 --branch merge_batch
    """
    texts = {
        "batch_a": batch_a, "batch_b": batch_b, "m": m, "n": n, "k": k, "dtype": dtype, "out_dtype": out_dtype,
        "bias": bias, "format_b": format_b,
    }  # fmt: skip
    case = case_of(texts, b, {"trans_a": trans_a, "trans_b": trans_b, "bias_batch": bias_batch})
    branches, pins, seconds = branches_of(branch), pins_of(pin), seconds_of(time_limit)
    from ...api import make_context

    ctx = make_context(case, hardware, rules, environment)  # type: ignore[arg-type]
    from ...search.solve_branch import SolveOptions

    result = _explained(ctx, branches, SolveOptions(time_limit=seconds, tie_break=False, pins=pins))
    if as_json:
        print(json.dumps(_document(result), indent=2))
    else:
        from ..render import show_explanation

        show_explanation(result)
    statuses = {branch.status.value for branch in result.branches.values()}
    raise typer.Exit(ExitCode.OPEN if "unknown" in statuses else ExitCode.SOLVED)


def _explained(ctx: Context, branches: tuple[BranchName, ...], options: SolveOptions) -> CaseResult:
    """Verdict and conflicts of every branch (the fastest plan need not be the unique one)."""
    from ...search.best import assemble, each_solved

    with Progress("branches", len(branches)) as progress:

        def announced() -> Iterator[BranchName]:
            for done, name in enumerate(branches):
                progress.update(done, name)
                yield name

        solved = dict(each_solved(ctx, announced(), options))
    return assemble(ctx, solved).model_copy(update={"pins": [pin.text for pin in options.pins]})


def _document(result: CaseResult) -> dict[str, Any]:
    whole = result.to_json()
    shared = ("case", "hardware", "rules", "environment", "model_version", "pins")
    branches = {name: _branch_document(branch) for name, branch in result.branches.items()}
    return {**{name: whole[name] for name in shared}, "branches": branches}


def _branch_document(branch: BranchResult) -> dict[str, Any]:
    from ...describe import conflicts_of
    from ...result import Status

    if branch.status is Status.INFEASIBLE:
        return {
            "status": "infeasible",
            "conflicts": [conflict.model_dump(mode="json") for conflict in conflicts_of(branch)],
            "policy_only": branch.policy_only,
            "without_policy_us": branch.without_policy_us,
            "reason": branch.reason,
        }
    if branch.latency_us is None:
        return {"status": "unknown", "reason": branch.reason}
    return {"status": "feasible", "latency_us": branch.latency_us, "bound_us": branch.bound_us}
