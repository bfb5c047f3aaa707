"""Certificates: a self-contained JSON of what was proven, and its re-check without CP-SAT.

The file (``docs/certificate.md``) carries the case, every number of the chip, rules, pins, and for each branch the plan
with both sides of every rule and the bound, or the conflicts. ``check_certificate`` believes none of it: plans are
evaluated again, optimality and infeasibility are shown by enumeration, conflicts are enumerated by themselves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from ...hardware import NpuSpec, SpecError
from ...hardware.errors import InputError
from ...models.algebra import IntAlgebra
from ...models.branches import BRANCH_OF, Branch
from ...models.case import BmmCase, explain_validation
from ...models.context import ENVIRONMENTS, MODEL_VERSION, Context
from ...models.evaluation import Evaluation, evaluate_values, plan_checks
from ...models.pins import PinnedBranch, parse_pins
from ...models.plan import BRANCHES, BranchName, Plan
from ...models.rules import PROFILES, RULES
from ..result import CaseResult, Status
from ..search.best import winner_of, wins
from .enumerator import Enumerator

FORMAT: Final = "tileproof-certificate"
VERSION: Final = 1
_SOLVED: Final = ("status", "plan", "ticks", "checks", "bound_ticks")
#: Fields of a branch by its status.
_BRANCH_FIELDS: Final[dict[Status, tuple[str, ...]]] = {
    Status.OPTIMAL: _SOLVED,
    Status.FEASIBLE: _SOLVED,
    Status.INFEASIBLE: ("status", "conflicts"),
    Status.DOMINATED: ("status", "bound_ticks"),
    Status.UNKNOWN: ("status", "bound_ticks"),
}
#: Plans at once when looking for one that shows that a member of a conflict is needed.
_PROBE: Final = 4_000
_FIELDS: Final = (
    "format", "version", "model_version", "case", "hardware", "hardware_fingerprint", "rules", "environment", "tick",
    "pins", "winner", "branches", "digest",
)  # fmt: skip


@dataclass(frozen=True)
class CheckLine:
    """One thing that was checked: where, whether it holds, whether all of it was covered, and what was found."""

    where: str
    ok: bool
    text: str
    complete: bool = True


def make_certificate(result: CaseResult, spec: NpuSpec) -> dict[str, Any]:
    """Certificate of a result that was solved on ``spec``."""
    ctx = Context.of(result.case, spec, result.rules, result.environment)
    branches: dict[str, Any] = {}
    for name, branch in result.branches.items():
        entry: dict[str, Any] = {"status": branch.status.value}
        if branch.plan is not None:
            checks = evaluate_in(ctx, _branch(name, tuple(result.pins)), branch.plan).checks
            entry["plan"] = {k: v for k, v in branch.plan.model_dump(mode="json").items() if v is not None}
            entry["ticks"] = branch.latency_ticks
            entry["checks"] = [[c.rule, c.left, c.operator, c.right] for c in checks]
        if branch.bound_ticks is not None:
            entry["bound_ticks"] = branch.bound_ticks
        if branch.conflict:
            entry["conflicts"] = [[m.rule for m in branch.conflict], *(c.rules for c in branch.other_conflicts)]
        branches[name] = entry
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "model_version": result.model_version,
        "case": result.case.model_dump(mode="json"),
        "hardware": spec.to_dict(),
        "hardware_fingerprint": spec.fingerprint(),
        "rules": result.rules,
        "environment": result.environment,
        "tick": result.tick,
        "pins": result.pins,
        "winner": result.winner,
        "branches": branches,
    }
    data["digest"] = digest(data)
    return data


def digest(data: Mapping[str, Any]) -> str:
    """SHA-256 of the certificate without its digest, in canonical JSON."""
    body = {key: value for key, value in data.items() if key != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _branch(name: BranchName, pins: tuple[str, ...]) -> Branch:
    return PinnedBranch(BRANCH_OF[name], parse_pins(pins)) if pins else BRANCH_OF[name]


def evaluate_in(ctx: Context, branch: Branch, plan: Plan) -> Evaluation:
    """Evaluate a plan by the formulas of a branch with its pins."""
    if not ctx.batch * ctx.m * ctx.n:
        (structure,) = branch.structures(ctx, complete=True)
        return evaluate_values(ctx, branch, structure.constants)
    return evaluate_values(ctx, branch, branch.values(ctx, plan), plan_checks(ctx, plan))


def check_certificate(
    data: Any,
    *,
    budget: int | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> list[CheckLine]:
    """Re-check a certificate without CP-SAT.

    Args:
        data: the parsed JSON.
        budget: plans to enumerate for each claim; what was covered is said when it ends.
        progress: called with the branch and the plans listed so far.

    Raises:
        InputError: not a certificate of this format and version, or a part of it cannot be read.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(f"not a certificate: format must be {FORMAT!r}")
    if data.get("version") != VERSION:
        raise InputError(f"certificate version {data.get('version')!r} is not known; allowed: {VERSION}")
    missing = [name for name in _FIELDS if name not in data]
    if missing:
        raise InputError(f"the certificate lacks {', '.join(missing)}")
    if unknown := sorted(set(data) - set(_FIELDS)):
        raise InputError(f"the certificate has fields that are not known: {', '.join(map(repr, unknown))}")
    lines = [
        CheckLine("file", digest(data) == data["digest"], "the digest matches the content"),
        CheckLine("model", data["model_version"] == MODEL_VERSION, f"model version is {MODEL_VERSION}"),
    ]
    ctx, pins = _read(data)
    lines.append(
        CheckLine(
            "hardware", ctx.spec.fingerprint() == data["hardware_fingerprint"], "the fingerprint matches the numbers"
        )
    )
    tick = f"{ctx.cycles_per_tick} cycle"
    lines.append(CheckLine("tick", tick == data["tick"], f"the tick is {tick}"))
    for name, entry in data["branches"].items():
        lines += _check_branch(ctx, name, pins, entry, budget, progress)
    lines.append(_check_winner(data))
    return [line if line.ok else CheckLine(line.where, False, f"not so: {line.text}", line.complete) for line in lines]


