"""What is left behind when solver, evaluator and enumerator disagree, and the models written on demand."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tileproof.hardware import InternalError
from tileproof.models.case import make_case
from tileproof.solver.api import make_context
from tileproof.solver.proof.check import CheckLine
from tileproof.solver.search import branch_search as search
from tileproof.solver.search import evidence
from tileproof.solver.search import solve_branch as branch_module

#: A case whose optimum CP-SAT has to prove.
CASE = ("solve", "-b", "64", "-m", "100", "-n", "200", "-k", "300", "--branch", "asw_basic", "--rules", "none")


@pytest.fixture
def wrong_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    """An evaluator that is one tick off whenever CP-SAT has minimised."""
    real = search.BranchSearch._offer

    def offer(self: Any, structure: Any, values: Any, alg: Any = None) -> Any:
        evaluation = real(self, structure, values, alg)
        return evaluation if alg is None else replace(evaluation, ticks=evaluation.ticks + 1)

    monkeypatch.setattr(search.BranchSearch, "_offer", offer)
    monkeypatch.setattr(search.BranchSearch, "_deepen", lambda *_: False)
    monkeypatch.setattr(search.BranchSearch, "_beam", _weak_beam)


_real_beam = search.BranchSearch._beam


def _weak_beam(self: Any, structure: Any, points: Any) -> None:
    """Incumbents from the worst points, so that CP-SAT finds better ones."""
    if self.best is None and points.size:
        _real_beam(self, structure, points.take(range(points.size - 1, -1, -1)))


def report_of(stderr: str) -> dict[str, Any]:
    """The report that the one line of an internal error names."""
    assert stderr.startswith("error: internal error: ")
    assert stderr.count("\n") == 1
    path = Path(stderr.rstrip("\n").rpartition("(report: ")[2].removesuffix(")"))
    data: dict[str, Any] = json.loads(path.read_text())
    data["folder"] = path.parent
    return data


@pytest.mark.usefixtures("wrong_evaluator")
@pytest.mark.parametrize("given", [True, False])
def test_solver_against_evaluator(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    options = ("--dump-model", tmp_path / "here") if given else ()
    answer = run(*CASE, "--pin", "base_m>=16", *options)
    assert (answer.exit_code, answer.stdout) == (70, "")
    report = report_of(answer.stderr)
    assert report["folder"] == tmp_path / "here" if given else report["folder"].parent == tmp_path
    assert (report["branch"], report["pins"], report["rules"]) == ("asw_basic", ["base_m>=16"], "none")
    assert (report["case"]["m"], report["case"]["batch_a"]) == (100, [64])
    assert "CP-SAT says" in report["error"]
    model = (report["folder"] / report["model"]).read_text()
    assert model.startswith("variables {")
    assert "objective {" in model


def test_solver_against_enumerator(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tileproof.solver.proof.verify.verify_result",
        lambda *a, **k: [CheckLine("asw_basic", False, "a better plan exists")],
    )
    answer = run(*CASE, "--verify", "--json", "--dump-model", tmp_path)
    assert answer.exit_code == 70
    assert json.loads(answer.stdout)["winner"] == "asw_basic"
    first, _, rest = answer.stderr.partition("\n")
    assert first == "verify asw_basic: FAILED: a better plan exists"
    report = report_of(rest)
    assert report["error"] == "asw_basic: the enumerator does not confirm the solver: a better plan exists"
    assert report["folder"] == tmp_path
    assert report["model"] is None or (tmp_path / report["model"]).exists()


def test_solver_against_explainer(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_module.Explainer, "conflicts", lambda _: [])
    answer = run(
        "solve", "-m", "64", "-n", "64", "-k", "64", "--rules", "none", "--branch", "asw_basic",
        "--pin", "base_m=7", "--dump-model", tmp_path,
    )  # fmt: skip
    assert answer.exit_code == 70
    assert report_of(answer.stderr)["error"] == "asw_basic: the search finds no plan, the explainer one"


def test_recommend_names_row_and_report(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise InternalError("ticks differ", model="variables {}\n")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(branch_module, "_solve_branch", fail)
    cases = tmp_path / "cases.csv"
    cases.write_text("case_id,m,n,k\nx/../y,1,1,1\n")
    answer = run("recommend", cases, "--out", tmp_path / "r.csv")
    assert answer.exit_code == 70
    assert answer.stderr.startswith(f"error: internal error: {cases}, row 2: ticks differ (report: ")
    report = report_of(answer.stderr)
    assert report["model"].startswith("disagreement_x_.._y_")
    assert (report["folder"] / report["model"]).read_text() == "variables {}\n"


def test_a_report_that_cannot_be_written_does_not_hide_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = make_context(make_case(m=1, n=1, k=1))
    file = tmp_path / "file"
    file.write_text("")
    error = InternalError("ticks differ")
    evidence.write_evidence(error, ctx, "special", (), file)
    assert (error.report_path, str(error)) == (None, "internal error: ticks differ")
    evidence.write_evidence(error, ctx, "special", (), tmp_path)
    assert error.report_path is not None
    first = error.report_path
    evidence.write_evidence(error, ctx, "asw_basic", (), None)
    assert error.report_path == first
    copy = pickle.loads(pickle.dumps(InternalError("x", model="m", report_path="p")))
    assert (copy.message, copy.model, copy.report_path) == ("x", "m", "p")


def test_models_of_different_cases_do_not_share_a_name(run: Any, tmp_path: Path) -> None:
    for k, pin in (("300", ()), ("304", ()), ("300", ("--pin", "base_m>=16"))):
        answer = run("solve", "-b", "64", "-m", "100", "-n", "200", "-k", k, "--dump-model", tmp_path, *pin)
        assert answer.exit_code == 0
    names = {path.name.rsplit("_", 1)[0] for path in tmp_path.iterdir()}
    assert {name.split("_")[0] for name in names} == {"case"}
    stems = {name.split("_")[1] for name in names}
    assert len(stems) >= 3
    for path in tmp_path.iterdir():
        assert path.read_text().startswith("variables {")


def test_file_names_are_safe_and_tell_questions_apart() -> None:
    def stem(name: str, **options: Any) -> str:
        return evidence.file_stem(make_context(make_case(case_id=name, m=1, n=1, k=1), **options), "special", ())

    for name in ("../../etc/passwd", "a b\0c", "x" * 1000, "", "..", "ö"):
        assert "/" not in stem(name)
        assert "\0" not in stem(name)
        assert not stem(name).startswith(".")
        assert len(stem(name)) < 80
    assert stem("a") == stem("a")
    assert len({stem("a"), stem("b"), stem("a", rules="none"), stem("a", environment="cold")}) == 4


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a folder that cannot be written")
def test_a_model_that_cannot_be_written_is_an_error(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    folder.chmod(0o500)
    answer = run(*CASE, "--dump-model", folder)
    assert answer.exit_code == 2
    assert answer.stderr.endswith(": Permission denied\n")


def test_a_full_disk_ends_the_dump(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_text", full)
    answer = run("solve", "-b", "64", "-m", "100", "-n", "200", "-k", "300", "--dump-model", tmp_path)
    assert answer.exit_code == 2
    assert answer.stderr.endswith(".pbtxt: No space left on device\n")
