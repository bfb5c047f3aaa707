"""What ``solve`` prints for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import wrap

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table

from ...models.plan import BranchName
from ..describe import BUFFER_NAMES, case_line, conflicts_of, deciding_parameters, percent
from ..result import BranchResult, BufferUse, CaseResult, ConflictMember, Status

#: Columns when stdout is no terminal and COLUMNS is not set.
_PLAIN_WIDTH = 140
#: Columns below which a table's cells would break inside words and numbers: its rows are paragraphs there.
_NARROW = 80


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
    show_header(console, result)
    shown = [name for name in result.branches if not winner_only or name == result.winner]
    if shown:
        if console.width < _NARROW:
            _show_branches(console, result, shown)
        else:
            console.print(_branch_table(result, shown))
        console.print()
    _show_winner(console, result)
    infeasible = [name for name, branch in result.branches.items() if branch.status is Status.INFEASIBLE]
    if infeasible and not (winner_only and result.winner):
        console.print("infeasible branches")
        for name in infeasible:
            _show_impossible(console, name, result.branches[name])


def show_header(console: Console, result: CaseResult) -> None:
    """The question: case, hardware, rules, pins."""
    console.print(case_line(result.case), style="bold", soft_wrap=not console.is_terminal)
    console.print(
        f"hardware {result.hardware}, rules {result.rules}, environment {result.environment}; "
        f"times are those of latency model {result.model_version}, not measured",
        soft_wrap=not console.is_terminal,
    )
    if result.pins:
        show_text(console, f"pins: {', '.join(result.pins)}", hang=6)
    console.print()


def show_text(console: Console, text: str, *, indent: int = 0, hang: int = 2) -> None:
    """One paragraph, wrapped; lines after the first stand ``hang`` columns further in."""
    first, rest = " " * indent, " " * (indent + hang)
    lines = wrap(
        text,
        max(console.width, indent + hang + 20),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        console.print(line, soft_wrap=True)


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


def _show_branches(console: Console, result: CaseResult, names: list[BranchName]) -> None:
    """The branch table as one paragraph a branch."""
    for name in names:
        branch = result.branches[name]
        facts = [str(branch.status)]
        if branch.latency_us is not None:
            facts.append(f"latency {_us(branch.latency_us)} us")
        if branch.bound_us is not None:
            facts.append(f"bound {_us(branch.bound_us)} us")
        if branch.bottleneck:
            facts.append(branch.bottleneck)
        facts.append(deciding_parameters(branch.plan) if branch.plan is not None else _why_no_plan(branch))
        show_text(console, f"{name}{' *' if name == result.winner else ''}: {', '.join(facts)}")


def _why_no_plan(branch: BranchResult) -> str:
    if branch.conflict:
        return ", ".join(member.rule for member in branch.conflict)
    return "no plan obeys all rules" if branch.status is Status.INFEASIBLE else branch.reason or ""


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _show_winner(console: Console, result: CaseResult) -> None:
    best = result.best
    if best is None or best.plan is None or result.winner is None:
        pinned = " with these pins" if result.pins else ""
        text = (
            f"every branch asked is proven infeasible{pinned}"
            if result.verdict == "infeasible"
            else "no verdict in the time limit"
        )
        console.print(f"no winner: {text}", style="bold")
        console.print()
        return
    proof = "proven" if result.verdict == "proven" else "not proven: a branch is open at the time limit"
    console.print(f"winner: {result.winner}, {_us(best.latency_us)} us ({proof})", style="bold")
    if result.pins:
        console.print(f"price of the pins: {_price(result)}")
    fields = [f"{name} {value}" for name, value in best.plan.model_dump(exclude_none=True).items() if name != "branch"]
    _print_list(console, "plan", fields)
    stages = [f"{name} {us:.3f}" for name, us in (best.stages_us or {}).items() if us]
    _print_list(console, "stages, us", stages or ["none"])
    console.print()
    if result.buffers:
        if console.width < _NARROW:
            for use in result.buffers:
                share = f" ({percent(use.share)})" if use.available else ""
                label = BUFFER_NAMES.get(use.rule, use.rule)
                show_text(console, f"{label}, {use.rule}: {use.used} of {use.available} {use.unit}{share}")
        else:
            console.print(_buffer_table(result.buffers))
        console.print()


def _price(result: CaseResult) -> str:
    """Optimum with the pins minus optimum without them."""
    price = result.price_of_pins_us
    if price is None:
        return "not known, a branch is open at the time limit"
    if not price:
        return "none"
    if price < 0:
        return f"{price:.3f} us: faster than the optimum without them, which derives the pinned field"
    shown = f"{price:.3f} us" if price >= 0.0005 else "less than 0.001 us"
    return f"{shown} over the optimum without them"


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


def _show_impossible(console: Console, name: BranchName, branch: BranchResult) -> None:
    """Headline conflict of a branch, the ids of the others, and what stands behind a policy."""
    members = branch.conflict or []
    if not members:
        show_text(console, f"{name}: {branch.reason or 'proven by the search; no plan obeys all rules'}", indent=2)
    elif len(members) == 1:
        show_text(console, f"{name}: {_member(members[0])}", indent=2)
    else:
        show_text(console, f"{name}: {_together([m.rule for m in members])}", indent=2)
        for member in members:
            show_text(console, _member(member), indent=4)
    if branch.other_conflicts:
        others = "; ".join(" + ".join(conflict.rules) for conflict in branch.other_conflicts)
        show_text(console, f"other conflicts: {others}", indent=4)
    if (text := policy_text(branch)) is not None:
        show_text(console, text, indent=4)


def _member(member: ConflictMember) -> str:
    return f"{member.rule}: {_formula(member)}; {member.repair}"


def _formula(member: ConflictMember) -> str:
    return member.text.removeprefix("pinned: ")


def _together(rules: Sequence[str]) -> str:
    return f"{' + '.join(rules)} have no plan together, any one fewer has"


def policy_text(branch: BranchResult) -> str | None:
    """What a branch would reach without policy rules, when these alone are in the way."""
    if branch.without_policy_us is not None:
        return f"policy only: without policy rules the branch would reach {_us(branch.without_policy_us)} us"
    return "policy only: thresholds from experience, no hardware limit" if branch.policy_only else None


def show_explanation(result: CaseResult) -> None:
    """For every branch that it is feasible, or each of its conflicts member by member."""
    console = make_console()
    show_header(console, result)
    for name, branch in result.branches.items():
        if branch.status is Status.INFEASIBLE:
            _show_conflicts(console, name, branch)
        elif branch.latency_us is not None:
            known = "" if branch.status is Status.OPTIMAL else " or less"
            console.print(f"{name}: feasible, {_us(branch.latency_us)} us{known}", style="bold", soft_wrap=True)
        else:
            console.print(f"{name}: no verdict, {branch.reason or 'time limit'}", style="bold", soft_wrap=True)
        console.print()


def _show_conflicts(console: Console, name: BranchName, branch: BranchResult) -> None:
    conflicts = conflicts_of(branch)
    count = "" if len(conflicts) == 1 else f", {len(conflicts)} conflicts that share no rule"
    why = count if conflicts else f", {branch.reason or 'proven by the search'}"
    console.print(f"{name}: infeasible{why}", style="bold", soft_wrap=True)
    for index, conflict in enumerate(conflicts, 1):
        number = f"{index}. " if len(conflicts) > 1 else ""
        label = " (policy only)" if conflict.policy_only else ""
        if len(conflict.members) == 1:
            member = conflict.members[0]
            show_text(console, f"{number}{member.rule}{label}: {_formula(member)}", indent=2, hang=4)
            show_text(console, f"repair: {member.repair}", indent=6)
            continue
        show_text(console, f"{number}{_together(conflict.rules)}{label}", indent=2, hang=4)
        for member in conflict.members:
            show_text(console, f"{member.rule}: {_formula(member)}", indent=4)
            show_text(console, f"repair: {member.repair}", indent=6)
    if (policy := policy_text(branch)) is not None:
        show_text(console, policy, indent=2)