def _read(data: Mapping[str, Any]) -> tuple[Context, tuple[str, ...]]:
    try:
        case = BmmCase.model_validate(data["case"])
        spec = NpuSpec.model_validate(data["hardware"])
    except ValidationError as error:
        field, message = explain_validation(error)
        raise InputError(f"certificate, {field}: {message}") from None
    except SpecError as error:
        raise InputError(f"certificate, hardware: {error}") from None
    if data["rules"] not in PROFILES:
        raise InputError(f"certificate, rules: {data['rules']!r} is not known; allowed: {', '.join(PROFILES)}")
    if data["environment"] not in ENVIRONMENTS:
        allowed = ", ".join(ENVIRONMENTS)
        raise InputError(f"certificate, environment: {data['environment']!r} is not known; allowed: {allowed}")
    if not isinstance(data["branches"], dict) or not set(data["branches"]) <= set(BRANCHES):
        raise InputError(f"certificate, branches: must name branches among {', '.join(BRANCHES)}")
    if not isinstance(data["pins"], list) or not all(isinstance(pin, str) for pin in data["pins"]):
        raise InputError("certificate, pins: must be a list of texts")
    parse_pins(data["pins"])
    return Context.of(case, spec, data["rules"], data["environment"]), tuple(data["pins"])


def _check_branch(
    ctx: Context,
    name: BranchName,
    pins: tuple[str, ...],
    entry: Any,
    budget: int | None,
    progress: Callable[[str, int], None] | None,
) -> list[CheckLine]:
    try:
        status = Status(entry["status"])
    except (KeyError, TypeError, ValueError):
        raise InputError(f"certificate, {name}: the status must be one of {', '.join(Status)}") from None
    if unknown := sorted(set(entry) - set(_BRANCH_FIELDS[status])):
        raise InputError(f"certificate, {name}: a branch that is {status} has no {', '.join(unknown)}")
    branch = _branch(name, pins)
    lines: list[CheckLine] = []
    if status in (Status.OPTIMAL, Status.FEASIBLE):
        lines += _check_plan(ctx, name, branch, entry)
    if status is Status.OPTIMAL:
        same = entry.get("bound_ticks") == entry.get("ticks")
        lines.append(CheckLine(name, same, "the bound equals the latency of an optimal plan"))
    entry_alg = IntAlgebra()
    branch.entry(entry_alg, ctx)
    broken = [check.rule for check in entry_alg.checks if not check.holds]
    if broken:
        ok = status in (Status.INFEASIBLE, Status.UNKNOWN)
        lines.append(CheckLine(name, ok, f"infeasible, the case breaks {', '.join(broken)}"))
    if status is Status.INFEASIBLE and not broken:
        lines.append(_nothing(ctx, name, branch, None, budget, progress, "no plan obeys the rules"))
    if status is Status.INFEASIBLE:
        conflicts = entry.get("conflicts", [])
        if not isinstance(conflicts, list):
            raise InputError(f"certificate, {name}: conflicts must be a list of lists of rule ids")
        for rules in conflicts:
            lines.append(_check_conflict(ctx, name, branch, rules, broken, budget, progress))
    elif not broken and (status is not Status.UNKNOWN or "bound_ticks" in entry):
        bound = entry.get("bound_ticks")
        if not isinstance(bound, int):
            raise InputError(f"certificate, {name}: bound_ticks must be a whole number")
        lines.append(_nothing(ctx, name, branch, bound - 1, budget, progress, f"no plan is below {bound} ticks"))
    return lines


