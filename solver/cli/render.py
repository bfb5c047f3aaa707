"""What ``solve`` prints for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from textwrap import wrap

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table

from ...models.plan import BranchName
from ..describe import BUFFER_NAMES, case_line, deciding_parameters, percent
from ..result import BranchResult, BufferUse, CaseResult, Status

#: Columns when stdout is no terminal and COLUMNS is not set.
_PLAIN_WIDTH = 140


class _Output(Console):
    """Console that leaves a closed pipe to the command."""

    def on_broken_pipe(self) -> None:
        """Not here: the command ends itself."""
        raise BrokenPipeError


def make_console() -> Console:
    """Console on stdout that prints text as it is."""
    console = _Output(file=sys.stdout, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in console._environ:
        console.width = _PLAIN_WIDTH
    return console


def new_table(*columns: str, numbers: tuple[str, ...] = ()) -> Table:
    """Table in the house style; ``numbers`` names the right-aligned columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, column in enumerate(columns):
        justify: JustifyMethod = "right" if column in numbers else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=index == 0)
    return table


def show_result(result: CaseResult, *, winner_only: bool = False) -> None:
    """Header, branches, the winner's plan and buffers, and why other branches are impossible."""
    console = make_console()
    console.print(case_line(result.case), style="bold", soft_wrap=not console.is_terminal)
    console.print(
        f"hardware {result.hardware}, rules {result.rules}, environment {result.environment}; "
        f"times are those of latency model {result.model_version}, not measured",
        soft_wrap=not console.is_terminal,
    )
    console.print()
    shown = [name for name in result.branches if not winner_only or name == result.winner]
    if shown:
        console.print(_branch_table(result, shown))
        console.print()
    _show_winner(console, result)
    infeasible = [name for name, branch in result.branches.items() if branch.status is Status.INFEASIBLE]
    if infeasible and not (winner_only and result.winner):
        _show_conflicts(console, result, infeasible)


def _branch_table(result: CaseResult, names: list[BranchName]) -> Table:
    table = new_table(
        "branch",
        "status",
        "latency us",
        "bound us",
        "bottleneck",
        "deciding parameters",
        numbers=("latency us", "bound us"),
    )
    for name in names:
        branch = result.branches[name]
        note = deciding_parameters(branch.plan) if branch.plan is not None else _why_no_plan(branch)
        marked = f"{name} *" if name == result.winner else name
        style = "bold" if name == result.winner else None
        table.add_row(
            marked,
            branch.status,
            _us(branch.latency_us),
            _us(branch.bound_us),
            branch.bottleneck or "",
            note,
            style=style,
        )
    return table


def _why_no_plan(branch: BranchResult) -> str:
    if branch.conflict:
        return ", ".join(member.rule for member in branch.conflict)
    return "no plan obeys all rules" if branch.status is Status.INFEASIBLE else branch.reason or ""


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _show_winner(console: Console, result: CaseResult) -> None:
    best = result.best
    if best is None or best.plan is None or result.winner is None:
        text = (
            "every branch asked is proven infeasible"
            if result.verdict == "infeasible"
            else "no verdict in the time limit"
        )
        console.print(f"no winner: {text}", style="bold")
        console.print()
        return
    proof = "proven" if result.verdict == "proven" else "not proven: a branch is open at the time limit"
    console.print(f"winner: {result.winner}, {_us(best.latency_us)} us ({proof})", style="bold")
    fields = [f"{name} {value}" for name, value in best.plan.model_dump(exclude_none=True).items() if name != "branch"]
    _print_list(console, "plan", fields)
    stages = [f"{name} {us:.3f}" for name, us in (best.stages_us or {}).items() if us]
    _print_list(console, "stages, us", stages or ["none"])
    console.print()
    if result.buffers:
        console.print(_buffer_table(result.buffers))
        console.print()


def _print_list(console: Console, name: str, items: list[str]) -> None:
    """``name: item, item`` under its own indent; an item is never broken."""
    unbroken = ", ".join(item.replace(" ", "\0") for item in items)
    lines = wrap(
        unbroken, console.width, initial_indent=f"  {name}: ", subsequent_indent="    ", break_on_hyphens=False
    )
    for line in lines:
        console.print(line.replace("\0", " "), soft_wrap=True)


def _buffer_table(buffers: list[BufferUse]) -> Table:
    table = new_table("limit", "rule", "used", "available", "unit", "share", numbers=("used", "available", "share"))
    for use in buffers:
        share = percent(use.share) if use.available else ""
        table.add_row(
            BUFFER_NAMES.get(use.rule, use.rule), use.rule, str(use.used), str(use.available), use.unit, share
        )
    return table


def _show_conflicts(console: Console, result: CaseResult, names: list[BranchName]) -> None:
    console.print("infeasible branches")
    for line in _conflict_lines(result, names):
        console.print(line, soft_wrap=not console.is_terminal)


def _conflict_lines(result: CaseResult, names: list[BranchName]) -> Iterator[str]:
    for name in names:
        members = result.branches[name].conflict or []
        if not members:
            yield f"  {name}: proven by the search; no plan obeys all rules"
        for member in members:
            yield f"  {name}: {member.rule}: {member.text} ({member.repair})"
