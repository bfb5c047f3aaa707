"""``tileproof solve``: output, JSON, exit codes and every kind of bad input."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tileproof
from tileproof.hardware import DEFAULT_SPEC, InternalError
from tileproof.models.case import DTYPES, make_case
from tileproof.models.context import ENVIRONMENTS
from tileproof.models.plan import BRANCHES
from tileproof.models.rules import PROFILES
from tileproof.solver import api

SMALL = ("solve", "-m", "64", "-n", "96", "-k", "128")


def test_table_shows_every_branch_the_plan_and_its_buffers(run: Any) -> None:
    answer = run("solve", "-b", "8", "-m", "256", "-n", "512", "-k", "1024", "--dtype", "fp16")
    assert answer.exit_code == 0
    assert answer.stderr == ""
    lines = answer.stdout.splitlines()
    assert lines[0] == "[8,256,1024] x [8,1024,512] fp16 -> fp16"
    assert lines[1] == (
        "hardware ascend950pr, rules v0.4, environment profiler; times are those of latency model 1, not measured"
    )
    shown = [line.split()[0] for line in lines[5 : 5 + len(BRANCHES)]]
    assert shown == list(BRANCHES)
    assert any(line.startswith("winner: ") and line.endswith(" us (proven)") for line in lines)
    assert "  plan: used_core_num " in answer.stdout
    assert any(line.split()[:2] == ["L0C", "cap.l0c"] and line.endswith("%") for line in lines)
    assert "  special: entry.k_at_most_1: K <= 1" in answer.stdout


def test_winner_only_shows_one_branch(run: Any) -> None:
    answer = run("solve", "-b", "64", "-m", "32", "-n", "64", "-k", "64", "--rules", "none", "--winner-only")
    assert answer.exit_code == 0
    table = [line for line in answer.stdout.splitlines() if line.split()[:1] and line.split()[0] in BRANCHES]
    assert len(table) == 1
    assert "infeasible branches" not in answer.stdout


def test_json_is_the_result_and_nothing_else(run: Any) -> None:
    answer = run(*SMALL, "-b", "6x1", "--json")
    assert answer.exit_code == 0
    document = json.loads(answer.stdout)
    expected = tileproof.solve(make_case(batch_a=(6, 1), batch_b=(6, 1), m=64, n=96, k=128)).to_json()
    for result in (document, expected):
        for branch in result["branches"].values():
            del branch["solve_ms"]
    assert document == expected


@pytest.mark.parametrize(
    ("args", "batch_a", "batch_b"),
    [
        ((), [1], [1]),
        (("-b", "8"), [8], [8]),
        (("-b", "6,2"), [6, 2], [6, 2]),
        (("--batch-a", "6,1", "--batch-b", "1x6"), [6, 1], [1, 6]),
        (("--batch-a", "5"), [5], [1]),
    ],
)
def test_batch_options(run: Any, args: tuple[str, ...], batch_a: list[int], batch_b: list[int]) -> None:
    case = json.loads(run(*SMALL, *args, "--branch", "asw_basic", "--json").stdout)["case"]
    assert (case["batch_a"], case["batch_b"]) == (batch_a, batch_b)


def test_every_case_option_reaches_the_case(run: Any) -> None:
    options = (
        "--dtype BF16 --out-dtype float32 --trans-a --trans-b --bias fp32 --bias-batch --format-b nz "
        "--hardware ascend950dt --rules none --environment cold --branch asw-basic --branch special --time-limit 30"
    )
    document = json.loads(run(*SMALL, "-b", "3", *options.split(), "--json").stdout)
    case = document["case"]
    assert case["dtype"] == "bf16"
    assert case["out_dtype"] == "fp32"
    assert (case["trans_a"], case["trans_b"], case["bias"], case["bias_batch"]) == (True, True, "fp32", True)
    assert case["format_b"] == "NZ"
    assert (document["hardware"], document["rules"], document["environment"]) == ("ascend950dt", "none", "cold")
    assert set(document["branches"]) == {"special", "asw_basic"}


def test_infeasible_branch_exits_3_with_the_rule(run: Any) -> None:
    answer = run("solve", "-m", "4", "-n", "4", "-k", "0", "--branch", "asw_basic")
    assert answer.exit_code == 3
    assert "no winner: every branch asked is proven infeasible" in answer.stdout
    assert "asw_basic: entry.k_at_least_2: K >= 2" in answer.stdout


def test_open_verdict_exits_4(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = api.solve

    def undecided(case: Any, **settings: Any) -> Any:
        return real(case, **settings).model_copy(update={"winner": None, "verdict": "open", "buffers": []})

    monkeypatch.setattr(api, "solve", undecided)
    answer = run(*SMALL, "--branch", "asw_basic")
    assert answer.exit_code == 4
    assert "no winner: no verdict in the time limit" in answer.stdout


def test_verify_prints_a_line_for_each_branch(run: Any) -> None:
    answer = run(*SMALL, "--verify", "--branch", "asw_basic", "--branch", "special")
    assert answer.exit_code == 0
    lines = [line for line in answer.stdout.splitlines() if line.startswith("verify ")]
    assert [line.split(":")[0] for line in lines] == ["verify special", "verify asw_basic"]
    assert all(": ok: " in line for line in lines)


def test_verify_knows_the_pins(run: Any) -> None:
    answer = run(*SMALL, "--branch", "asw_basic", "--pin", "base_m=16", "--pin", "base_k<=32", "--verify")
    assert answer.exit_code == 0
    assert "verify asw_basic: ok: no plan is below the bound" in answer.stdout


BAD_INPUT = {
    "-m -5 -n 3 -k 2": "m: -5 is out of range; allowed is 0 to 2147483647",
    "-m 3 -n 2147483648 -k 2": "n: 2147483648 is out of range; allowed is 0 to 2147483647",
    "-m 3 -n 1e3 -k 2": "n: '1e3' is no whole number; allowed is 0 to 2147483647",
    "-m 3 -n 3 -k 12.0": "k: '12.0' is no whole number; allowed is 0 to 2147483647",
    "-m 3 -n 3 -k 3 -b -1": "-b: batch dim -1 is out of range; allowed is 0 to 2147483647",
    "-m 3 -n 3 -k 3 -b 1x": "-b: '1x' is no list of batch dims; write 8, 6x1 or 6,1",
    "-m 3 -n 3 -k 3 --batch-a ,": "batch_a: ',' is no list of batch dims; write 8, 6x1 or 6,1",
    "-m 3 -n 3 -k 3 -b 1x1x1x1x1": "-b: 5 batch dims; allowed are 1 to 4",
    "-m 3 -n 3 -k 3 -b 2 --batch-b 2": (
        "-b and --batch-a/--batch-b exclude one another; give -b when A and B have the same batch"
    ),
    "-m 3 -n 3 -k 3 --batch-a 6,2 --batch-b 3,2": (
        "batch_a 6x2 and batch_b 3x2 do not broadcast: dim -2 is 6 against 3; allowed are equal dims or a 1"
    ),
    "-m 3 -n 3 -k 3 --dtype fp17": (
        "dtype: 'fp17' is not known; allowed: fp16, bf16, fp32, hf32, int8, fp8_e4m3, fp8_e5m2, hif8"
    ),
    "-m 3 -n 3 -k 3 --out-dtype int8": "out_dtype int8 is not possible for fp16 inputs; allowed: fp16, fp32",
    "-m 3 -n 3 -k 3 --bias int4": "bias: 'int4' is not known; allowed: fp16, bf16, fp32, int32",
    "-m 3 -n 3 -k 3 --bias-batch": "bias_batch is set but there is no bias; give a bias type or drop bias_batch",
    "-m 3 -n 3 -k 3 --format-b NHWC": "format_b: 'NHWC' is not known; allowed: ND, NZ",
    "-m 3 -n 3 -k 3 --rules v0.5": "rules: 'v0.5' is not known; allowed: v0.4, source, none",
    "-m 3 -n 3 -k 3 --environment hot": ("environment: 'hot' is not known; allowed: profiler, cold, warm, resident"),
    "-m 3 -n 3 -k 3 --branch stream-j": (
        "--branch: 'stream_j' is not known; did you mean 'stream_k'?; "
        "allowed: special, to_matmul, iter_batch, merge_batch, asw_basic, stream_k"
    ),
    "-m 3 -n 3 -k 3 --hardware ascend950px": (
        'there is no chip "ascend950px"; did you mean "ascend950pr"?; known chips are ascend950dt, ascend950dt_c28, '
        "ascend950dt_c32, ascend950pr, ascend950pr_c28, or give a .toml or .ini file"
    ),
    "-m 3 -n 3 -k 3 --time-limit 0": "--time-limit: '0' is no time; give seconds above 0",
    "-m 3 -n 3 -k 3 --time-limit nan": "--time-limit: 'nan' is no time; give seconds above 0",
    "-m 3 -n 3 -k 3 --time-limit soon": "--time-limit: 'soon' is no time; give seconds above 0",
    "-m 3037000500 -n 3 -k 3": "m: 3037000500 is out of range; allowed is 0 to 2147483647",
    "-m 2147483647 -n 2147483647 -k 2": (
        "B*M*N*K*bytes = 18446744056529682436 is too large; allowed is up to 2^62 = 4611686018427387904"
    ),
}


@pytest.mark.parametrize("args", BAD_INPUT)
def test_bad_input_is_one_sentence(run: Any, args: str) -> None:
    answer = run("solve", *args.split())
    assert (answer.exit_code, answer.stdout, answer.stderr) == (2, "", f"error: {BAD_INPUT[args]}\n")


def test_batch_without_dims_is_refused(run: Any) -> None:
    answer = run(*SMALL, "-b", "")
    assert (answer.exit_code, answer.stderr) == (2, "error: -b: '' is no list of batch dims; write 8, 6x1 or 6,1\n")


@pytest.mark.parametrize(
    "args", [("solve", "-m", "4"), ("solve", "--nonsense"), ("nonsense",), ("--nonsense",), ("solve", "-m")]
)
def test_usage_error_is_one_line(run: Any, args: tuple[str, ...]) -> None:
    answer = run(*args)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith("error: ")
    assert answer.stderr.count("\n") == 1


def test_dump_folder_that_cannot_be_made(run: Any, tmp_path: Any) -> None:
    (tmp_path / "file").write_text("")
    answer = run(*SMALL, "--dump-model", tmp_path / "file")
    message = f"error: --dump-model: folder {tmp_path / 'file'} cannot be made: File exists\n"
    assert (answer.exit_code, answer.stdout, answer.stderr) == (2, "", message)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (InternalError("solver and checker disagree"), 70, "error: internal error: solver and checker disagree\n"),
        (KeyError("x"), 70, "error: internal error: KeyError: 'x' (TILEPROOF_TRACEBACK=1 shows where)\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_errors_end_with_their_code(
    run: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, text: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.delenv("TILEPROOF_TRACEBACK", raising=False)
    monkeypatch.setattr(api, "solve", fail)
    answer = run(*SMALL)
    assert (answer.exit_code, answer.stdout, answer.stderr) == (code, "", text)


def test_traceback_on_demand(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("here")

    monkeypatch.setenv("TILEPROOF_TRACEBACK", "1")
    monkeypatch.setattr(api, "solve", fail)
    assert "Traceback" in run(*SMALL).stderr


def test_help_names_every_choice(run: Any) -> None:
    text = run("solve", "--help", COLUMNS="200").stdout
    for choice in (*DTYPES, *PROFILES, *ENVIRONMENTS, *BRANCHES, DEFAULT_SPEC):
        assert choice in text


def test_no_arguments_shows_the_help(run: Any) -> None:
    answer = run()
    assert answer.exit_code == 2
    assert "recommend" in answer.output


def test_version(run: Any) -> None:
    assert run("--version").stdout == f"tileproof {tileproof.__version__}\n"


@pytest.mark.parametrize("columns", [40, 79])
def test_narrow_output_is_paragraphs_that_fit(run: Any, columns: int) -> None:
    """Numbers and words stay whole: every line fits, and every fact of the wide table is there."""
    options = ("solve", "-b", "8", "-m", "256", "-n", "512", "-k", "1024", "--rules", "none")
    narrow = run(*options, COLUMNS=str(columns)).stdout
    body = narrow.partition("\n\n")[2]
    assert max(len(line) for line in body.splitlines()) <= columns
    wide = run(*options, COLUMNS="200").stdout
    rows = [line.split() for line in wide.splitlines() if line.startswith(("iter_batch", "asw_basic", "stream_k"))]
    assert len(rows) == 3
    flat = " ".join(narrow.split())
    for row in rows:
        name = row[0] + (" *" if row[1] == "*" else "")
        status, latency, bound, bottleneck = row[-len(row) + len(name.split()) :][:4]
        assert f"{name}: {status}, latency {latency} us, bound {bound} us, {bottleneck}, " in flat


def test_an_empty_output_has_no_bottleneck(run: Any) -> None:
    answer = json.loads(run("solve", "-m", "0", "-n", "5", "-k", "3", "--json").stdout)
    assert answer["branches"]["special"]["latency_us"] == 0
    assert answer["branches"]["special"]["bottleneck"] == "none"
