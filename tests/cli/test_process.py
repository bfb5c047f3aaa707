"""The command as a process: exit codes, clean streams, light start, Ctrl-C, closed pipes, progress."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tileproof.solver.cli import progress as progress_module
from tileproof.solver.cli.progress import Progress

CASE = ("solve", "-m", "64", "-n", "64", "-k", "64")


def test_exit_codes_and_clean_stdout(process: Any) -> None:
    solved = process(*CASE, "--json")
    assert (solved.returncode, solved.stderr) == (0, "")
    assert json.loads(solved.stdout)["verdict"] == "proven"
    infeasible = process(*CASE, "--branch", "special", "--json")
    assert (infeasible.returncode, infeasible.stderr) == (3, "")
    assert json.loads(infeasible.stdout)["winner"] is None
    bad = process("solve", "-m", "-1", "-n", "1", "-k", "1")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "error: m: -1 is out of range; allowed is 0 to 2147483647\n"
    usage = process("solve", "-m", "1")
    assert (usage.returncode, usage.stdout, usage.stderr.count("\n")) == (2, "", 1)


def test_output_is_plain_text_without_a_terminal(process: Any) -> None:
    answer = process(*CASE, env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"})
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.isascii()
    assert "\x1b" not in answer.stdout


def test_start_up_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom tileproof.solver.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'ortools', 'pandas', 'pydantic') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
@pytest.mark.parametrize(
    "work",
    [
        pytest.param("time.sleep(100)", id="in Python"),
        pytest.param("hashlib.pbkdf2_hmac('sha256', b'x', b'y', 10**9)", id="inside a library, as OR-Tools"),
    ],
)
def test_ctrl_c_ends_with_one_line(work: str) -> None:
    code = (
        "import hashlib, signal, sys, time\n"
        "import tileproof.solver.api as api\nfrom tileproof.solver.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def work(*args, **options):\n"
        f"    print('working', flush=True)\n    {work}\n"
        "api.solve = work\n"
        f"sys.argv = {['tileproof', *CASE]!r}\nmain()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "working\n"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (130, "error: interrupted\n")


def test_ctrl_c_while_loading_ends_with_one_line() -> None:
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'tileproof.solver.cli.main':\n            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from tileproof.solver.cli.entry import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


@pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
@pytest.mark.parametrize("args", [CASE, (*CASE, "--json"), ("hardware", "show", "ascend950pr")])
def test_closed_pipe_is_quiet(args: tuple[str, ...], process: Any) -> None:
    read, write = os.pipe()
    os.close(read)
    done = process(*args, capture_output=False, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_one_sentence(process: Any) -> None:
    with open("/dev/full", "w") as full:
        done = process(*CASE, "--json", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, "error: output: No space left on device\n")


def test_progress_is_silent_for_short_work(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("cases", 3) as progress:
        progress.update(1)
    assert capsys.readouterr() == ("", "")


def test_progress_is_a_plain_line_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "PATIENCE", 0.0)
    with Progress("branches", 6) as progress:
        progress.update(2, "asw_basic optimal")
        progress._thread.join()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith((" s, now asw_basic optimal\n", " s\n"))
    assert err.count("\n") == 1
    assert " of 6 branches after " in err
