"""Many tilings: each is audited where the executor works; what comes back is finished text and a few numbers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from ...hardware.errors import InputError
from ..pools.executors import Executor
from ..pools.ordered_rows import Crash
from ..review.audit import audit_cells, markdown_row, to_json
from ..review.tilings import JudgedTiling, TilingJudge, TilingRow
from ..settings import Settings, unpacked
from .answers import CRASHED

__all__ = ["PRELOAD", "AuditAnswer", "AuditSummary", "audit_batch", "audit_row"]

#: What a worker loads before its first row.
PRELOAD: Final = ("tileproof.solver.search.solve_branch", __name__)

Task = tuple[bytes, TilingRow]


@dataclass(frozen=True)
class AuditAnswer:
    """What is shown of a tiling: its cells in the order of ``OUT_COLUMNS``, plain data, a Markdown row.

    ``verdict`` is legal, illegal, open, bad or crashed; the last two have an ``error``.
    """

    verdict: str
    cells: tuple[str, ...]
    document: dict[str, Any]
    markdown: str
    error: InputError | None = None


def audit_row(task: Task) -> AuditAnswer:
    """Audit one tiling in a worker: packed settings, and the row."""
    packed, row = task
    return _answer(_judge(packed).judge(row))


@lru_cache(maxsize=2)
def _judge(packed: bytes) -> TilingJudge:
    return TilingJudge(unpacked(packed), gap=True, change=True)


def _answer(result: JudgedTiling, verdict: str | None = None) -> AuditAnswer:
    judged = result.judgement
    if verdict is None:
        verdict = "bad" if judged is None else "legal" if judged.feasible else "open" if judged.open else "illegal"
    return AuditAnswer(verdict, audit_cells(result), to_json(result), markdown_row(result), result.error)


def audit_batch(rows: Iterable[TilingRow], settings: Settings, executor: Executor) -> Iterator[AuditAnswer]:
    """Audit the rows, in order."""
    packed = settings.packed()
    in_work: deque[TilingRow] = deque()

    def tasks() -> Iterator[Task]:
        for row in rows:
            in_work.append(row)
            yield packed, row

    for answer in executor.map(tasks()):
        row = in_work.popleft()
        if isinstance(answer, Crash):
            error = InputError(f"{CRASHED}: {answer.text}", file=row.file, row=row.number)
            yield _answer(JudgedTiling(row, error=error), CRASHED)
        else:
            yield answer


@dataclass
class AuditSummary:
    """How many tilings ended how, and how far the legal ones are from the optimum (percent)."""

    verdicts: Counter[str] = field(default_factory=Counter)
    regrets: list[float] = field(default_factory=list)

    def count(self, verdict: str, regret: float | None) -> None:
        """Add a tiling."""
        self.verdicts[verdict] += 1
        if regret is not None:
            self.regrets.append(regret)

    def recovered(self, cells: Mapping[str, str]) -> None:
        """Add a tiling that was written before."""
        if cells["error"]:
            verdict = CRASHED if cells["error"].startswith(f"{CRASHED}: ") else "bad"
        elif cells["legal"] == "1":
            verdict = "legal"
        else:
            verdict = "illegal" if cells["violations"] else "open"
        self.count(verdict, float(cells["regret_pct"]) if cells["regret_pct"] else None)

    def text(self, bad_columns: int) -> str:
        """The closing line; ``bad_columns`` columns of the header are not known."""
        count = self.verdicts
        bad = count["bad"] + bad_columns
        text = f"{count.total()} tilings: {count['legal']} legal, {count['illegal']} not, {bad} bad"
        if count[CRASHED]:
            text += f", {count[CRASHED]} crashed"
        regrets = sorted(self.regrets)
        if regrets:
            middle = regrets[len(regrets) // 2]
            text += f"; regret {middle:.1f} % at the median, {regrets[-1]:.1f} % at most (model times)"
        return text
