"""Many cases, one after another: every row gets its result or its error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..hardware import NpuSpec
from ..hardware.errors import InputError, InternalError
from ..models.case import make_case
from ..models.context import Environment
from ..models.rules import Profile
from .api import make_context, solve
from .branch import SolveOptions
from .result import CaseResult
from .tables import CaseRow

__all__ = ["RowOutcome", "Settings", "Summary", "recommend_rows", "settings_of", "summary_of"]


@dataclass(frozen=True)
class Settings:
    """What all rows share."""

    spec: NpuSpec
    rules: Profile
    environment: Environment
    options: SolveOptions
    all_branches: bool


def settings_of(
    hardware: str, rules: str, environment: str, time_limit: float, *, all_branches: bool, explain: bool = False
) -> Settings:
    """Settings by name; ``explain`` finds out why branches are infeasible, which costs time.

    Raises:
        InputError: the hardware, the rules profile or the environment is not known.
    """
    context = make_context(make_case(m=1, n=1, k=1), hardware, rules, environment)  # type: ignore[arg-type]
    options = SolveOptions(time_limit=time_limit, explain=explain)
    return Settings(context.spec, context.profile, context.environment, options, all_branches)


@dataclass(frozen=True)
class RowOutcome:
    """A row with its result, or with the error that kept it from having one."""

    row: CaseRow
    result: CaseResult | None
    error: InputError | None


def recommend_rows(rows: Iterable[CaseRow], settings: Settings) -> Iterator[RowOutcome]:
    """Solve the rows in order. A bad row becomes an outcome with an error.

    Raises:
        InternalError: solver and checker disagree about a row; the message names the row.
    """
    for row in rows:
        if row.case is None:
            yield RowOutcome(row, None, row.error)
            continue
        try:
            result = solve(
                row.case,
                hardware=settings.spec,
                rules=settings.rules,
                environment=settings.environment,
                pins=row.pins,
                options=settings.options,
                all_branches=settings.all_branches,
            )
        except InputError as error:
            yield RowOutcome(row, None, InputError(str(error), file=row.file, row=row.number))
        except InternalError as error:
            place = f"{row.file}, row {row.number}"
            raise InternalError(f"{place}: {error.message}", report_path=error.report_path) from error
        else:
            yield RowOutcome(row, result, None)


@dataclass(frozen=True)
class Summary:
    """How many rows ended how."""

    cases: int
    optimal: int
    infeasible: int
    unproven: int
    bad: int

    def text(self) -> str:
        """The closing line."""
        cases = "1 case" if self.cases == 1 else f"{self.cases} cases"
        bad = "1 bad row" if self.bad == 1 else f"{self.bad} bad rows"
        return f"{cases}: {self.optimal} optimal, {self.infeasible} infeasible, {self.unproven} unproven, {bad}"


def summary_of(outcomes: Iterable[RowOutcome]) -> Summary:
    """Count the outcomes."""
    verdicts = Counter("bad" if o.result is None else o.result.verdict for o in outcomes)
    return Summary(verdicts.total(), verdicts["proven"], verdicts["infeasible"], verdicts["open"], verdicts["bad"])
