"""Certificates: a self-contained JSON of what was proven, and its re-check without CP-SAT.

The file (``docs/certificate.md``) carries the case, every number of the chip, rules, pins, and for each branch the plan
with both sides of every rule and the bound, or the conflicts. ``check_certificate`` believes none of it: plans are
evaluated again, optimality and infeasibility are shown by enumeration, conflicts are enumerated by themselves.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from ...hardware import NpuSpec, SpecError
from ...hardware.errors import InputError
from ...models.case import BmmCase, explain_validation
from ...models.context import ENVIRONMENTS, MODEL_VERSION, Context
from ...models.pins import Pin, PinnedBranch, parse_pins
from ...models.plan import BRANCHES, BranchName, Plan
from ...models.rules import PROFILES, RULES
from ..result import CaseResult, Status
from ..search.best import winner_of, wins
from ..search.branches import asked_branch
from .check import BranchCheck, CheckLine, Claim, evaluate_in, plan_record, sides_record

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
_FIELDS: Final = (
    "format", "version", "model_version", "case", "hardware", "hardware_fingerprint", "rules", "environment", "tick",
    "pins", "winner", "branches", "digest",
)  # fmt: skip


def make_certificate(result: CaseResult, spec: NpuSpec) -> dict[str, Any]:
    """Certificate of a result that was solved on ``spec``."""
    ctx = Context.of(result.case, spec, result.rules, result.environment)
    pins = parse_pins(result.pins)
    branches: dict[str, Any] = {}
    for name, branch in result.branches.items():
        entry: dict[str, Any] = {"status": branch.status.value}
        if branch.plan is not None:
            entry["plan"] = plan_record(branch.plan)
            entry["ticks"] = branch.latency_ticks
            entry["checks"] = sides_record(evaluate_in(ctx, asked_branch(name, pins), branch.plan))
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
        lines += _check_branch(BranchCheck(ctx, name, pins, budget=budget, progress=progress), entry)
    lines.append(_check_winner(data))
    return [line.told for line in lines]


def _read(data: Mapping[str, Any]) -> tuple[Context, tuple[Pin, ...]]:
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
    return Context.of(case, spec, data["rules"], data["environment"]), parse_pins(data["pins"])


def _check_branch(check: BranchCheck, entry: Any) -> Iterator[CheckLine]:
    name = check.name
    try:
        status = Status(entry["status"])
    except (KeyError, TypeError, ValueError):
        raise InputError(f"certificate, {name}: the status must be one of {', '.join(Status)}") from None
    if unknown := sorted(set(entry) - set(_BRANCH_FIELDS[status])):
        raise InputError(f"certificate, {name}: a branch that is {status} has no {', '.join(unknown)}")
    conflicts = entry.get("conflicts", [])
    try:
        yield from check.verdict(_claim(check, status, entry))
    except ValidationError as error:
        raise _plan_error(name, error) from None
    if not isinstance(conflicts, list):
        raise InputError(f"certificate, {name}: conflicts must be a list of lists of rule ids")
    for rules in conflicts:
        yield _check_conflict(check, rules)


def _claim(check: BranchCheck, status: Status, entry: Mapping[str, Any]) -> Claim:
    """What an entry says of its branch."""
    name, plan, recorded = check.name, None, None
    if status in (Status.OPTIMAL, Status.FEASIBLE):
        if "plan" not in entry:
            raise InputError(f"certificate, {name}: a solved branch needs a plan")
        try:
            plan = Plan.model_validate(entry["plan"])
        except ValidationError as error:
            raise _plan_error(name, error) from None
        recorded = (entry["plan"], entry.get("checks"))
    bound = entry.get("bound_ticks")
    bounded = status not in (Status.INFEASIBLE, Status.UNKNOWN) or "bound_ticks" in entry
    if bounded and not check.broken and not isinstance(bound, int):
        raise InputError(f"certificate, {name}: bound_ticks must be a whole number")
    return Claim(status, plan, entry.get("ticks"), bound, f"{bound} ticks", recorded)


def _plan_error(name: BranchName, error: ValidationError) -> InputError:
    field, message = explain_validation(error)
    return InputError(f"certificate, {name}, plan, {field}: {message}")


def _check_conflict(check: BranchCheck, rules: Any) -> CheckLine:
    if not isinstance(rules, list) or not rules or not all(isinstance(rule, str) for rule in rules):
        raise InputError(f"certificate, {check.name}: a conflict must be a list of rule ids")
    claim = f"the rules {', '.join(rules)} have no plan together"
    branch, broken = check.branch, check.broken
    alone = [rule for rule in rules if rule in broken]
    if alone:
        return check.line(rules == alone[:1], f"{claim}: {alone[0]} is broken by the case itself")
    if branch.facts.no_formula.intersection(broken) or not branch.structures(check.ctx, complete=True):
        return check.line(False, claim)
    known = branch.rule_ids() if isinstance(branch, PinnedBranch) else {}
    if strange := [rule for rule in rules if rule not in RULES and rule not in known]:
        return check.line(False, f"{claim}: {', '.join(map(repr, strange))} is no rule")
    line = check.nothing(claim, only=frozenset(rules))
    if not line.ok or len(rules) == 1:
        return line
    for rule in rules:
        rest = frozenset(rules) - {rule}
        if rule.startswith("align."):
            # A field held to its atoms no longer means what the pin on it says once the alignment is waived.
            field = rule.removeprefix("align.")
            rest -= {pin for pin in known if known[pin].field == field}
        found = check.some(rest)
        if found is False:
            return check.line(False, f"{claim}, every one of them needed: without {rule} there is none either")
        if found is None:
            text = f"{claim}; that {rule} is needed was not shown within the budget"
            line = CheckLine(check.name, True, text, complete=False)
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
