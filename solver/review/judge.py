"""A tiling somebody already has, judged: legal or not, with both sides of every broken rule, its stages and its time.

A complete plan is evaluated as it stands. Of a partial one, what the given fields force is derived and the rest is
chosen by the solver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...models.algebra import RuleCheck
from ...models.branches import BRANCH_OF, Structure
from ...models.branches.base import Decision
from ...models.context import Context
from ...models.evaluation import Evaluation, evaluate_plan, plan_checks
from ...models.fields import decided_value, fields_of
from ...models.pins import PinnedBranch, parse_pins
from ...models.plan import BRANCHES, BranchName, Plan
from ...models.points import Points, lower_bounds, narrowed
from ..result import BranchResult, ConflictMember
from ..search.best import evaluations, fastest, solve_branches, to_equal
from ..search.solve_branch import SolveOptions

__all__ = ["Judgement", "deciding_fields", "judge"]


@dataclass(frozen=True)
class Judgement:
    """Verdict on a tiling.

    ``evaluation`` is absent when there is nothing to evaluate: the branch has no formula for the case, or no plan has
    the given fields. ``chosen`` names what the solver decided. ``open`` says that the time limit came first.
    """

    branch: BranchName | None
    evaluation: Evaluation | None
    violations: tuple[str, ...]
    rules: tuple[str, ...]
    chosen: tuple[str, ...] = ()
    open: bool = False

    @property
    def feasible(self) -> bool:
        """Whether every rule holds."""
        return not self.rules and self.evaluation is not None

    def with_broken(self, broken: Iterable[tuple[str, str]]) -> Judgement:
        """The same with further broken rules: (id, text with both sides)."""
        more = list(broken)
        rules = tuple(dict.fromkeys((*self.rules, *(rule for rule, _ in more))))
        return replace(self, rules=rules, violations=(*self.violations, *(text for _, text in more)))


def deciding_fields(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Fields that must be given for a plan to be complete; the others follow from them."""
    return BRANCH_OF[given["branch"]].deciding(given)


def judge(ctx: Context, given: Mapping[str, Any], options: SolveOptions | None = None) -> Judgement:
    """Judge the tiling that consists of the ``given`` plan fields.

    Raises:
        InputError: a value is not possible at all, say a tile without rows.
    """
    if given.get("branch") and all(name in given for name in deciding_fields(given)):
        return _complete(ctx, given)
    return _partial(ctx, given, replace(options or SolveOptions(), explain=True))


# -- complete plans
def _complete(ctx: Context, given: Mapping[str, Any]) -> Judgement:
    plan = Plan.model_validate(given)
    evaluation = evaluate_plan(ctx, plan)
    broken = list(evaluation.violations)
    texts = [_sides(check) for check in broken]
    rules = [check.rule for check in broken]
    if evaluation.plan is plan:  # no formula
        return Judgement(plan.branch, None, tuple(texts), tuple(rules))
    for field, value, follows in _contradictions(given, evaluation.plan):
        rules.append(f"derived.{field}")
        texts.append(f"derived.{field} {value} == {'none' if follows is None else follows}")
    return Judgement(plan.branch, evaluation, tuple(texts), tuple(dict.fromkeys(rules)))


def _sides(check: RuleCheck) -> str:
    return f"{check.rule} {check.left} {check.operator} {check.right}"


def _contradictions(given: Mapping[str, Any], plan: Plan) -> Iterator[tuple[str, Any, Any]]:
    """Given fields that are not what follows from the deciding ones: (field, given, follows)."""
    kept = {*deciding_fields(given), *_either(given), "branch"}
    forced = BRANCH_OF[given["branch"]].forced(given)
    for field, value in given.items():
        if field in forced:
            follows = forced[field]
        elif field in kept:
            continue
        else:
            follows = getattr(plan, field)
        if value != follows:
            yield field, value, follows


def _either(given: Mapping[str, Any]) -> tuple[str, ...]:
    return BRANCH_OF[given["branch"]].solving(given).facts.either


