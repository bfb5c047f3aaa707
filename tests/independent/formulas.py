"""The latency and the capacities of the design (sections 5 and 6) once more, in plain Python.

Typed from the text alone, in exact fractions of a Cube cycle, without ticks, atoms or algebra. Nothing is imported from
the package: a case and a plan are mappings of their fields, a chip is the few numbers below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

Case = Mapping[str, Any]
Plan = Mapping[str, Any]
Number = int | Fraction

MHZ = 1650
L1, L0A, L0B, L0C, BIAS_TABLE, UB = 524288, 65536, 65536, 262144, 4096, 253952
WORKSPACE_SLOT = 65536
INPUT_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "hf32": 4, "int8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "hif8": 1}
OUTPUT_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "int32": 4, "int8": 1}
BIAS_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "int32": 4}
#: "The default out_dtype is the input type for 16-bit and fp32 inputs, bf16 for 8-bit float, int32 for int8."
DEFAULT_OUTPUT_BYTES = {**INPUT_BYTES, "int8": 4, "fp8_e4m3": 2, "fp8_e5m2": 2, "hif8": 2}
#: MAC per cycle and core; K0 = MAC / 256.
MACS = {
    "fp16": 4096,
    "bf16": 4096,
    "fp32": 256,
    "hf32": 2048,
    "int8": 8192,
    "fp8_e4m3": 8192,
    "fp8_e5m2": 8192,
    "hif8": 8192,
}
HEAD_US = {"profiler": Fraction("2.5"), "cold": Fraction(9), "warm": Fraction("0.5"), "resident": Fraction("0.5")}


@dataclass(frozen=True)
class Chip:
    """Numbers of section 4 that differ from chip to chip; rates in bytes per cycle of the whole chip."""

    cores: int
    vectors: int
    hbm: Fraction
    l2: int
    unaligned: Fraction

    @property
    def l2_read(self) -> Fraction:
        """4.6 TB/s at 32 cores, scaled by cores."""
        return Fraction("4.6") * 10**6 / MHZ * self.cores / 32

    @property
    def l2_write(self) -> Fraction:
        """5.2 TB/s at 32 cores, scaled by cores."""
        return Fraction("5.2") * 10**6 / MHZ * self.cores / 32

    @property
    def saturating(self) -> int:
        """q = floor(0.75 * C)."""
        return 3 * self.cores // 4


_PR_HBM = Fraction("1.6") * 10**6 / MHZ
ASCEND950PR = Chip(cores=32, vectors=64, hbm=_PR_HBM, l2=128 * 2**20, unaligned=_PR_HBM)
ASCEND950DT_C28 = Chip(
    cores=28, vectors=56, hbm=Fraction("3.70") * 10**6 / MHZ, l2=128 * 2**20, unaligned=Fraction("30.3") * 28
)
CHIPS = {"ascend950pr": ASCEND950PR, "ascend950dt_c28": ASCEND950DT_C28}


def up(value: int, multiple: int) -> int:
    """``value`` rounded up to a multiple."""
    return -(-value // multiple) * multiple


def cdiv(value: int, divisor: int) -> int:
    """Ceiling of a quotient."""
    return -(-value // divisor)


def product(dims: tuple[int, ...]) -> int:
    """Product of batch dims."""
    result = 1
    for dim in dims:
        result *= dim
    return result


@dataclass(frozen=True)
class Problem:
    """Sizes of one matmul in the letters of the design."""

    B_A: int
    B_B: int
    B: int
    M: int
    N: int
    K: int
    s: int
    so: int
    K0: int
    trans_a: bool
    trans_b: bool
    nz: bool
    bias: bool
    unaligned: bool

    @classmethod
    def of(cls, case: Case) -> Problem:
        """Sizes of a case."""
        dims_a, dims_b = tuple(case["batch_a"]), tuple(case["batch_b"])
        width = max(len(dims_a), len(dims_b))
        dims_a, dims_b = (1,) * (width - len(dims_a)) + dims_a, (1,) * (width - len(dims_b)) + dims_b
        out = case.get("out_dtype")
        so = OUTPUT_BYTES[out] if out else DEFAULT_OUTPUT_BYTES[case["dtype"]]
        return cls(
            B_A=product(dims_a),
            B_B=product(dims_b),
            B=product(tuple(a if b == 1 else b for a, b in zip(dims_a, dims_b, strict=True))),
            M=case["m"],
            N=case["n"],
            K=case["k"],
            s=INPUT_BYTES[case["dtype"]],
            so=so,
            K0=MACS[case["dtype"]] // 256,
            trans_a=bool(case.get("trans_a")),
            trans_b=bool(case.get("trans_b")),
            nz=case.get("format_b") == "NZ",
            bias=case.get("bias") is not None,
            unaligned=case["n"] * so % 32 != 0,
        )

    @property
    def atom_k(self) -> int:
        """max(16, c0)."""
        return max(16, 32 // self.s)

    @property
    def aM(self) -> int:
        """M padded."""
        return up(self.M, 16)

    @property
    def aN(self) -> int:
        """N padded."""
        return up(self.N, 16)

    @property
    def aK(self) -> int:
        """K padded."""
        return up(self.K, self.atom_k)

    @property
    def bytes_a(self) -> int:
        """A, every byte once."""
        return self.B_A * self.M * self.K * self.s

    @property
    def bytes_b(self) -> int:
        """B, every byte once."""
        return self.B_B * self.K * self.N * self.s

    @property
    def bytes_out(self) -> int:
        """C."""
        return self.B * self.M * self.N * self.so


@dataclass(frozen=True)
class Stages:
    """Stage times of a Cube branch, cycles."""

    mmad: Number
    mte1: Number
    fixpipe: Number
    drain: Number
    mte2: Number
    fill1: Number
    fill0: Number
    l1_steps: int
    reduce: Number = 0


@dataclass(frozen=True)
class Machine:
    """A chip in an environment, for one case."""

    chip: Chip
    environment: str
    first_rate: Fraction

    @classmethod
    def of(cls, chip: Chip, environment: str, p: Problem) -> Machine:
        """``first_rate`` is what a first read is divided by: HBM, or L2 in ``resident`` when A + B + C fit."""
        resident = environment == "resident" and p.bytes_a + p.bytes_b + p.bytes_out <= chip.l2
        return cls(chip, environment, chip.l2_read if resident else chip.hbm)

    def efficiency(self, row: int, pitch: int) -> Fraction:
        """eff_X for rows and a row pitch in bytes."""
        if row >= 512:
            result = Fraction(1)
        elif row >= 256:
            result = Fraction("0.90")
        elif row >= 128:
            result = Fraction("0.78")
        else:
            result = Fraction("0.78") * row / 128
        return result if pitch % 32 == 0 else result * Fraction("0.93")

    def efficiency_a(self, p: Problem, k_len: int, m_len: int) -> Fraction:
        """eff_A for an L1 load of ``m_len`` x ``k_len`` elements."""
        row, pitch = (min(m_len, p.M), p.M) if p.trans_a else (min(k_len, p.K), p.K)
        return self.efficiency(row * p.s, pitch * p.s)

    def efficiency_b(self, p: Problem, k_len: int, n_len: int) -> Fraction:
        """eff_B for an L1 load of ``k_len`` x ``n_len`` elements."""
        if p.nz:
            return Fraction(1)
        row, pitch = (min(k_len, p.K), p.K) if p.trans_b else (min(n_len, p.N), p.N)
        return self.efficiency(row * p.s, pitch * p.s)

    def mte2(
        self,
        p: Problem,
        reads: tuple[tuple[int, int, Fraction], tuple[int, int, Fraction]],
        used: int,
        port_bytes: int,
        l1_steps: int,
        nb: int,
    ) -> Fraction:
        """The four lines of T_MTE2; ``reads`` are (uniq, total, eff) of A and B."""
        occ = min(Fraction(1), Fraction(used, self.chip.saturating))
        shared = sum(
            ((uniq / self.first_rate + (total - uniq) / self.chip.l2_read) / eff for uniq, total, eff in reads),
            Fraction(0),
        )
        # lambda = 32 KB / (BW_HBM / (0.75 * C)) cycles
        floor = Fraction(32 * 1024) / (self.chip.hbm / (Fraction(3, 4) * self.chip.cores))
        crossing = sum((uniq / self.first_rate for uniq, _, _ in reads), Fraction(0))
        spill = max(0, p.bytes_out - self.chip.l2) / self.chip.hbm
        return max(shared / occ, Fraction(port_bytes, 100), l1_steps * floor / nb, crossing + spill)

    def fill1(self, first_step_bytes: int, used: int) -> Fraction:
        """Half of the first L1 step."""
        return Fraction(first_step_bytes, 2) / min(self.first_rate / used, Fraction(100))

    def unaligned_writes(self, p: Problem) -> Number:
        """Least T_FIXPIPE when output rows are unaligned."""
        return p.bytes_out / self.chip.unaligned if p.unaligned else 0

    def total_us(self, plan: Plan, t: Stages) -> Fraction:
        """T of section 5 in microseconds."""
        mmad = t.mmad + (t.mte1 if plan["l0_buffers"] == 1 else 0)
        late = t.fixpipe - t.drain
        if plan["l0c_buffers"] == 2 or plan["fixpipe_unitflag"]:
            out: Number = max(mmad, late)
        else:
            out = mmad + late
        if min(plan["l1_buffers"], t.l1_steps) >= 2:
            body = max(out + t.fill1 + t.fill0, t.mte1 + t.fill1, t.mte2 + t.fill0)
        else:
            body = t.mte2 + t.fill0 + max(out, t.mte1)
        return HEAD_US[self.environment] + (body + t.drain + t.reduce) / MHZ


def head_mmad(plan: Plan) -> int:
    """hM."""
    return 3 if plan["l0_buffers"] == 2 else 25


def fill0(p: Problem, rows: int, k: int) -> Fraction:
    """First L0 loads of ``rows`` = m + n."""
    return Fraction(rows * min(k, 128 // p.s) * p.s, 256) + 76


def best_window(chip: Chip, plan: Plan) -> int:
    """Divisor of C with the smallest working set, ties to the largest."""
    divisors = [w for w in range(1, chip.cores + 1) if chip.cores % w == 0]
    return min(divisors, key=lambda w: (w * plan["base_m"] + chip.cores // w * plan["base_n"], -w))


def asw_basic(p: Problem, machine: Machine, plan: Plan) -> Stages:
    """Section 5, the ASW_Basic form."""
    chip = machine.chip
    cores = chip.cores
    base_m, base_n, base_k = plan["base_m"], plan["base_n"], plan["base_k"]
    m, n = min(base_m, p.aM), min(base_n, p.aN)
    m_cnt, n_cnt = cdiv(p.M, base_m), cdiv(p.N, base_n)
    blocks = m_cnt * n_cnt * p.B
    rounds, used = cdiv(blocks, cores), min(cores, blocks)
    steps = cdiv(p.K, base_k)
    side = plan["full_load"]
    k_l1a = (steps if side == "a" else plan["step_ka"]) * base_k
    k_l1b = (steps if side == "b" else plan["step_kb"]) * base_k
    tail_m, tail_n = plan["tail_m"], plan["tail_n"]
    tail_blocks = blocks % cores if blocks > cores else 0
    piece_m, piece_n = up(cdiv(m, tail_m), 16), up(cdiv(n, tail_n), 16)
    full = rounds - 1

    area = full * m * n + piece_m * piece_n
    mmad = (full * (m // 16) * (n // 16) + (piece_m // 16) * (piece_n // 16)) * cdiv(p.K, p.K0)
    mte1 = Fraction((full * (m + n) + piece_m + piece_n) * p.K * p.s, 256)
    total_a, total_b = p.B * p.M * p.K * p.s * n_cnt, p.B * p.K * p.N * p.s * m_cnt
    if side == "a":
        total_a = used * p.M * p.K * p.s
    if side == "b":
        total_b = used * p.K * p.N * p.s
    w = plan["swizzle_w"] or best_window(chip, plan)
    uniq_a, uniq_b = p.bytes_a, p.bytes_b
    if (w * base_m + cores // w * base_n) * p.K * p.s > chip.l2:
        if side != "a":
            uniq_a = max(uniq_a, cdiv(total_a * w, cores))
        if side != "b":
            uniq_b = max(uniq_b, cdiv(total_b, w))
    if side != "a":
        total_a += tail_blocks * m * (tail_n - 1) * p.K * p.s
    if side != "b":
        total_b += tail_blocks * n * (tail_m - 1) * p.K * p.s
    eff_a = machine.efficiency_a(p, p.K, p.M) if side == "a" else machine.efficiency_a(p, k_l1a, base_m)
    eff_b = machine.efficiency_b(p, p.K, p.N) if side == "b" else machine.efficiency_b(p, k_l1b, base_n)

    all_m, all_n = full * m + piece_m, full * n + piece_n
    if side == "a":
        streamed = rounds * cdiv(p.K, k_l1b)
        floor_steps, port = 1 + streamed, p.aM + all_n
        first = p.aM * p.aK + n * min(k_l1b, p.aK)
    elif side == "b":
        streamed = rounds * cdiv(p.K, k_l1a)
        floor_steps, port = 1 + streamed, all_m + p.aN
        first = m * min(k_l1a, p.aK) + p.aN * p.aK
    else:
        streamed = floor_steps = rounds * max(cdiv(p.K, k_l1a), cdiv(p.K, k_l1b))
        port = all_m + all_n
        first = m * min(k_l1a, p.aK) + n * min(k_l1b, p.aK)
    nb = min(plan["l1_buffers"], streamed)
    return Stages(
        mmad=mmad + rounds * head_mmad(plan) * steps,
        mte1=mte1 + rounds * 2 * steps * 38,
        fixpipe=max(rounds * 343 + Fraction(area, 50), machine.unaligned_writes(p)),
        drain=343 + Fraction(piece_m * piece_n, 50),
        mte2=machine.mte2(
            p, ((uniq_a, total_a, eff_a), (uniq_b, total_b, eff_b)), used, port * p.K * p.s, floor_steps, nb
        ),
        fill1=machine.fill1(first * p.s, used),
        fill0=fill0(p, m + n, p.K),
        l1_steps=streamed,
    )


def stream_k(p: Problem, machine: Machine, plan: Plan) -> Stages:
    """Section 5, StreamK."""
    chip = machine.chip
    base_m, base_n, base_k = plan["base_m"], plan["base_n"], plan["base_k"]
    slice_k, single_m, single_n = plan["single_core_k"], plan["single_core_m"], plan["single_core_n"]
    single_b = cdiv(p.B, plan["grid_b"])
    used = plan["grid_b"] * plan["grid_m"] * plan["grid_n"] * plan["grid_k"]
    m, n = min(base_m, p.aM), min(base_n, p.aN)
    m_tiles, n_tiles = cdiv(single_m, base_m), cdiv(single_n, base_n)
    rounds = single_b * m_tiles * n_tiles
    steps = cdiv(slice_k, base_k)
    k_l1a, k_l1b = plan["step_ka"] * base_k, plan["step_kb"] * base_k
    l1_steps = rounds * max(cdiv(slice_k, k_l1a), cdiv(slice_k, k_l1b))
    total_a = p.B * p.M * p.K * p.s * plan["grid_n"] * n_tiles
    total_b = p.B * p.K * p.N * p.s * plan["grid_m"] * m_tiles
    eff_a = machine.efficiency_a(p, min(k_l1a, slice_k), base_m)
    eff_b = machine.efficiency_b(p, min(k_l1b, slice_k), base_n)
    drain = 343 + Fraction(m * n, 50)
    return Stages(
        mmad=rounds * ((m // 16) * (n // 16) * cdiv(slice_k, p.K0) + head_mmad(plan) * steps),
        mte1=rounds * (Fraction((m + n) * slice_k * p.s, 256) + 2 * steps * 38),
        fixpipe=rounds * drain,
        drain=drain,
        mte2=machine.mte2(
            p,
            ((p.bytes_a, total_a, eff_a), (p.bytes_b, total_b, eff_b)),
            used,
            rounds * (m + n) * slice_k * p.s,
            l1_steps,
            min(plan["l1_buffers"], l1_steps),
        ),
        fill1=machine.fill1((m * min(k_l1a, slice_k) + n * min(k_l1b, slice_k)) * p.s, used),
        fill0=fill0(p, m + n, slice_k),
        l1_steps=l1_steps,
        reduce=Fraction("0.5") * MHZ
        + single_b * single_m * single_n * (4 + Fraction(p.so, plan["grid_k"])) / (chip.l2_read / chip.cores),
    )


def iter_batch(p: Problem, machine: Machine, plan: Plan) -> Stages:
    """Section 5, IterBatch."""
    chip = machine.chip
    form, side = plan["l1_form"], plan["full_load"]
    base_m, base_n, base_k = plan["base_m"], plan["base_n"], plan["base_k"]
    iter_l1, iter_l0 = plan["iter_l1"], plan["iter_l0"]
    b_core = iter_l1 * cdiv(cdiv(p.B, iter_l1), chip.cores)
    used = min(chip.cores, cdiv(p.B, iter_l1))
    m, n = min(base_m, p.aM), min(base_n, p.aN)
    m_cnt, n_cnt = cdiv(p.M, base_m), cdiv(p.N, base_n)
    steps = cdiv(p.K, base_k)
    blocks = b_core * m_cnt * n_cnt
    uniq_a, uniq_b = p.bytes_a, p.bytes_b
    total_a, total_b = uniq_a, uniq_b
    port = b_core * (p.aM + p.aN)
    k_l1a, k_l1b = (plan["step_ka"] or 0) * base_k, (plan["step_kb"] or 0) * base_k
    eff_a, eff_b = machine.efficiency_a(p, p.K, p.M), machine.efficiency_b(p, p.K, p.N)
    if form in ("a", "b"):
        l1_steps = b_core // iter_l1
        first = iter_l1 * (p.aM + p.aN) * p.aK
    elif form in ("c", "d"):
        if side == "a":
            part = min(plan["step_n"] * base_n, p.aN)
            l1_steps = b_core * cdiv(p.aN, plan["step_n"] * base_n)
            first = (p.aM + part) * p.aK
            eff_b = machine.efficiency_b(p, p.K, part)
        else:
            part = min(plan["step_m"] * base_m, p.aM)
            l1_steps = b_core * cdiv(p.aM, plan["step_m"] * base_m)
            first = (part + p.aN) * p.aK
            eff_a = machine.efficiency_a(p, p.K, part)
    elif form == "e":
        l1_steps = b_core * max(cdiv(p.K, k_l1a), cdiv(p.K, k_l1b))
        first = m * min(k_l1a, p.aK) + n * min(k_l1b, p.aK)
        eff_a, eff_b = machine.efficiency_a(p, k_l1a, p.M), machine.efficiency_b(p, k_l1b, p.N)
    else:
        total_a, total_b = p.B * p.M * p.K * p.s * n_cnt, p.B * p.K * p.N * p.s * m_cnt
        if used * (p.M + p.N) * p.K * p.s > chip.l2:
            uniq_a, uniq_b = total_a, total_b
        port = blocks * (m + n)
        l1_steps = blocks * max(cdiv(p.K, k_l1a), cdiv(p.K, k_l1b))
        first = m * min(k_l1a, p.aK) + n * min(k_l1b, p.aK)
        eff_a, eff_b = machine.efficiency_a(p, k_l1a, base_m), machine.efficiency_b(p, k_l1b, base_n)
    groups = cdiv(iter_l1, iter_l0) * (b_core // iter_l1) * m_cnt * n_cnt
    return Stages(
        mmad=blocks * ((m // 16) * (n // 16) * cdiv(p.K, p.K0) + head_mmad(plan) * steps),
        mte1=blocks * (Fraction((m + n) * p.K * p.s, 256) + 2 * steps * 38),
        fixpipe=max(groups * 343 + Fraction(blocks * m * n, 50), machine.unaligned_writes(p)),
        drain=343 + Fraction(iter_l0 * m * n, 50),
        mte2=machine.mte2(
            p,
            ((uniq_a, total_a, eff_a), (uniq_b, total_b, eff_b)),
            used,
            port * p.K * p.s,
            l1_steps,
            min(plan["l1_buffers"], l1_steps),
        ),
        fill1=machine.fill1(first * p.s, used),
        fill0=fill0(p, m + n, p.K),
        l1_steps=l1_steps,
    )


def merged_rows(p: Problem, batches: int) -> int:
    """Rows of ``batches`` merged matrices of A."""
    return batches * p.aM if p.trans_a else up(batches * p.M, 16)


def merge_batch(p: Problem, machine: Machine, plan: Plan) -> Stages:
    """Section 5, MergeBatch."""
    chip = machine.chip
    merged, b_l1, base_k = plan["merge_b0"], plan["b_l1"], plan["base_k"]
    b_core = cdiv(p.B, chip.cores)
    used = cdiv(p.B, b_core)
    rows, columns = merged_rows(p, merged), merged * p.aN
    groups, steps = cdiv(b_core, merged), cdiv(p.K, base_k)
    k_l1 = plan["step_ka"] * base_k
    l1_steps = cdiv(b_core, b_l1) * cdiv(p.K, k_l1)
    drain = 343 + Fraction(merged * p.aM * p.aN, 50)
    reads = (
        (p.bytes_a, p.bytes_a, machine.efficiency_a(p, k_l1, p.M)),
        (p.bytes_b, p.bytes_b, machine.efficiency_b(p, k_l1, p.N)),
    )
    return Stages(
        mmad=groups * ((rows // 16) * (columns // 16) * cdiv(p.K, p.K0) + head_mmad(plan) * steps),
        mte1=groups * (Fraction((rows + columns) * p.K * p.s, 256) + 2 * steps * 38),
        fixpipe=max(groups * drain, machine.unaligned_writes(p)),
        drain=drain,
        mte2=machine.mte2(
            p, reads, used, groups * (rows + columns) * p.K * p.s, l1_steps, min(plan["l1_buffers"], l1_steps)
        ),
        fill1=machine.fill1((merged_rows(p, b_l1) + b_l1 * p.aN) * min(k_l1, p.aK) * p.s, used),
        fill0=fill0(p, rows + columns, p.K),
        l1_steps=l1_steps,
    )


def special_us(case: Case, chip: Chip, environment: str, plan: Plan) -> Fraction:
    """Section 5, Special, in microseconds."""
    p = Problem.of(case)
    if p.B * p.M * p.N == 0:
        return Fraction(0)
    machine = Machine.of(chip, environment, p)
    inputs = p.bytes_a + p.bytes_b if p.K else 0
    if case.get("bias"):
        inputs += p.N * BIAS_BYTES[case["bias"]] * (p.B if case.get("bias_batch") else 1)
    through_hbm = inputs / machine.first_rate + max(0, p.bytes_out - chip.l2) / chip.hbm
    share = min(Fraction(1), plan["used_core_num"] / (Fraction(3, 4) * chip.vectors))
    return HEAD_US[environment] + max(through_hbm, p.bytes_out / chip.l2_write) / share / MHZ


STAGES = {"asw_basic": asw_basic, "stream_k": stream_k, "iter_batch": iter_batch, "merge_batch": merge_batch}


def stages(case: Case, chip: Chip, environment: str, plan: Plan) -> Stages:
    """Stages of a Cube plan, cycles."""
    p = Problem.of(case)
    machine = Machine.of(chip, environment, p)
    if plan["branch"] == "to_matmul":
        return STAGES[plan["inner_branch"]](folded(p), machine, plan)
    return STAGES[plan["branch"]](p, machine, plan)


def derived(case: Case, chip: Chip, plan: Plan) -> dict[str, int]:
    """Plan fields that follow from the others (sections 5 and 6)."""
    p = Problem.of(case)
    branch = plan["branch"]
    if branch == "to_matmul":
        p, branch = folded(p), plan["inner_branch"]
    depth = max(plan["step_ka"], plan["step_kb"]) * plan["base_k"]
    if branch == "merge_batch":
        b_core = cdiv(p.B, chip.cores)
        return {"b_core": b_core, "used_core_num": cdiv(p.B, b_core), "k_l1": min(p.K, depth)}
    if branch == "stream_k":
        single_b = cdiv(p.B, plan["grid_b"])
        return {
            "b_core": single_b,
            "used_core_num": plan["grid_b"] * plan["grid_m"] * plan["grid_n"] * plan["grid_k"],
            "single_core_m": up(cdiv(p.M, plan["grid_m"]), 16),
            "single_core_n": up(cdiv(p.N, plan["grid_n"]), 16),
            "single_core_k": up(cdiv(p.K, plan["grid_k"]), 16),
            "k_l1": min(plan["single_core_k"], depth),
            "m_cnt": plan["grid_m"] * cdiv(plan["single_core_m"], plan["base_m"]),
            "n_cnt": plan["grid_n"] * cdiv(plan["single_core_n"], plan["base_n"]),
            "workspace_bytes": chip.cores * 256 * 256 * 4 + 20 * 2**20,
        }
    m_cnt, n_cnt = cdiv(p.M, plan["base_m"]), cdiv(p.N, plan["base_n"])
    shared = {"m_cnt": m_cnt, "n_cnt": n_cnt}
    if branch == "iter_batch":
        whole = plan["l1_form"] in "abcd"
        groups = cdiv(p.B, plan["iter_l1"])
        return {
            **shared,
            "b_core": plan["iter_l1"] * cdiv(groups, chip.cores),
            "used_core_num": min(chip.cores, groups),
            "k_l1": p.K if whole else min(p.K, depth),
        }
    return {**shared, "used_core_num": min(chip.cores, m_cnt * n_cnt * p.B), "k_l1": min(p.K, depth)}


def folded(p: Problem) -> Problem:
    """Section 6.2: the matmul that ToMatmul leaves; the alignment of the output stays that of the whole case."""
    if p.B_B == 1:
        return replace(p, B_A=1, B=1, M=p.B * p.M)
    return replace(p, B_B=1, B=1, N=p.B * p.N)


def latency_us(case: Case, chip: Chip, environment: str, plan: Plan) -> Fraction:
    """Total latency of a plan in microseconds, exact."""
    if plan["branch"] == "special":
        return special_us(case, chip, environment, plan)
    p = Problem.of(case)
    machine = Machine.of(chip, environment, p)
    if plan["branch"] != "to_matmul":
        return machine.total_us(plan, stages(case, chip, environment, plan))
    inner = machine.total_us(plan, stages(case, chip, environment, plan))
    if p.B_A == 1 and not p.trans_b:
        inner += 2 * p.B * p.K * p.N * p.s / (Fraction("0.88") * chip.hbm) / MHZ
    return inner


def tick_cycles(case: Case, chip: Chip, environment: str) -> Fraction:
    """Section 5: smallest power of two from 1/1024 cycle up with 16 * (head + ...) below 2^31 ticks."""
    p = Problem.of(case)
    macs = Fraction(p.B * p.M * p.N * p.K, chip.cores * MACS[case["dtype"]])
    compulsory = (p.bytes_a + p.bytes_b + max(0, p.bytes_out - chip.l2)) / chip.hbm
    tick = Fraction(1, 1024)
    while 16 * (HEAD_US[environment] * MHZ + max(macs, compulsory)) / tick >= 2**31:
        tick *= 2
    return tick


def wide_a(p: Problem, rows: int) -> int:
    """Rows of A as L1 holds them: vendor table 2 pads M of a transposed A to C0 (32 for 8-bit types, else 16 is enough)."""
    return up(rows, p.atom_k) if p.trans_a else rows


def wide_b(p: Problem, columns: int) -> int:
    """Columns of B as L1 holds them: vendor table 2 pads N of a B that is not transposed to C0."""
    return columns if p.trans_b else up(columns, p.atom_k)


def capacities(case: Case, chip: Chip, plan: Plan) -> dict[str, tuple[int, int]]:
    """Section 6 and vendor table 2: (needed, available) by rule id, for every capacity of a Cube plan."""
    p = Problem.of(case)
    branch = plan["branch"]
    if branch == "to_matmul":
        p, branch = folded(p), plan["inner_branch"]
    base_m, base_n, base_k = plan["base_m"], plan["base_n"], plan["base_k"]
    together = plan["iter_l0"] if branch == "iter_batch" else 1
    l0, l0c, l1 = plan["l0_buffers"], plan["l0c_buffers"], plan["l1_buffers"]
    depth_a, depth_b = plan["step_ka"] * base_k, plan["step_kb"] * base_k
    result = {
        "cap.l0a": (l0 * together * base_m * base_k * p.s, L0A),
        "cap.l0b": (l0 * together * base_n * base_k * p.s, L0B),
        "cap.l0c": (l0c * together * base_m * base_n * 4, L0C),
    }
    whole_a, whole_b = wide_a(p, p.aM) * p.aK * p.s, wide_b(p, p.aN) * p.aK * p.s
    tile_a, tile_b = wide_a(p, base_m), wide_b(p, base_n)
    budget = L1
    if branch == "merge_batch":
        b_l1 = plan["b_l1"]
        rows = b_l1 * wide_a(p, p.aM) if p.trans_a else merged_rows(p, b_l1)
        held = l1 * (rows + b_l1 * wide_b(p, p.aN)) * depth_a * p.s
    elif branch == "iter_batch" and plan["l1_form"] in "ab":
        held = l1 * plan["iter_l1"] * (whole_a + whole_b)
    elif branch == "iter_batch" and plan["l1_form"] in "cd":
        if plan["full_load"] == "a":
            held = whole_a + l1 * wide_b(p, min(plan["step_n"] * base_n, p.aN)) * p.aK * p.s
        else:
            held = whole_b + l1 * wide_a(p, min(plan["step_m"] * base_m, p.aM)) * p.aK * p.s
        budget = L1 if plan["l1_form"] == "c" else L1 // 2
    elif plan["full_load"] == "a":
        held = whole_a + l1 * tile_b * depth_b * p.s
    elif plan["full_load"] == "b":
        held = l1 * tile_a * depth_a * p.s + whole_b
    else:
        held = l1 * (tile_a * depth_a + tile_b * depth_b) * p.s
    if p.bias:
        held += base_n * 4
        result["cap.bias_table"] = (2 * base_n * 4, BIAS_TABLE)
    result["cap.l1"] = (held, budget)
    if branch == "stream_k":
        slot = cdiv(p.B, plan["grid_b"]) * plan["single_core_m"] * plan["single_core_n"]
        result["cap.workspace_slot"] = (slot, WORKSPACE_SLOT)
    return result
