"""A case under every profile of policy rules: where branch or tile change, and which rule makes the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...hardware import NpuSpec
from ...models.algebra import RuleCheck
from ...models.case import BmmCase
from ...models.context import Context, Environment
from ...models.evaluation import evaluate_plan
from ...models.fields import FIELDS
from ...models.plan import PLAN_FIELDS, BranchName
from ...models.rules import PROFILES, Profile, rule_info
from ..api import solve
from ..result import CaseResult
from ..search.solve_branch import SolveOptions

__all__ = ["FREE", "Difference", "difference", "solve_profiles"]

#: The profile without policy, which the others are held against.
FREE: Final[Profile] = "none"
#: Choices that make the tile; the other fields follow, or are those of the vector cores.
_TILE: Final = tuple(
    name
    for name in PLAN_FIELDS
    if name in ("swizzle_w", "tail_strategy")
    or (FIELDS[name].preferred and name not in ("k_l1", "ub_buffers", "used_core_num"))
)


@dataclass(frozen=True)
class Difference:
    """What a profile changes against no policy: branch, tile fields, time, and the rules the free optimum breaks."""

    profile: Profile
    branches: tuple[BranchName | None, BranchName | None]
    fields: Mapping[str, tuple[Any, Any]]
    cost_us: float | None
    broken: tuple[RuleCheck, ...]

    @property
    def same(self) -> bool:
        """Whether the profile changes nothing."""
        return self.branches[0] == self.branches[1] and not self.fields

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "profile": self.profile,
            "against": FREE,
            "branch": list(self.branches),
            "fields": {name: list(pair) for name, pair in self.fields.items()},
            "cost_us": self.cost_us,
            "rules": [
                {
                    "rule": check.rule,
                    "left": check.left,
                    "operator": check.operator,
                    "right": check.right,
                    "text": rule_info(check.rule).text,
                }
                for check in self.broken
            ],
        }


def solve_profiles(
    case: BmmCase,
    spec: NpuSpec,
    environment: Environment,
    options: SolveOptions,
    on_profile: Callable[[Profile], None] | None = None,
) -> dict[Profile, CaseResult]:
    """The best tiling under every profile."""
    results: dict[Profile, CaseResult] = {}
    for profile in PROFILES:
        results[profile] = solve(
            case, hardware=spec, rules=profile, environment=environment, options=options, all_branches=False
        )
        if on_profile is not None:
            on_profile(profile)
    return results


def difference(results: Mapping[Profile, CaseResult], profile: Profile, spec: NpuSpec) -> Difference:
    """What a profile changes against no policy."""
    free, held = results[FREE], results[profile]
    before = free.best.plan if free.best is not None else None
    after = held.best.plan if held.best is not None else None
    fields: dict[str, tuple[Any, Any]] = {}
    cost: float | None = None
    broken: tuple[RuleCheck, ...] = ()
    if before is not None and after is not None:
        for name in _TILE:
            pair = (getattr(before, name), getattr(after, name))
            if pair[0] != pair[1]:
                fields[name] = pair
        assert free.best is not None
        assert held.best is not None
        cost = (held.best.latency_us or 0.0) - (free.best.latency_us or 0.0)
    if before is not None:
        ctx = Context.of(free.case, spec, profile, held.environment)
        checks = evaluate_plan(ctx, before).violations
        broken = tuple({check.rule: check for check in checks}.values())
    return Difference(profile, (free.winner, held.winner), fields, cost, broken)