# -- partial plans
def _partial(ctx: Context, given: Mapping[str, Any], options: SolveOptions) -> Judgement:
    pins = parse_pins([f"{field}={value}" for field, value in given.items() if field != "branch"])
    names = [given["branch"]] if given.get("branch") else list(BRANCHES)
    solved = solve_branches(ctx, names, replace(options, pins=pins), to_equal)
    found = evaluations(solved)
    name = fastest(found)
    if name is None:
        first = solved[names[0]].result if len(names) == 1 else None
        members = (first.conflict or []) if first is not None else _shared_conflict([s.result for s in solved.values()])
        members = sorted(members, key=lambda member: member.kind == "pin")
        texts, rules = tuple(_member(m) for m in members), tuple(m.rule for m in members)
        open_ = any(s.result.status == "unknown" for s in solved.values())
        return Judgement(names[0] if len(names) == 1 else None, None, texts, rules, open=open_)
    chosen: tuple[str, ...] = ("branch",) if "branch" not in given else ()
    chosen += tuple(_chosen(ctx, {**given, "branch": name}, found[name].plan))
    # A pin can carry a buffer count that no plan may have; that is a rule on the plan alone.
    broken = [check for check in plan_checks(ctx, found[name].plan) if not check.holds]
    verdict = Judgement(name, found[name], (), (), chosen, open=solved[name].result.status != "optimal")
    return verdict.with_broken((check.rule, _sides(check)) for check in broken)


def _shared_conflict(results: Iterable[BranchResult]) -> list[ConflictMember]:
    """Why no branch has a plan with the given fields: the conflict of each."""
    members: dict[str, ConflictMember] = {}
    for result in results:
        for member in result.conflict or []:
            members.setdefault(member.rule, member)
    return list(members.values())


def _member(member: ConflictMember) -> str:
    if member.kind == "pin":
        return f"{member.rule} ({member.text})"
    if member.needs is not None and member.has is not None:
        sign = "<=" if member.needs > member.has else ">="
        return f"{member.rule} {member.needs} {sign} {member.has}"
    return f"{member.rule} ({member.text})"


def _chosen(ctx: Context, given: Mapping[str, Any], plan: Plan) -> list[str]:
    """Deciding fields of the plan that were not given and that the given ones do not force."""
    whole = plan.model_dump(exclude_none=True)
    missing = [name for name in deciding_fields(whole) if name not in given and name not in _either(whole)]
    if not missing:
        return []
    possible = _possible(ctx, given, missing)
    return [name for name in missing if len(possible.get(name, ())) != 1]


def _possible(ctx: Context, given: Mapping[str, Any], missing: list[str]) -> dict[str, set[Any]]:
    """Values that the missing fields may have beside the given ones; never too few, at times too many."""
    pins = parse_pins([f"{field}={value}" for field, value in given.items() if field != "branch"])
    branch = PinnedBranch(BRANCH_OF[given["branch"]], pins)
    found: dict[str, set[Any]] = {name: set() for name in missing}
    for structure in branch.structures(ctx, complete=True):
        if not _fits(structure, given) or not lower_bounds(ctx, branch, structure, Points({}, 1))[1][0]:
            continue
        decisions = [_given_values(ctx, decision, given) for decision in structure.decisions]
        for index, decision in enumerate(decisions):
            if len(decision.domain()) > 1:
                decisions[index] = narrowed(ctx, branch, replace(structure, decisions=tuple(decisions)), decision)
        if any(not decision.domain() for decision in decisions):
            continue
        for decision in decisions:
            for field in fields_of(decision.name):
                if field in found:
                    found[field] |= set(decision.domain())
        for field, value in structure.constants.items():
            if field in found:
                found[field].add(value)
    return found


def _fits(structure: Structure, given: Mapping[str, Any]) -> bool:
    return all(given.get(name, value) == value for name, value in structure.constants.items())


def _given_values(ctx: Context, decision: Decision, given: Mapping[str, Any]) -> Decision:
    """The decision at its given value, where the field is the decision itself."""
    value = decided_value(ctx, decision.name, given)
    return decision if value is None else Decision(decision.name, value, value, (value,))
