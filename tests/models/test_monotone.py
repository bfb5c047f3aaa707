"""With cores fixed and no policy rules a larger capacity or bandwidth never makes the optimum worse (design section 5)."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tileproof import BmmCase
from tileproof.hardware import NpuSpec, get_spec
from tileproof.models.context import Context
from tileproof.models.plan import BranchName
from tileproof.solver.search.solve_branch import SolveOptions, solve_branch

#: Steps that are not powers of two occur, and capacities below the chip's so that they bind on small cases.
CAPACITIES = {
    "l1_bytes": (40960, 131072, 524288, 720896),
    "l0a_bytes": (4096, 24576, 65536, 98304),
    "l0b_bytes": (4096, 24576, 65536, 98304),
    "l0c_bytes": (16384, 98304, 262144, 393216),
    "l2_bytes": (2**18, 2**21, 2**27),
}
BANDWIDTHS = {
    "hbm_tb_s": ("0.9", "1.6", "2.7"),
    "l2_read_gb_s_per_core": ("100", "143.75", "250"),
    "mte2_port_bytes_per_cycle": ("60", "100", "155"),
}
LADDERS: dict[str, tuple[Any, ...]] = {**CAPACITIES, **BANDWIDTHS}

CASES: dict[str, tuple[BranchName, dict[str, Any]]] = {
    "special": ("special", dict(batch_a=(8,), batch_b=(8,), m=512, n=1000, k=1)),
    "fold_a": ("to_matmul", dict(batch_a=(6,), batch_b=(1,), m=200, n=300, k=500)),
    "fold_b": ("to_matmul", dict(batch_a=(1,), batch_b=(6,), m=100, n=120, k=400)),
    "iter_small": ("iter_batch", dict(batch_a=(128,), batch_b=(128,), m=48, n=80, k=100, trans_b=True)),
    "iter_large": ("iter_batch", dict(batch_a=(40,), batch_b=(40,), m=500, n=700, k=900, dtype="bf16")),
    "merge": ("merge_batch", dict(batch_a=(512,), batch_b=(512,), m=8, n=24, k=128, trans_b=True)),
    "asw": ("asw_basic", dict(batch_a=(3,), batch_b=(3,), m=1000, n=600, k=700)),
    "asw_cross": ("asw_basic", dict(batch_a=(4, 1), batch_b=(1, 3), m=300, n=200, k=512, dtype="int8", bias="int32")),
    "stream_k": ("stream_k", dict(m=130, n=200, k=6000)),
}


@cache
def optimum_us(name: str, field: str, value: Any) -> float | None:
    """Proven optimum of the branch on ascend950pr with one number changed, microseconds; None when infeasible."""
    branch, sizes = CASES[name]
    spec: NpuSpec = get_spec("ascend950pr").replace(**{field: value})
    solved = solve_branch(Context.of(BmmCase(**sizes), spec, "none"), branch, SolveOptions(tie_break=False)).result
    assert solved.status in ("optimal", "infeasible")
    return solved.latency_us


def not_worse(name: str, field: str) -> bool:
    """Check one ladder; whether some step of it helped."""
    latencies = [optimum_us(name, field, value) for value in LADDERS[field]]
    previous = None
    for latency in latencies:
        if previous is not None:
            assert latency is not None, (name, field)
            # Ticks may differ from chip to chip in their rounding, hence a hair of room.
            assert latency <= previous * (1 + 1e-6), (name, field, latencies)
        previous = latency
    return latencies[0] is None or latencies[-1] < latencies[0]


@pytest.mark.parametrize("field", LADDERS)
@pytest.mark.parametrize("name", CASES)
def test_more_is_never_worse(name: str, field: str) -> None:
    not_worse(name, field)


@pytest.mark.parametrize("field", LADDERS)
def test_every_number_matters_somewhere(field: str) -> None:
    """A number that no case feels would make the test above empty."""
    assert any(not_worse(name, field) for name in CASES)