def _check_plan(ctx: Context, name: BranchName, branch: Branch, entry: Mapping[str, Any]) -> list[CheckLine]:
    if "plan" not in entry:
        raise InputError(f"certificate, {name}: a solved branch needs a plan")
    try:
        plan = Plan.model_validate(entry["plan"])
        evaluation = evaluate_in(ctx, branch, plan)
    except ValidationError as error:
        field, message = explain_validation(error)
        raise InputError(f"certificate, {name}, plan, {field}: {message}") from None
    except (TypeError, ValueError, ArithmeticError, LookupError):
        return [CheckLine(name, False, "the plan is complete and its numbers are possible")]
    lines = [CheckLine(name, plan.branch == name, f"the plan is one of {name}")]
    failed = [check.rule for check in evaluation.violations]
    lines.append(CheckLine(name, not failed, f"the plan breaks no rule{': ' + ', '.join(failed) if failed else ''}"))
    ticks = entry.get("ticks")
    same = evaluation.ticks == ticks
    lines.append(CheckLine(name, same, f"the plan takes {ticks} ticks" + ("" if same else f" but {evaluation.ticks}")))
    complete = {k: v for k, v in evaluation.plan.model_dump(mode="json").items() if v is not None} == entry["plan"]
    lines.append(CheckLine(name, complete, "the derived fields of the plan follow from the others"))
    sides = [[c.rule, c.left, c.operator, c.right] for c in evaluation.checks]
    lines.append(CheckLine(name, sides == entry.get("checks"), "both sides of every rule are as recorded"))
    return lines


def _nothing(
    ctx: Context,
    name: BranchName,
    branch: Branch,
    ceiling: int | None,
    budget: int | None,
    progress: Callable[[str, int], None] | None,
    claim: str,
    only: frozenset[str] | None = None,
) -> CheckLine:
    """Enumerate and find nothing."""

    def report(plans: int) -> None:
        if progress is not None:
            progress(name, plans)

    listed = Enumerator(ctx, branch, ceiling=ceiling, budget=budget, only=only, first=True, progress=report).run()
    best = listed.best
    if best is not None and (ceiling is None or best.ticks <= ceiling):
        return CheckLine(name, False, f"{claim}, but one of {best.ticks} ticks exists")
    if not listed.complete:
        text = f"{claim} among the {listed.examined} (partial) plans of the budget; the rest was not covered"
        return CheckLine(name, True, text, complete=False)
    return CheckLine(name, True, f"{claim} ({listed.plans} plans evaluated, the rest excluded by bounds)")


def _check_conflict(
    ctx: Context,
    name: BranchName,
    branch: Branch,
    rules: Any,
    broken: list[str],
    budget: int | None,
    progress: Callable[[str, int], None] | None,
) -> CheckLine:
    if not isinstance(rules, list) or not rules or not all(isinstance(rule, str) for rule in rules):
        raise InputError(f"certificate, {name}: a conflict must be a list of rule ids")
    claim = f"the rules {', '.join(rules)} have no plan together"
    alone = [rule for rule in rules if rule in broken]
    if alone:
        return CheckLine(name, rules == alone[:1], f"{claim}: {alone[0]} is broken by the case itself")
    if branch.facts.no_formula.intersection(broken) or not branch.structures(ctx, complete=True):
        return CheckLine(name, False, claim)
    known = branch.rule_ids() if isinstance(branch, PinnedBranch) else {}
    if strange := [rule for rule in rules if rule not in RULES and rule not in known]:
        return CheckLine(name, False, f"{claim}: {', '.join(map(repr, strange))} is no rule")
    line = _nothing(ctx, name, branch, None, budget, progress, claim, frozenset(rules))
    if not line.ok or len(rules) == 1:
        return line
    for rule in rules:
        rest = frozenset(rules) - {rule}
        if rule.startswith("align."):
            # A field held to its atoms no longer means what the pin on it says once the alignment is waived.
            field = rule.removeprefix("align.")
            rest -= {pin for pin in known if known[pin].field == field}
        probe = Enumerator(ctx, branch, budget=budget, only=rest, first=True, chunk=_PROBE).run()
        if probe.best is None and probe.complete:
            return CheckLine(name, False, f"{claim}, every one of them needed: without {rule} there is none either")
        if probe.best is None:
            text = f"{claim}; that {rule} is needed was not shown within the budget"
            line = CheckLine(name, True, text, complete=False)
    return line


def _check_winner(data: Mapping[str, Any]) -> CheckLine:
    known = {
        name: data["branches"][name]["ticks"]
        for name in BRANCHES
        if name in data["branches"] and isinstance(data["branches"][name].get("ticks"), int)
    }
    expected = winner_of(known)
    for name, entry in data["branches"].items() if known else ():
        if entry["status"] == Status.DOMINATED and wins(entry["bound_ticks"], min(known.values())):
            return CheckLine("winner", False, f"{name} is dominated: its bound is above the winner's latency")
    return CheckLine("winner", expected == data["winner"], f"the winner is {expected}")
