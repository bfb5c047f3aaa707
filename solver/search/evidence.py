"""What is left behind when two parts of this package disagree: the case, and the CP-SAT model if there was one."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...hardware.errors import InternalError
from ...models.context import MODEL_VERSION, Context
from ...models.pins import Pin
from ...models.plan import BranchName

__all__ = ["file_stem", "write_evidence"]

_ODD = re.compile(r"[^A-Za-z0-9.-]+")
_LONGEST_NAME = 40


def _question(ctx: Context, branch: BranchName, pins: Sequence[Pin]) -> dict[str, Any]:
    return {
        "case": ctx.case.model_dump(mode="json"),
        "branch": branch,
        "pins": [pin.text for pin in pins],
        "rules": ctx.profile,
        "environment": ctx.environment,
        "hardware": ctx.spec.to_dict(),
    }


def file_stem(ctx: Context, branch: BranchName, pins: Sequence[Pin]) -> str:
    """Name for files about a branch of a case: readable, safe, and another one for every other question."""
    question = json.dumps(_question(ctx, branch, pins), sort_keys=True)
    name = _ODD.sub("_", ctx.case.case_id).strip("._")[:_LONGEST_NAME] or "case"
    return f"{name}_{hashlib.sha256(question.encode()).hexdigest()[:8]}_{branch}"


def write_evidence(
    error: InternalError, ctx: Context, branch: BranchName, pins: Sequence[Pin], folder: Path | None
) -> None:
    """Write the case, and the model that the error carries, into ``folder`` or a new temporary one.

    ``error.report_path`` is where; it stays ``None`` when nothing can be written, which must not hide the error.
    """
    if error.report_path is not None:
        return
    try:
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="tileproof-"))
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"disagreement_{file_stem(ctx, branch, pins)}"
        model = None
        if error.model is not None:
            model = f"{stem}.pbtxt"
            (folder / model).write_text(error.model, encoding="utf-8")
        report = {
            "error": error.message,
            **_question(ctx, branch, pins),
            "model": model,
            "model_version": MODEL_VERSION,
            "ortools": version("ortools"),
            "python": sys.version.split()[0],
        }
        path = folder / f"{stem}.json"
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError:
        return
    error.report_path = str(path)
