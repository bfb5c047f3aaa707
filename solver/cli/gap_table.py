"""The ladder from a plan down to what no plan can beat."""

from __future__ import annotations

from ..review.gap import Gap
from .render import make_console, new_table

_NAMES = {
    "branch_optimum": "optimum of the branch",
    "optimum": "optimum of all branches",
    "roofline": "roofline: Cube, HBM, output",
    "traffic": "least traffic into L1",
}


def show_gap(gap: Gap) -> None:
    """One line for the plan and one for every rung."""
    table = new_table("ladder", "us", "plan / it", numbers=("us", "plan / it"))
    table.add_row("this plan", f"{gap.ctx.us(gap.ticks):.3f}", "")
    for name, ticks, ratio in gap.rungs():
        us = "not known" if ticks is None else f"{gap.ctx.us(ticks):.3f}"
        table.add_row(_NAMES[name], us, "" if ratio is None else f"{ratio:.3f}")
    make_console().print(table)
