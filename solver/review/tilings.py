"""Tilings judged one by one, for ``evaluate`` and ``audit``: they read other files and show other columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from ...hardware import NpuSpec
from ...hardware.errors import InputError
from ...models.case import BmmCase
from ...models.context import Context
from ...models.plan import Plan
from ..settings import Settings
from ..tcube import tcube_violations
from ..tcube.struct import TCubeTiling
from .advice import advice
from .gap import Gap, gap_of
from .judge import Judgement, judge
from .neighbours import Change, best_change

__all__ = ["JudgedTiling", "TilingJudge", "TilingRow", "error_cell", "open_plan"]

#: Fields of a plan that are open unless the row gives them; single changes derive them anew.
_DERIVED: Final = ("swizzle_w", "single_core_m", "single_core_n")
#: Cases whose solved optima are kept.
_CONTEXTS: Final = 256


@dataclass(frozen=True)
class TilingRow:
    """One tiling: its line, its case, the plan fields it gives; or what is wrong with it.

    ``spec`` is its chip where that is not the one of the run, ``strategy`` the vendor's name of the branch,
    ``case_line`` the line of the case in a table of its own, ``struct`` the vendor's struct that it was read from.
    """

    file: str
    number: int
    name: str
    case: BmmCase | None = None
    spec: NpuSpec | None = None
    given: dict[str, Any] | None = None
    error: InputError | None = None
    strategy: str = ""
    case_line: int | None = None
    struct: TCubeTiling | None = None


@dataclass(frozen=True)
class JudgedTiling:
    """A tiling with its verdict, the ladder below it and the change that gains most; or with its error."""

    row: TilingRow
    ctx: Context | None = None
    judgement: Judgement | None = None
    gap: Gap | None = None
    change: str = "none"
    advice: str = ""
    error: InputError | None = None
    first: Change | None = None

    @property
    def contradicts(self) -> bool:
        """Whether the tiling itself is legal and only what was written beside it is not."""
        judged = self.judgement
        legal = judged is not None and judged.evaluation is not None and judged.evaluation.feasible
        return legal and judged is not None and not judged.feasible

    @property
    def regret(self) -> float | None:
        """Percent above the least optimum of all branches."""
        if self.gap is None or not self.gap.optimum or self.judgement is None or not self.judgement.feasible:
            return None
        return 100 * (self.gap.ticks / self.gap.optimum - 1)


class TilingJudge:
    """Judges tilings; what was solved for a case is kept for its other tilings, unless many cases come between.

    Args:
        settings: what all rows share.
        gap: find the optima and the bounds below each tiling.
        change: find the single change that gains most.
    """

    def __init__(self, settings: Settings, *, gap: bool = False, change: bool = False) -> None:
        self._settings = settings
        self._gap = gap
        self._change = change
        self._context = lru_cache(maxsize=_CONTEXTS)(self._context_of)

    def _context_of(self, case: BmmCase, spec: NpuSpec) -> Context:
        return Context.of(case, spec, self._settings.rules, self._settings.environment)

    def judge(self, row: TilingRow) -> JudgedTiling:
        """The verdict on a row; a bad row keeps its error."""
        if row.case is None or row.given is None:
            return JudgedTiling(row, error=row.error)
        try:
            ctx = self._context(row.case.model_copy(update={"case_id": ""}), row.spec or self._settings.spec)
            return self._judged(row, row.given, ctx)
        except InputError as error:
            return JudgedTiling(row, error=error.at(row.file, row.number))

    def _judged(self, row: TilingRow, given: dict[str, Any], ctx: Context) -> JudgedTiling:
        options = self._settings.options
        verdict = judge(ctx, given, options)
        if row.struct is not None:
            verdict = verdict.with_broken(
                (check.name, f"{check.name} {check.left} {check.operator} {check.right}")
                for check in tcube_violations(row.struct, ctx.case, ctx.spec)
            )
        evaluation = verdict.evaluation
        branch, ticks = verdict.branch or given.get("branch"), evaluation.ticks if evaluation is not None else 0
        gap = gap_of(ctx, branch, ticks, options) if self._gap and branch is not None else None
        words = "; ".join(verdict.violations) if evaluation is None else advice(ctx, evaluation)
        judged = JudgedTiling(row, ctx, verdict, gap, advice=words)
        return _with_change(judged, given) if self._change else judged


def _with_change(judged: JudgedTiling, given: dict[str, Any]) -> JudgedTiling:
    """The judged tiling with the change that gains most."""
    verdict, ctx = judged.judgement, judged.ctx
    assert verdict is not None
    assert ctx is not None
    evaluation = verdict.evaluation
    if evaluation is None or verdict.branch is None:
        return judged
    if judged.contradicts:
        text = "let the derived fields follow" if verdict.rules[0].startswith("derived.") else "none"
        return replace(judged, change=text)
    plan = open_plan(evaluation.plan if evaluation.feasible else Plan.model_construct(**given), given)
    first = best_change(ctx, evaluation, plan)
    if first is None:
        return judged
    text = first.text if evaluation.feasible else f"{first.field} {first.old} -> {first.new} makes it legal"
    return replace(judged, change=text, first=first)


def open_plan(plan: Plan, given: dict[str, Any]) -> Plan:
    """The plan without the derived fields that were not given."""
    return plan.model_copy(update={name: None for name in _DERIVED if name not in given})


def error_cell(judged: JudgedTiling) -> str:
    """What is wrong with a row, in its own line."""
    error = judged.error
    if error is None:
        return ""
    return f"column {error.column}: {error.message}" if error.column else error.message
