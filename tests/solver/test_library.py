"""The plan library: what shares an entry, who may write, and what is refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tileproof
from tileproof.hardware import InputError, get_spec
from tileproof.models.case import make_case
from tileproof.models.plan import BRANCHES
from tileproof.solver import library as module
from tileproof.solver.library import PlanLibrary, Question, canonical_case

QUESTION = Question(get_spec("ascend950pr"), "none", "profiler", tuple(BRANCHES))


def plain(result: tileproof.CaseResult) -> dict[str, Any]:
    """A result without its case and times."""
    branches = {name: branch.model_dump(exclude={"solve_ms"}) for name, branch in result.branches.items()}
    return {**result.model_dump(exclude={"case", "branches"}), "branches": branches}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (dict(batch_a=(2, 4), batch_b=(2, 4)), dict(batch_a=8, batch_b=8)),
        (dict(batch_a=(2, 4), batch_b=(1, 1)), dict(batch_a=8, batch_b=1)),
        (dict(batch_a=(6, 1), batch_b=(1, 6)), dict(batch_a=(1, 6), batch_b=(6, 1))),
        (dict(dtype="fp16"), dict(dtype="bf16")),
        (dict(dtype="fp8_e4m3"), dict(dtype="hif8")),
        (dict(dtype="fp8_e4m3"), dict(dtype="fp8_e5m2")),
        (dict(bias="fp16"), dict(bias="fp32")),
        (dict(case_id="a"), dict(case_id="b")),
        (dict(k=1, bias="fp16"), dict(k=1, bias="bf16")),
    ],
)
def test_cases_that_share_an_entry_have_the_same_answer(one: dict[str, Any], other: dict[str, Any]) -> None:
    size = dict(m=96, n=200, k=300)
    first, second = (make_case(**{**size, **case}) for case in (one, other))
    assert QUESTION.key(first) == QUESTION.key(second)
    left, right = (tileproof.solve(case, rules="none") for case in (first, second))
    assert plain(left) == plain(right)


@pytest.mark.parametrize(
    "other",
    [
        dict(m=97), dict(dtype="fp32"), dict(dtype="int8"), dict(trans_a=True), dict(trans_b=True), dict(bias="fp16"),
        dict(out_dtype="fp32"), dict(format_b="NZ"), dict(batch_a=2, batch_b=2), dict(batch_a=2, batch_b=1),
    ],
)  # fmt: skip
def test_cases_that_differ_do_not_share(other: dict[str, Any]) -> None:
    size = dict(m=96, n=200, k=300)
    assert canonical_case(make_case(**size)) != canonical_case(make_case(**{**size, **other}))


def test_bias_types_differ_where_the_vector_cores_add_them() -> None:
    one, two = (make_case(m=8, n=8, k=0, bias=bias) for bias in ("fp16", "fp32"))
    assert QUESTION.key(one) != QUESTION.key(two)


def test_every_part_of_the_question_counts() -> None:
    case = make_case(m=8, n=8, k=8)
    spec = get_spec("ascend950pr")
    others = [
        Question(get_spec("ascend950dt"), "none", "profiler", tuple(BRANCHES)),
        Question(spec.replace(name="ascend950pr_x", l1_bytes=262144), "none", "profiler", tuple(BRANCHES)),
        Question(spec, "v0.4", "profiler", tuple(BRANCHES)),
        Question(spec, "none", "cold", tuple(BRANCHES)),
        Question(spec, "none", "profiler", ("asw_basic",)),
        Question(spec, "none", "profiler", tuple(BRANCHES), ("base_m=16",)),
        Question(spec, "none", "profiler", tuple(BRANCHES), all_branches=False),
    ]
    keys = {question.key(case) for question in (QUESTION, *others)}
    assert len(keys) == len(others) + 1


def test_a_hit_is_the_stored_answer_under_the_asked_name(tmp_path: Path) -> None:
    case = make_case(case_id="a", batch_a=(2, 4), batch_b=(2, 4), m=64, n=64, k=64)
    result = tileproof.solve(case, rules="none")
    with PlanLibrary(tmp_path / "plans.db") as library:
        assert library.get(QUESTION, case) is None
        library.put(QUESTION, result)
        asked = make_case(case_id="b", batch_a=8, batch_b=8, m=64, n=64, k=64, dtype="bf16")
        hit = library.get(QUESTION, asked)
        assert hit is not None
        assert hit.case == asked
        assert plain(hit) == plain(result)
        assert library.check() == []
        ((key, _),) = library.entries()
        assert library.find(key[:10]) is not None


def test_another_model_version_is_never_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(m=64, n=64, k=64)
    result = tileproof.solve(case, rules="none")
    with PlanLibrary(tmp_path / "plans.db") as library:
        library.put(QUESTION, result)
        monkeypatch.setattr(module, "MODEL_VERSION", "next")
        assert library.get(QUESTION, case) is None
        assert (library.stats().entries, library.stats().current) == (1, 0)
        assert library.prune() == 1


_WRITER = """
import sys, tileproof
from tileproof.hardware import get_spec
from tileproof.models.plan import BRANCHES
from tileproof.solver.library import PlanLibrary, Question
first = int(sys.argv[2])
case = tileproof.BmmCase(m=16, n=16, k=16)
result = tileproof.solve(case, rules="none", branches=["asw_basic"])
question = Question(get_spec("ascend950pr"), "none", "profiler", tuple(BRANCHES))
with PlanLibrary(sys.argv[1]) as library:
    for m in range(first, first + 150):
        library.put(question, result.model_copy(update={"case": tileproof.BmmCase(m=m, n=16, k=16)}))
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "plans.db")
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, path, first], cwd=tmp_path) for first in ("1", "101", "201")
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    with PlanLibrary(path) as library:
        assert library.stats().entries == 350
        assert library.check() == []


def test_foreign_and_damaged_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database at all, but long enough to be one" * 20)
    with pytest.raises(InputError, match="is no plan library"):
        PlanLibrary(text)
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    with pytest.raises(InputError, match="another program"):
        PlanLibrary(foreign)
    with pytest.raises(InputError, match="does not exist"):
        PlanLibrary(tmp_path / "absent.db", create=False)
    path = tmp_path / "plans.db"
    with PlanLibrary(path) as library:
        library.put(QUESTION, tileproof.solve(make_case(m=64, n=64, k=64), rules="none", branches=["asw_basic"]))
    database = sqlite3.connect(path)
    database.execute("UPDATE entries SET result = 'x'")
    database.commit()
    database.close()
    with PlanLibrary(path) as library:
        assert len(library.check()) == 1
        with pytest.raises(InputError, match="cannot be read"):
            library.get(QUESTION, make_case(m=64, n=64, k=64))
