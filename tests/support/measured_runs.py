"""Synthetic measurements: times of known tilings on a chip with planted constants, with noise, in both file formats."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tileproof.hardware import NpuSpec
from tileproof.models.case import BmmCase
from tileproof.models.context import Context
from tileproof.models.evaluation import evaluate_plan
from tileproof.models.plan import PLAN_FIELDS, Plan

#: (batch, m, n, k, base_m, base_n, base_k, step): compute-bound, memory-bound, short rows, many small drains.
SHAPES = (
    (1, 4096, 4096, 4096, 256, 256, 64, 4), (1, 16, 16384, 4096, 16, 256, 64, 4), (64, 128, 128, 128, 128, 128, 64, 2),
    (8, 256, 512, 1024, 256, 256, 64, 4), (1, 2048, 2048, 256, 256, 256, 64, 2), (32, 64, 64, 512, 64, 64, 64, 1),
    (1, 8192, 1024, 512, 128, 256, 64, 2), (1, 64, 8192, 8192, 64, 256, 64, 1), (16, 512, 512, 64, 128, 128, 64, 1),
    (1, 1024, 1024, 8192, 256, 256, 64, 4), (4, 384, 640, 320, 128, 128, 32, 2), (1, 4096, 4096, 64, 256, 256, 64, 1),
    (128, 64, 64, 64, 64, 64, 64, 1), (1, 512, 512, 512, 128, 128, 64, 4), (256, 32, 128, 256, 32, 128, 64, 2),
    (1, 16, 4096, 16384, 16, 128, 128, 4), (2, 2048, 512, 128, 128, 256, 64, 2), (1, 32, 32, 32, 32, 32, 32, 1),
    (1, 128, 128, 2048, 64, 64, 64, 4), (12, 192, 320, 96, 96, 160, 96, 1), (1, 4096, 512, 4096, 128, 128, 64, 1),
    (1, 2048, 4096, 1024, 128, 256, 16, 8), (1, 2048, 4096, 1024, 128, 256, 32, 4), (1, 8192, 8192, 32, 256, 256, 32, 1),
)  # fmt: skip
STAGES = {"mac_us": "mmad", "mte1_us": "mte1", "mte2_us": "mte2", "fixpipe_us": "fixpipe"}


def synthetic_rows(
    spec: NpuSpec, seed: int, *, noise: float = 0.05, counters: bool = False, shapes: Sequence[Any] = SHAPES
) -> list[dict[str, Any]]:
    """Rows with case and plan columns and noisy times of the model on ``spec``."""
    rng = np.random.default_rng(seed)
    rows = []
    for number, (b, m, n, k, base_m, base_n, base_k, step) in enumerate(shapes):
        case = BmmCase(batch_a=b, batch_b=b, m=m, n=n, k=k, trans_b=True)
        steps = max(1, min(step, -(-k // base_k)))
        plan = Plan(
            branch="asw_basic", base_m=base_m, base_n=base_n, base_k=base_k, step_ka=steps, step_kb=steps,
            full_load="none", tail_m=1, tail_n=1, l0_buffers=2, l1_buffers=2, fixpipe_unitflag=0,
            l0c_buffers=2 if base_m * base_n <= 32768 else 1,
        )  # fmt: skip
        ctx = Context.of(case, spec, "none", "profiler")
        found = evaluate_plan(ctx, plan)
        assert found.feasible, (number, found.violations)

        def noisy(ticks: int, ctx: Context = ctx) -> float:
            return ctx.us(ticks) * (1 + noise * float(rng.standard_normal()))

        row: dict[str, Any] = {
            "case_id": f"run{number}", "b": b, "m": m, "n": n, "k": k, "dtype": "fp16", "trans_b": 1,
            **found.plan.model_dump(exclude_none=True), "latency_us": noisy(found.ticks),
        }  # fmt: skip
        if counters:
            row |= {name: noisy(found.stages[stage]) for name, stage in STAGES.items()}
        rows.append(row)
    return rows


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """The rows as a file in our own columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_plans(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """The tilings of the rows as a plan table."""
    keep = [{name: row[name] for name in ("case_id", *PLAN_FIELDS) if name in row} for row in rows]
    return write_rows(path, keep)


_EXPORT = (
    "Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State", "Task Type",
    "Task Start Time(us)", "Task Duration(us)", "Task Wait Time(us)", "Block Dim", "Mix Block Dim", "HF32 Eligible",
    "Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats",
    "Context ID", "aicore_time(us)", "aic_total_cycles", "aic_mac_time(us)", "aic_mac_ratio", "aic_scalar_time(us)",
    "aic_scalar_ratio", "aic_mte1_time(us)", "aic_mte1_ratio", "aic_mte2_time(us)", "aic_mte2_ratio",
    "aic_fixpipe_time(us)", "aic_fixpipe_ratio", "aic_icache_miss_rate", "aiv_time(us)", "aiv_total_cycles",
    "cube_utilization(%)",
)  # fmt: skip


def export_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows as tasks of an ``op_summary`` export, between two tasks that are no matmul."""
    tasks = [
        _task(0, "aclnnAdd_AddAiCore_Add", "Add", "AI_VECTOR_CORE", 3.2, "16,16;16,16", "FLOAT16;FLOAT16", "16,16")
    ]
    for number, row in enumerate(rows, 1):
        b, m, n, k = (row[name] for name in ("b", "m", "n", "k"))
        task = _task(
            number, row["case_id"], "BatchMatMulV3", "AI_CORE", row["latency_us"], f"{b},{m},{k};{b},{n},{k};",
            "FLOAT16;FLOAT16;DT_UNDEFINED", f"{b},{m},{n}",
        )  # fmt: skip
        task["Block Dim"] = row.get("used_core_num", 32)
        for name, column in (
            ("mac_us", "aic_mac_time(us)"), ("mte1_us", "aic_mte1_time(us)"), ("mte2_us", "aic_mte2_time(us)"),
            ("fixpipe_us", "aic_fixpipe_time(us)"),
        ):  # fmt: skip
            task[column] = f"{row[name]:.3f}" if name in row else "N/A"
        tasks.append(task)
    tasks.append(_task(99, "Cast_1", "Cast", "AI_VECTOR_CORE", 2.0, "64,64", "FLOAT16", "64,64"))
    return tasks


def _task(
    number: int, name: str, kind: str, core: str, duration: float, shapes: str, types: str, out: str
) -> dict[str, Any]:
    return {
        **dict.fromkeys(_EXPORT, "N/A"), "Device_id": 0, "Model ID": 4294967295, "Task ID": number, "Stream ID": 2,
        "Op Name": name, "OP Type": kind, "OP State": "static", "Task Type": core,
        "Task Start Time(us)": f"{1700000000000 + 100 * number}.125\t", "Task Duration(us)": f"{duration:.4f}",
        "Task Wait Time(us)": "0.000", "Block Dim": 20, "Mix Block Dim": 0, "HF32 Eligible": "NO",
        "Input Shapes": f'"{shapes}"', "Input Data Types": types, "Input Formats": ";".join(["ND"] * types.count(";")),
        "Output Shapes": f'"{out}"', "Output Data Types": "FLOAT16", "Output Formats": "ND",
    }  # fmt: skip
