"""What a solve returns: statuses, bounds, plans and reasons, ready for JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..models.case import BmmCase
from ..models.plan import BranchName, Plan


class Status(StrEnum):
    """What is known about a branch.

    ``optimal``: bound equals latency. ``feasible``: the time limit came first. ``infeasible``: proven. ``dominated``:
    proven no better than the winner, not solved out. ``unknown``: nothing shown.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    DOMINATED = "dominated"
    UNKNOWN = "unknown"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ConflictMember(_Model):
    """One rule of a conflict, with the numbers of the case put in."""

    rule: str
    kind: str
    text: str
    repair: str


class BranchResult(_Model):
    """Result of one branch. Times are the model's, in microseconds and ticks."""

    status: Status
    latency_us: float | None = None
    latency_ticks: int | None = None
    bound_us: float | None = None
    bound_ticks: int | None = None
    bottleneck: str | None = None
    stages_us: dict[str, float] | None = None
    plan: Plan | None = None
    conflict: list[ConflictMember] | None = None
    reason: str | None = Field(None, description="why a branch is dominated or unknown, or how its bound was shown")
    solve_ms: float = 0.0


class BufferUse(_Model):
    """How much of a buffer the winner fills."""

    rule: str
    used: int
    available: int
    unit: str

    @property
    def share(self) -> float:
        """Share of the buffer, 0 to 1."""
        return self.used / self.available


class CaseResult(_Model):
    """Result of one case: every asked branch, and the winner."""

    case: BmmCase
    hardware: str
    rules: str
    environment: str
    tick: str
    model_version: str
    winner: BranchName | None
    verdict: str = Field(description="proven, infeasible or open: whether the winner is proven")
    branches: dict[BranchName, BranchResult]
    buffers: list[BufferUse] = Field(default_factory=list, description="buffers of the winner's plan")

    @property
    def best(self) -> BranchResult | None:
        """Result of the winning branch."""
        return None if self.winner is None else self.branches[self.winner]

    def to_json(self) -> dict[str, Any]:
        """Plain data as ``--json`` prints it."""
        return self.model_dump(mode="json")
