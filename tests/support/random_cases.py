"""Small random cases on small random chips, where every plan can be listed."""

from __future__ import annotations

import random

from tileproof.hardware import NpuSpec, get_spec
from tileproof.models.case import BmmCase, make_case
from tileproof.models.context import ENVIRONMENTS, Context
from tileproof.models.plan import BranchName
from tileproof.models.rules import PROFILES

_K = (2, 5, 16, 17, 31, 40, 48, 64, 96, 130)


def small_chip(rng: random.Random) -> NpuSpec:
    """A chip with a few cores and small buffers, so that capacities bind on small cases."""
    cores = rng.choice((2, 4, 6, 8))
    return get_spec("ascend950pr").replace(
        name="small",
        aic_cores=cores,
        aiv_cores=2 * cores,
        hbm_tb_s=f"{0.045 * cores:.3f}",
        l1_bytes=rng.choice((16384, 32768, 65536)),
        l0a_bytes=rng.choice((4096, 8192, 16384)),
        l0b_bytes=rng.choice((4096, 8192, 16384)),
        l0c_bytes=rng.choice((8192, 16384, 32768)),
        l2_bytes=rng.choice((20480, 2**17, 2**27)),
        ub_bytes=rng.choice((4096, 8192)),
        # Policy thresholds at the scale of the chip, so that each side of them occurs.
        policy_bytes_per_core=rng.choice((512, 4096)),
        policy_tile_bytes=rng.choice((256, 1024)),
        policy_streamk_k_per_grid2=rng.choice((4, 20)),
        source_streamk_bytes=rng.choice((64, 128)),
        source_block=rng.choice((16, 32)),
        source_merge_min_k=16,
    )


def random_case(rng: random.Random, branch: BranchName) -> BmmCase:
    """A case that the branch may be able to do: all types, layouts, bias, broadcast."""
    batch = rng.choice((1, 1, 2, 3, 4, 7, 8, 16))
    batch_a: tuple[int, ...] = (batch,)
    batch_b: tuple[int, ...] = (batch,)
    bias = rng.choice((None, None, "fp32"))
    most = 48
    if branch == "to_matmul":
        batch_a, batch_b = ((batch + 1,), (1,)) if rng.random() < 0.5 else ((1,), (batch + 1,))
        most = 32
    elif branch == "asw_basic" and rng.random() < 0.35:
        batch_a, batch_b = rng.choice((((batch,), (1,)), ((1,), (batch,)), ((2, 1), (1, 3))))
    elif branch == "merge_batch":
        batch_a = batch_b = (rng.choice((8, 16, 24, 40, 64)),)
        bias = rng.choice((None, None, None, "fp32"))
        most = 20
    elif branch == "stream_k":
        batch_a = batch_b = (rng.choice((1, 1, 2)),)
        most = rng.choice((16, 32, 48))
    return make_case(
        batch_a=batch_a,
        batch_b=batch_b,
        m=rng.randint(1, most),
        n=rng.randint(1, most),
        k=rng.choice((0, 1)) if branch == "special" else rng.choice((*_K, 200) if branch == "stream_k" else _K),
        dtype=rng.choice(("fp16", "bf16", "fp32", "hf32", "int8", "fp8_e4m3", "hif8")),
        trans_a=rng.random() < 0.4,
        trans_b=rng.random() < 0.4,
        bias=bias,
        format_b=rng.choice(("ND", "ND", "ND", "NZ")),
    )


def random_context(branch: BranchName, seed: int) -> Context:
    """Case, chip, profile and environment of one seed."""
    rng = random.Random(f"{branch} {seed}")
    case = random_case(rng, branch)
    return Context.of(case, small_chip(rng), rng.choice((*PROFILES, "none")), rng.choice(ENVIRONMENTS))
