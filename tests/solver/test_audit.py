"""Audit: shipped tilings are legal and no faster than the optimum, and the first change does what it says."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from tileproof.hardware import get_spec
from tileproof.models.evaluation import evaluate_plan
from tileproof.solver.review.audit import markdown, read_audit, to_json
from tileproof.solver.review.tilings import JudgedTiling, TilingJudge, TilingRow
from tileproof.solver.settings import settings_of

SHIPPED = Path(__file__).parents[3] / "shared" / "data" / "shipped_tilings.csv"
HEADER = "case_id,b,m,n,k,branch,base_m,base_n,base_k,step_ka,step_kb,l0_buffers,l0c_buffers,l1_buffers,fixpipe_unitflag,full_load,tail_m,tail_n\n"


def audit(path: Path, rules: str = "none") -> list[JudgedTiling]:
    settings = settings_of("ascend950pr", rules, "profiler", 60, all_branches=True)
    rows, _ = read_audit(path, settings.spec)
    return list(map(TilingJudge(settings, gap=True, change=True).judge, rows))


def _shipped_rows() -> list[Any]:
    if not SHIPPED.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason="../shared/data/shipped_tilings.csv is absent"))]
    rows, _ = read_audit(SHIPPED, get_spec("ascend950pr"))
    return [pytest.param(row, id=f"row{row.number}") for row in rows]


@pytest.mark.parametrize("row", _shipped_rows())
def test_shipped_tilings(row: TilingRow) -> None:
    """Legal under ``none`` and no faster than the optimum; the three kinds of exceptions are those of docs/audit.md."""
    settings = settings_of("ascend950pr", "none", "profiler", 60, all_branches=True)
    result = TilingJudge(settings, gap=True, change=True).judge(row)
    if result.judgement is None:
        assert result.error is not None
        assert "multiplies on the vector cores; not modelled" in result.error.message
        return
    verdict, gap = result.judgement, result.gap
    assert gap is not None
    if not verdict.feasible:
        assert verdict.rules[0] in ("cover.grid", "entry.equal_batch")
        assert (verdict.rules[0] == "cover.grid") == (row.number == 41)
        assert gap.optimum is not None
        return
    assert gap.optimum is not None
    assert gap.branch_optimum is not None
    assert gap.ticks >= gap.branch_optimum >= gap.optimum >= max(gap.roofline, gap.traffic)
    check_first_change(result)


def check_first_change(result: JudgedTiling) -> None:
    """The change is a single one, legal, and saves what the text says."""
    assert result.ctx is not None
    assert result.gap is not None
    if result.first is None:
        assert result.change == "none"
        return
    first = result.first
    again = evaluate_plan(result.ctx, first.evaluation.plan)
    assert again.feasible
    assert again.ticks == first.evaluation.ticks < result.gap.ticks
    assert result.change == f"{first.field} {first.old} -> {first.new} saves {100 * first.gain:.1f} %"
    assert getattr(again.plan, first.field) == first.new != first.old


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "tilings.csv"
    path.write_text(
        HEADER
        + "good,8,256,512,1024,asw_basic,256,176,64,4,4,2,1,2,1,none,1,1\n"
        + "small,8,256,512,1024,asw_basic,64,176,64,4,4,2,1,2,1,none,1,1\n"
        + "deep,8,256,512,1024,asw_basic,256,176,128,2,2,2,1,2,1,none,1,1\n"
        + "odd,8,256,512,1024,asw_basic,100,176,64,4,4,2,1,2,1,none,1,1\n"
        + "open,8,256,512,1024,asw_basic,,,,,,,,,,,,\n"
        + "bad,8,256,512,x,asw_basic,,,,,,,,,,,,\n"
    )
    return path


def test_rows_of_the_design_columns(table: Path) -> None:
    results = audit(table)
    documents = {result.row.name: to_json(result) for result in results}
    assert [result.row.number for result in results] == [2, 3, 4, 5, 6, 7]
    keys = {"row", "legal", "violations", "branch", "latency_us", "branch_optimum_us", "optimum_us", "regret_pct", "first_change"}  # fmt: skip
    assert keys <= set(documents["good"])
    assert (documents["good"]["legal"], documents["good"]["regret_pct"], documents["good"]["first_change"]) == (True, 0.0, "none")  # fmt: skip
    assert documents["small"]["regret_pct"] > 5
    assert documents["small"]["first_change"].startswith("base_m 64 -> ")
    assert documents["deep"]["legal"] is False
    assert documents["deep"]["violations"] == ["cap.l0a", "cap.l0b"]
    assert documents["deep"]["first_change"] == "base_k 128 -> 64 makes it legal"
    assert documents["odd"]["violations"] == ["align.base_m"]
    assert documents["odd"]["first_change"].startswith("base_m 100 -> ")
    assert documents["open"]["regret_pct"] == 0.0
    assert results[5].error is not None
    assert (results[5].error.row, results[5].error.column) == (7, "k")
    for result in results:
        if result.judgement is not None and result.judgement.feasible:
            check_first_change(result)


def test_one_line_of_the_table_for_each_row(table: Path) -> None:
    lines = markdown(audit(table)).splitlines()
    assert len(lines) == 2 + 6
    assert all(line.count("|") == lines[0].count("|") for line in lines)


def test_policy_rules_of_a_profile_count(tmp_path: Path) -> None:
    path = tmp_path / "tilings.csv"
    path.write_text(HEADER + "good,8,256,512,1024,asw_basic,256,176,64,4,4,2,1,4,1,none,1,1\n")
    assert to_json(audit(path)[0])["violations"] == ["cap.l1"]
    path.write_text(HEADER + "good,8,256,512,1024,asw_basic,128,176,64,4,2,2,1,4,1,none,1,1\n")
    assert to_json(audit(path)[0])["legal"] is True
    assert to_json(audit(path, "source")[0])["violations"] == ["policy.source_step_equal"]


def test_the_vendors_field_names(tmp_path: Path) -> None:
    path = tmp_path / "shipped.csv"
    row = {
        "case_name": "mine", "batch_a": "8", "batch_b": "8", "m": "256", "n": "512", "k": "1024", "dtype_in": "fp16",
        "aic": "32", "aiv": "64", "strategy": "ASW_BASIC", "base_m": "256", "base_n": "176", "base_k": "64",
        "k_l1": "256", "l1_buffer_num": "2", "db_l0a": "2", "db_l0c": "1", "m_tail_cnt": "1", "n_tail_cnt": "1",
    }  # fmt: skip
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, row)
        writer.writeheader()
        writer.writerow(row)
        writer.writerow({**row, "base_k": "many"})
        writer.writerow({**row, "strategy": "MAGIC"})
    good, number, strategy = audit(path)
    assert good.judgement is not None
    assert (good.judgement.feasible, good.regret) == (True, 0.0)
    assert (number.error.row, number.error.column) == (3, "base_k")  # type: ignore[union-attr]
    assert (strategy.error.row, strategy.error.column) == (4, "strategy")  # type: ignore[union-attr]
