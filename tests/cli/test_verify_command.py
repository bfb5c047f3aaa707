"""Certificates: written by ``solve``, believed by ``verify`` only when every claim holds."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tileproof
from tileproof.hardware import get_spec
from tileproof.models.case import make_case
from tileproof.solver.proof import certificate as module
from tileproof.solver.proof.certificate import check_certificate, digest, make_certificate
from tileproof.solver.result import Status

Edit = Callable[[dict[str, Any]], None]
CASE = ("solve", "-b", "4", "-m", "48", "-n", "64", "-k", "96", "--pin", "base_k>=32", "--rules", "none")


def written(path: Path, data: Any, *, again: bool = True) -> Path:
    """The data as a file, with a digest that fits again."""
    if again:
        data["digest"] = digest(data)
    path.write_text(json.dumps(data))
    return path


@pytest.fixture(scope="module")
def pinned() -> dict[str, Any]:
    """Certificate of a case with a winner, an infeasible branch with a conflict of two pins, and ASW_Basic optimal."""
    case = make_case(batch_a=4, batch_b=4, m=48, n=64, k=96)
    pins = ["base_m=16..64", "base_n>=16"]
    result = tileproof.solve(case, rules="none", pins=pins, branches=["special", "merge_batch", "asw_basic"])
    data: dict[str, Any] = json.loads(json.dumps(make_certificate(result, get_spec("ascend950pr"))))
    assert all(line.ok and line.complete for line in check_certificate(data))
    return data


@pytest.fixture(scope="module")
def conflicting() -> dict[str, Any]:
    """Certificate of a conflict of two pins and a buffer."""
    case = make_case(m=64, n=512, k=128)
    pins = ["base_n=512", "base_k=128"]
    result = tileproof.solve(case, rules="none", pins=pins, branches=["asw_basic"])
    data: dict[str, Any] = json.loads(json.dumps(make_certificate(result, get_spec("ascend950pr"))))
    assert data["branches"]["asw_basic"]["conflicts"] == [["pin.base_k", "pin.base_n", "cap.l0b"]]
    return data


def test_what_solve_writes_verify_confirms(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    assert run(*CASE, "--certificate", file).exit_code == 0
    text = file.read_text()
    data = json.loads(text)
    assert text == json.dumps(data, indent=1, sort_keys=True) + "\n"
    assert (data["format"], data["version"], data["pins"]) == ("tileproof-certificate", 1, ["base_k>=32"])
    assert os.listdir(tmp_path) == ["proof.json"]
    answer = run("verify", file)
    lines = len(check_certificate(data))
    assert (answer.exit_code, answer.stdout, answer.stderr) == (0, f"{file}: ok, {lines} checks\n", "")
    run(*CASE, "--certificate", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == text


def test_json_lists_every_check(run: Any, tmp_path: Path, pinned: dict[str, Any]) -> None:
    file = written(tmp_path / "proof.json", copy.deepcopy(pinned))
    document = json.loads(run("verify", file, "--json").stdout)
    (one,) = document["files"]
    assert (one["file"], one["verdict"], one["error"]) == (str(file), "ok", None)
    assert one["lines"][0] == {"where": "file", "ok": True, "text": "the digest matches the content", "complete": True}
    assert {line["where"] for line in one["lines"]} >= {"model", "hardware", "asw_basic", "merge_batch", "winner"}


def test_the_schema_is_documented(pinned: dict[str, Any]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "certificate.md").read_text()
    assert f"version {module.VERSION}\n" in text
    fields = {*pinned, *(name for branch in pinned["branches"].values() for name in branch), *pinned["case"]}
    for name in fields:
        assert f"`{name}`" in text


def _set(*path: Any) -> Edit:
    """Set the place named by all but the last to the last."""

    def edit(data: dict[str, Any]) -> None:
        *places, last, value = path
        for place in places:
            data = data[place]
        data[last] = value

    return edit


def _set_all(*edits: Edit) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        for one in edits:
            one(data)

    return edit


def _slower(data: dict[str, Any]) -> None:
    """A legal but slower plan, everything that follows from it made to fit."""
    pins = ["base_m=64", "base_n=64"]
    case = make_case(batch_a=4, batch_b=4, m=48, n=64, k=96)
    result = tileproof.solve(case, rules="none", pins=pins, branches=["asw_basic"])
    other = make_certificate(result, get_spec("ascend950pr"))["branches"]["asw_basic"]
    checks = [check for check in other["checks"] if not check[0].startswith("pin.")]
    pinned = [c for c in data["branches"]["asw_basic"]["checks"] if c[0].startswith("pin.")]
    new = [[rule, 64, operator, right] for rule, _, operator, right in pinned]
    data["branches"]["asw_basic"] = {**other, "checks": checks + new}


def _other_chip(data: dict[str, Any]) -> None:
    """Twice the memory rate, the fingerprint made to fit."""
    data["hardware"]["hbm_tb_s"] = "3.2"
    data["hardware_fingerprint"] = type(get_spec("ascend950pr")).model_validate(data["hardware"]).fingerprint()


ASW = ("branches", "asw_basic")
#: Edits with a digest that fits again, and a piece of the reason.
TAMPERED: dict[str, tuple[Edit, str]] = {
    "plan field": (_set(*ASW, "plan", "base_k", 16), "asw_basic: not so: "),
    "plan field beyond a buffer": (_set(*ASW, "plan", "base_k", 4096), "not so: the plan breaks no rule: cap.l0"),
    "plan field of no meaning": (_set(*ASW, "plan", "core_map", "grid"), "the derived fields of the plan follow"),
    "plan of zero": (_set(*ASW, "plan", "base_m", 0), "asw_basic: not so: "),
    "plan without a field": (
        lambda d: d["branches"]["asw_basic"]["plan"].pop("base_n"),
        "not so: the plan is complete",
    ),
    "ticks": (_set(*ASW, "ticks", 1), "not so: the plan takes 1 ticks but"),
    "ticks and bound": (
        _set_all(_set(*ASW, "ticks", 10**9), _set(*ASW, "bound_ticks", 10**9)),
        "not so: no plan is below 1000000000 ticks, but one of",
    ),
    "bound": (_set(*ASW, "bound_ticks", 1), "not so: the bound equals the latency of an optimal plan"),
    "bound of a plan called feasible": (
        _set_all(_set(*ASW, "status", "feasible"), _set(*ASW, "bound_ticks", 10**9)),
        "not so: no plan is below 1000000000 ticks",
    ),
    "slower plan": (_slower, "not so: no plan is below"),
    "side of a rule": (_set(*ASW, "checks", 3, 1, 7), "not so: both sides of every rule are as recorded"),
    "rule left out": (lambda d: d["branches"]["asw_basic"]["checks"].pop(), "both sides of every rule"),
    "conflict": (_set("branches", "merge_batch", "conflicts", [["cap.l0b"]]), "not so: the rules cap.l0b have no plan"),
    "conflict of no rule": (_set("branches", "merge_batch", "conflicts", [["cap.l9"]]), "'cap.l9' is no rule"),
    "conflict of the case": (
        _set("branches", "special", "conflicts", [["entry.k_at_most_1", "cap.ub"]]),
        "not so: the rules entry.k_at_most_1, cap.ub have no plan together",
    ),
    "case": (_set("case", "m", 64), "asw_basic: not so: "),
    "case with a bias": (_set("case", "bias", "fp32"), "asw_basic: not so: "),
    "hardware": (_set("hardware", "hbm_tb_s", "3.2"), "hardware: not so: the fingerprint matches the numbers"),
    "hardware with its fingerprint": (_other_chip, "asw_basic: not so: the plan takes"),
    "rules": (_set("rules", "source"), "asw_basic: not so: "),
    "environment": (_set("environment", "cold"), "asw_basic: not so: the plan takes"),
    "pins": (_set("pins", ["base_m=32"]), "asw_basic: not so: "),
    "no pins": (_set("pins", []), "asw_basic: not so: "),
    "winner": (_set("winner", None), "winner: not so: the winner is asw_basic"),
    "tick": (_set("tick", "1/512 cycle"), "tick: not so: the tick is 1/1024 cycle"),
    "model version": (_set("model_version", "0"), "model: not so: model version is"),
    "optimal called infeasible": (
        _set_all(_set("branches", "asw_basic", {"status": "infeasible"}), _set("winner", None)),
        "asw_basic: not so: no plan obeys the rules, but one of",
    ),
    "infeasible called dominated": (
        _set("branches", "special", {"status": "dominated", "bound_ticks": 10}),
        "special: not so: infeasible, the case breaks entry.k_at_most_1",
    ),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_tampering_is_rejected_though_the_digest_fits(
    run: Any, tmp_path: Path, pinned: dict[str, Any], what: str
) -> None:
    data = copy.deepcopy(pinned)
    edit, reason = TAMPERED[what]
    edit(data)
    assert data != pinned
    file = written(tmp_path / "proof.json", data)
    answer = run("verify", file)
    assert answer.exit_code == 3
    first, *failed = answer.stdout.splitlines()
    assert first == f"{file}: REJECTED"
    assert any(reason in line for line in failed), failed
    assert not any(line.startswith("  file:") for line in failed)


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (["pin.base_n", "cap.l0b"], "have no plan together, but one of"),
        (["pin.base_k", "pin.base_n", "cap.l0b", "cap.l1"], "every one of them needed: without cap.l1 there is none"),
        (["pin.base_k", "pin.base_m", "cap.l0b"], "'pin.base_m' is no rule"),
    ],
)
def test_a_conflict_with_a_rule_too_few_or_too_many(
    run: Any, tmp_path: Path, conflicting: dict[str, Any], rules: list[str], reason: str
) -> None:
    data = copy.deepcopy(conflicting)
    data["branches"]["asw_basic"]["conflicts"] = [rules]
    answer = run("verify", written(tmp_path / "proof.json", data))
    assert answer.exit_code == 3
    assert reason in answer.stdout


def test_one_changed_digit_breaks_the_digest(run: Any, tmp_path: Path, pinned: dict[str, Any]) -> None:
    data = copy.deepcopy(pinned)
    data["case"]["case_id"] = "another"
    file = written(tmp_path / "proof.json", data, again=False)
    answer = run("verify", file)
    assert answer.exit_code == 3
    assert answer.stdout == f"{file}: REJECTED\n  file: not so: the digest matches the content\n"


NO_CERTIFICATE: dict[bytes, str] = {
    b"": "is no JSON: Expecting value: line 1 column 1 (char 0)",
    b"{": "is no JSON: ",
    b"\xff\xfe\xff": "is no JSON: ",
    b"[" * 100_000: "is no JSON: nested too deeply",
    b"[1]": "not a certificate: format must be 'tileproof-certificate'",
    b'{"format": "tileproof-certificate"}': "certificate version None is not known; allowed: 1",
    b'{"format": "tileproof-certificate", "version": 2}': "certificate version 2 is not known; allowed: 1",
    b'{"format": "tileproof-certificate", "version": 1}': "the certificate lacks model_version, case, ",
}


@pytest.mark.parametrize("content", NO_CERTIFICATE, ids=range(len(NO_CERTIFICATE)))
def test_no_certificate_is_one_sentence(run: Any, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "proof.json"
    file.write_bytes(content)
    answer = run("verify", file)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"error: {file}: {NO_CERTIFICATE[content]}")
    assert answer.stderr.count("\n") == 1


MALFORMED: dict[str, tuple[Edit, str]] = {
    "more fields": (_set("verdict", "proven"), "fields that are not known: 'verdict'"),
    "status": (_set(*ASW, "status", "fast"), "certificate, asw_basic: the status must be one of"),
    "branch that is a list": (_set(*ASW, []), "certificate, asw_basic: the status must be one of"),
    "branch unknown": (_set("branches", "stream_j", {}), "certificate, branches: must name branches among"),
    "plan missing": (lambda d: d["branches"]["asw_basic"].pop("plan"), "asw_basic: a solved branch needs a plan"),
    "plan field unknown": (_set(*ASW, "plan", "base_q", 1), "certificate, asw_basic, plan, base_q: "),
    "bound that is text": (_set(*ASW, "bound_ticks", "5"), "asw_basic: bound_ticks must be a whole number"),
    "ticks of an infeasible branch": (_set("branches", "special", "ticks", 1), "that is infeasible has no ticks"),
    "conflict that is a number": (_set("branches", "special", "conflicts", 5), "conflicts must be a list of lists"),
    "conflict that is empty": (_set("branches", "special", "conflicts", [[]]), "must be a list of rule ids"),
    "case out of range": (_set("case", "m", -1), "certificate, m: -1 is out of range"),
    "hardware without a number": (lambda d: d["hardware"].pop("l1_bytes"), "certificate, "),
    "rules": (_set("rules", "v9"), "certificate, rules: 'v9' is not known; allowed: v0.4, source, none"),
    "environment": (_set("environment", 3), "certificate, environment: 3 is not known"),
    "pins": (_set("pins", "base_m=1"), "certificate, pins: must be a list of texts"),
    "pin unknown": (_set("pins", ["base_q=1"]), "'base_q' is no plan field; did you mean"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_certificate_is_one_sentence(run: Any, tmp_path: Path, pinned: dict[str, Any], what: str) -> None:
    data = copy.deepcopy(pinned)
    edit, reason = MALFORMED[what]
    edit(data)
    file = written(tmp_path / "proof.json", data)
    answer = run("verify", file)
    assert (answer.exit_code, answer.stdout, answer.stderr.count("\n")) == (2, "", 1), answer.output
    assert answer.stderr.startswith(f"error: {file}: ")
    assert reason in answer.stderr


def test_a_bad_file_does_not_keep_the_others_from_being_checked(
    run: Any, tmp_path: Path, pinned: dict[str, Any]
) -> None:
    good = written(tmp_path / "good.json", copy.deepcopy(pinned))
    missing = tmp_path / "missing.json"
    answer = run("verify", missing, tmp_path, good)
    assert answer.exit_code == 2
    assert answer.stdout.startswith(f"{good}: ok, ")
    assert answer.stderr == (
        f"error: {missing}: cannot be read: No such file or directory\n"
        f"error: {tmp_path}: cannot be read: Is a directory\n"
    )
    data = copy.deepcopy(pinned)
    data["winner"] = "special"
    bad = written(tmp_path / "bad.json", data)
    answer = run("verify", missing, bad, good, "--json")
    assert answer.exit_code == 3
    verdicts = [one["verdict"] for one in json.loads(answer.stdout)["files"]]
    assert verdicts == ["unreadable", "rejected", "ok"]


def test_a_budget_that_ends_says_what_was_not_covered(run: Any, tmp_path: Path, conflicting: dict[str, Any]) -> None:
    file = written(tmp_path / "proof.json", copy.deepcopy(conflicting))
    answer = run("verify", file, "--budget", "100")
    assert answer.exit_code == 4
    first, *lines = answer.stdout.splitlines()
    assert first == f"{file}: not fully covered"
    assert lines
    assert all(line.startswith("  asw_basic: ") for line in lines)
    assert all("the rest was not covered" in line or "was not shown within the budget" in line for line in lines)
    assert run("verify", file, "--budget", "100000000").exit_code == 0
    data = copy.deepcopy(conflicting)
    data["winner"] = "special"
    assert run("verify", written(file, data), "--budget", "0").exit_code == 3


@pytest.mark.parametrize("text", ["-1", "1e6", "many", ""])
def test_bad_budget(run: Any, text: str) -> None:
    answer = run("verify", "x.json", "--budget", text)
    message = f"error: --budget: {text!r} is no number of plans; give a whole number, 0 or more\n"
    assert (answer.exit_code, answer.stdout, answer.stderr) == (2, "", message)


def test_progress_names_file_branch_and_plans(tmp_path: Path, pinned: dict[str, Any]) -> None:
    seen: list[tuple[str, int]] = []
    check_certificate(pinned, progress=lambda branch, plans: seen.append((branch, plans)))
    assert {branch for branch, _ in seen} == {"merge_batch", "asw_basic"}
    assert all(plans > 0 for _, plans in seen)


def test_a_certificate_needs_no_solver(process: Any, tmp_path: Path, pinned: dict[str, Any]) -> None:
    """``verify`` works where OR-Tools cannot be imported."""
    written(tmp_path / "proof.json", copy.deepcopy(pinned))
    (tmp_path / "ortools.py").write_text("raise ImportError('not here')\n")
    done = process("verify", "proof.json", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("proof.json: ok, ")


def test_places_that_cannot_be_written_are_seen_before_the_work(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("solved")

    monkeypatch.setattr("tileproof.solver.api.solve", never)
    for target, reason in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "c.json", f"there is no folder {tmp_path / 'no'}"),
    ):
        answer = run(*CASE, "--certificate", target)
        message = f"error: {target}: cannot be written: {reason}\n"
        assert (answer.exit_code, answer.stdout, answer.stderr) == (2, "", message)


def test_a_certificate_of_an_open_result_claims_only_what_was_shown() -> None:
    """A bound and a plan of a branch that ran out of time are checked as such."""
    case = make_case(batch_a=4, batch_b=4, m=48, n=64, k=96)
    result = tileproof.solve(case, rules="none", branches=["asw_basic"])
    branch = result.branches["asw_basic"]
    assert branch.bound_ticks is not None
    late = branch.model_copy(update={"status": Status.FEASIBLE, "bound_ticks": branch.bound_ticks - 5})
    data = make_certificate(result.model_copy(update={"branches": {"asw_basic": late}}), get_spec("ascend950pr"))
    assert data["branches"]["asw_basic"]["status"] == "feasible"
    assert all(line.ok and line.complete for line in check_certificate(json.loads(json.dumps(data))))


def test_an_empty_output_has_a_certificate(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "empty.json"
    assert run("solve", "-m", "0", "-n", "4", "-k", "8", "--certificate", file).exit_code == 0
    answer = run("verify", file)
    assert (answer.exit_code, answer.stderr) == (0, "")
