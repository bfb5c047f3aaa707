"""Running the command inside the test process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tileproof.solver.cli.main import app

Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """``run("validate", "--json")``: the result with ``exit_code``, ``stdout`` and ``stderr``."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*args: str | Path) -> Any:
        return CliRunner().invoke(app, [str(arg) for arg in args])

    return call
