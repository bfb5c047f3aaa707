"""Running the command inside the test process and as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tileproof.solver.cli.main import app

Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run("solve", "-m", "4")``: the result with ``exit_code``, ``stdout`` and ``stderr``."""

    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it

    def call(*args: str | Path, **environment: str) -> Any:
        return CliRunner(env=environment).invoke(app, [str(arg) for arg in args])

    return call


@pytest.fixture
def process(tmp_path: Path) -> Run:
    """The same as a process: ``returncode``, ``stdout`` and ``stderr``."""

    def call(*args: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-m", "tileproof.solver.cli.main", *map(str, args)]
        settings = {"capture_output": True, "text": True, "cwd": tmp_path, "check": False, "timeout": 120, **options}
        return subprocess.run(command, **settings)

    return call
