"""What ``solve --robust`` does and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .progress import Progress

if TYPE_CHECKING:
    from ...models.context import Context
    from ...models.plan import BranchName
    from ..measure.robust import RobustChoice
    from ..search.solve_branch import SolveOptions


def robust_choice(
    ctx: Context, branches: tuple[BranchName, ...], options: SolveOptions, intervals: Path | None
) -> RobustChoice | None:
    """The plan of least worst regret over the corners of the constants' intervals."""
    from ..measure.robust import robust
    from ..measure.spans import spans_from, spans_of

    spans = spans_of(ctx.spec) if intervals is None else spans_from(intervals, ctx.spec)
    with Progress("robust choices", 1):
        return robust(
            ctx.case,
            spans,
            hardware=ctx.spec,
            rules=ctx.profile,
            environment=ctx.environment,
            branches=branches,
            options=options,
        )


def show_robust(choice: RobustChoice | None) -> None:
    """Print the choice: what was varied, whether the nominal winner can lose, and the plan."""
    from ..describe import deciding_parameters
    from .render import make_console

    console = make_console()
    console.print()
    if choice is None:
        console.print("robust: no plan was found at every corner", style="bold")
        return
    names = ", ".join(f"{s.constant.name} {s.low:.4g} to {s.high:.4g} ({s.why})" for s in choice.spans)
    console.print(f"robust choice over {len(choice.corners)} corners of {names or 'nothing: no constant matters here'}")
    if not choice.nominal_can_lose:
        console.print("the nominal winner is the best plan at every corner", style="bold")
        return
    worst = max(choice.corners, key=lambda corner: corner.nominal_us - corner.best_us)
    share = 100 * (worst.nominal_us - worst.best_us) / worst.best_us
    where = ", ".join(f"{name} {value:.4g}" for name, value in worst.values.items())
    console.print(
        f"the nominal winner can lose: {choice.nominal_regret_us:.3f} us ({share:.1f} %) behind the best plan "
        f"at {where}",
        soft_wrap=not console.is_terminal,
    )
    if choice.plan == choice.nominal:
        console.print("no plan has a smaller worst regret: keep the nominal winner", style="bold")
        return
    console.print(
        f"robust: {choice.plan.branch}, {deciding_parameters(choice.plan)}: {choice.robust_at_nominal_us:.3f} us "
        f"nominal ({choice.nominal_us:.3f} for the winner), at most {choice.regret_us:.3f} us behind the best plan"
        + ("" if choice.proven else " (not proven least in the time limit)"),
        style="bold",
        soft_wrap=not console.is_terminal,
    )
