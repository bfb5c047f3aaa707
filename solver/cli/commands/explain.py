"""``tileproof explain``: why a branch is impossible, and the least change that would help."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from ..option_groups import with_option_groups
from ..options import AsJson, CaseOptions, SearchOptions
from ..progress import Progress
from ..shell import ExitCode

if TYPE_CHECKING:
    from ....models.context import Context
    from ....models.plan import BranchName
    from ...result import BranchResult, CaseResult
    from ...search.solve_branch import SolveOptions


@with_option_groups
def explain(
    given: CaseOptions,
    how: SearchOptions,
    as_json: AsJson = False,
) -> None:
    """Why a branch is infeasible: up to three minimal sets of rules that clash, with numbers and repairs.

    Example: tileproof explain -b 128 -m 32 -n 128 -k 64 --branch merge_batch
    """
    case = given.case()
    branches, pins, seconds = how.read()
    ctx = how.context(case)
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
