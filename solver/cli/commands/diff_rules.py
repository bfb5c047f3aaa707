"""``tileproof diff-rules``: what the policy rules of a profile cost, and which of them it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from ..option_groups import with_option_groups
from ..options import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_HARDWARE,
    DEFAULT_TIME_LIMIT,
    AsJson,
    CaseOptions,
    Environment,
    Hardware,
    TimeLimit,
    seconds_of,
)
from ..progress import Progress
from ..shell import ExitCode

if TYPE_CHECKING:
    from ....models.rules import Profile
    from ...result import CaseResult
    from ...review.rules_diff import Difference


@with_option_groups
def diff_rules(
    given: CaseOptions,
    hardware: Hardware = DEFAULT_HARDWARE,
    environment: Environment = DEFAULT_ENVIRONMENT,
    time_limit: TimeLimit = DEFAULT_TIME_LIMIT,
    as_json: AsJson = False,
) -> None:
    """The same case under rules v0.4, source and none: where branch or tile change, and the rule that does it.

    Example: tileproof diff-rules -b 128 -m 32 -n 128 -k 64
    """
    case = given.case()
    seconds = seconds_of(time_limit)
    from ...api import make_context

    ctx = make_context(case, hardware, "none", environment)
    from ....models.rules import PROFILES
    from ...review.rules_diff import FREE, difference, solve_profiles
    from ...search.solve_branch import SolveOptions

    done: list[Profile] = []
    with Progress("profiles", len(PROFILES)) as progress:

        def on_profile(profile: Profile) -> None:
            done.append(profile)
            progress.update(len(done), profile)

        options = SolveOptions(time_limit=seconds, explain=False)
        results = solve_profiles(case, ctx.spec, ctx.environment, options, on_profile)
    differences = [difference(results, profile, ctx.spec) for profile in PROFILES if profile != FREE]
    if as_json:
        print(json.dumps(_document(results, differences), indent=2))
    else:
        _show(results, differences)
    verdicts = {result.verdict for result in results.values()}
    if verdicts == {"infeasible"}:
        raise typer.Exit(ExitCode.INFEASIBLE)
    raise typer.Exit(ExitCode.OPEN if "open" in verdicts else ExitCode.SOLVED)


def _document(results: dict[Profile, CaseResult], differences: list[Difference]) -> dict[str, object]:
    first = next(iter(results.values()))
    profiles = {}
    for profile, result in results.items():
        best = result.best
        profiles[profile] = {
            "winner": result.winner,
            "verdict": result.verdict,
            "latency_us": best.latency_us if best is not None else None,
            "latency_ticks": best.latency_ticks if best is not None else None,
            "plan": best.plan.model_dump() if best is not None and best.plan is not None else None,
        }
    return {
        "case": first.case.model_dump(mode="json"),
        "hardware": first.hardware,
        "environment": first.environment,
        "profiles": profiles,
        "differences": [difference.to_json() for difference in differences],
    }


def _show(results: dict[Profile, CaseResult], differences: list[Difference]) -> None:
    from ....models.rules import rule_info
    from ...describe import case_line, deciding_parameters
    from ...review.rules_diff import FREE
    from ..render import make_console, new_table

    console = make_console()
    first = next(iter(results.values()))
    console.print(case_line(first.case), style="bold", soft_wrap=not console.is_terminal)
    console.print(
        f"hardware {first.hardware}, environment {first.environment}; times are those of latency model "
        f"{first.model_version}, not measured",
        soft_wrap=not console.is_terminal,
    )
    console.print()
    table = new_table("rules", "winner", "latency us", "deciding parameters", numbers=("latency us",))
    for profile, result in results.items():
        best = result.best
        us = "" if best is None or best.latency_us is None else f"{best.latency_us:.3f}"
        plan = "" if best is None or best.plan is None else deciding_parameters(best.plan)
        table.add_row(profile, result.winner or result.verdict, us, plan)
    console.print(table)
    for difference in differences:
        console.print()
        console.print(f"{difference.profile} against {FREE}: {_sentence(difference)}", soft_wrap=True)
        for check in difference.broken:
            sides = f"{check.left} {check.operator} {check.right} is false for the optimum of {FREE}"
            console.print(f"  {check.rule}: {sides}: {rule_info(check.rule).text}", soft_wrap=True)


def _sentence(difference: Difference) -> str:
    before, after = difference.branches
    if difference.same:
        return "the same branch and tile"
    if before is None or after is None:
        return f"{before or 'no plan'} -> {after or 'no plan'}"
    if before != after:
        text = f"branch {before} -> {after}"
    else:
        text = ", ".join(f"{name} {old} -> {new}" for name, (old, new) in difference.fields.items())
    cost = difference.cost_us or 0.0
    return f"{text}; {'no slower' if cost <= 0 else f'{cost:.3f} us slower'}"
