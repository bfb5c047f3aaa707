"""What a solve returns: statuses, bounds, plans and reasons, ready for JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..models.case import BmmCase
from ..models.context import Environment
from ..models.plan import BranchName, Plan
from ..models.rules import Profile


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
    """One rule of a conflict, with the numbers of the case put in, and the least change of it alone that helps."""

    rule: str
    kind: str
    text: str
    repair: str
    needs: int | None = Field(default=None, description="left side (or pinned value) at the least relaxation")
    has: int | None = Field(default=None, description="right side (or pin) at the least relaxation")


class Conflict(_Model):
    """Rules that no plan obeys together, while dropping any one leaves a plan."""

    members: list[ConflictMember]
    policy_only: bool = Field(
        default=False, description="thresholds from experience alone are in the way, no hardware limit"
    )

    @property
    def rules(self) -> list[str]:
        """Ids of the members."""
        return [member.rule for member in self.members]


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
    conflict: list[ConflictMember] | None = Field(default=None, description="a minimal conflict (infeasible branches)")
    other_conflicts: list[Conflict] = Field(default_factory=list, description="further conflicts, disjoint from it")
    policy_only: bool = Field(default=False, description="the conflict is made of policy rules alone")
    without_policy_us: float | None = Field(
        default=None, description="latency the branch would reach without policy rules"
    )
    reason: str | None = Field(
        default=None, description="why a branch is dominated or unknown, or how its bound was shown"
    )
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
    rules: Profile
    environment: Environment
    tick: str
    model_version: str
    winner: BranchName | None
    verdict: str = Field(description="proven, infeasible or open: whether the winner is proven")
    branches: dict[BranchName, BranchResult]
    pins: list[str] = Field(default_factory=list, description="pins in force, as understood")
    price_of_pins_us: float | None = Field(default=None, description="optimum with the pins minus optimum without them")
    buffers: list[BufferUse] = Field(default_factory=list, description="buffers of the winner's plan")

    @property
    def best(self) -> BranchResult | None:
        """Result of the winning branch."""
        return None if self.winner is None else self.branches[self.winner]

    def to_json(self) -> dict[str, Any]:
        """Plain data as ``--json`` prints it."""
        return self.model_dump(mode="json")
