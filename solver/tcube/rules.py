"""The constraints on ``TCubeTiling``, each named as the vendor writes it, with both sides.

Source: hiascend.com, CANN 9.0, "TCubeTiling结构体" (atlasascendc_api_07_0673), tables 1 (value ranges), 2 and 3 (MDL).

Two places differ from the letter of the document:

* Table 2 writes ``<`` for L0A, L0B, L0C and the bias table; shipped tilings fill them exactly, so ``<=`` (design
  section 10).
* Table 2 gives ``AL1Size = CeilDiv(baseM, C0_size) * baseK * ...`` for a transposed A (``CeilDiv(baseN, C0_size)`` for
  an untransposed B). That counts fractals; the factor C0_size that makes them elements is missing and is put in here.

A struct that carries ``tileproof`` is for a kernel of that branch, which deals blocks and batches to cores itself.
There the relation of usedCoreNum to singleCoreM and singleCoreN is not asked for, nor ``singleCoreK = K`` of stream_k;
L1 may have four buffers, and A1 and B1 count resident operands and batches as often as they are there.

Not checked, for want of a case that could break it: the even inner axis of 4-bit types, and the padding of K where A
and B are not both in global memory (MxMatmul).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...hardware import NpuSpec
from ...models.case import BYTES, BmmCase
from ...models.context import ACC_BYTES, ATOM, ceil_to
from .footprint import l1_sizes
from .struct import TCubeTiling

__all__ = ["C0_SIZE", "TCubeCheck", "check_tcube", "tcube_violations"]

#: Elements of one fractal row (C0_size) by input type: 32 B.
C0_SIZE: Final[dict[str, int]] = {
    "fp32": 8, "hf32": 8, "fp16": 16, "bf16": 16, "int8": 32, "fp8_e4m3": 32, "fp8_e5m2": 32, "hif8": 32,
}  # fmt: skip
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
    ">": lambda left, right: left > right,
    "==": lambda left, right: left == right,
}


@dataclass(frozen=True)
class TCubeCheck:
    """One constraint with both sides; ``table`` is the vendor's table it stands in."""

    table: int
    name: str
    left: int
    operator: str
    right: int

    @property
    def holds(self) -> bool:
        """Whether the comparison is true."""
        return _COMPARE[self.operator](self.left, self.right)


@dataclass(frozen=True)
class _Task:
    """What the constraints are about."""

    t: TCubeTiling
    case: BmmCase
    spec: NpuSpec

    @property
    def s(self) -> int:
        """Bytes of an element of A or B."""
        return self.case.input_bytes

    @property
    def c0(self) -> int:
        """C0_size of A and B, elements."""
        return C0_SIZE[self.case.dtype]

    @property
    def bias_bytes(self) -> int:
        """Bytes of a bias element; 4 where the case does not say."""
        return BYTES[self.case.bias] if self.case.bias else ACC_BYTES

    def has(self, *names: str) -> bool:
        """Whether all these fields were given."""
        return set(names) <= self.t.given


_Checks = Iterator[TCubeCheck]


def check_tcube(tiling: TCubeTiling, case: BmmCase, spec: NpuSpec, *, mdl: bool = True) -> list[TCubeCheck]:
    """Every constraint on a struct; those on fields that were not given are left out.

    Args:
        tiling: the struct.
        case: gives types, layout and bias.
        spec: the chip, for core count and buffer sizes.
        mdl: whether the Matmul object uses the MDL template (table 3).
    """
    task = _Task(tiling, case, spec)
    families = [_ranges, _single_core, _mx, _cores, _l0, _depth, _l1, _alignment]
    if mdl:
        families.append(_mdl)
    return [check for family in families for check in family(task)]


def tcube_violations(tiling: TCubeTiling, case: BmmCase, spec: NpuSpec, *, mdl: bool = True) -> list[TCubeCheck]:
    """The constraints that a struct breaks."""
    return [check for check in check_tcube(tiling, case, spec, mdl=mdl) if not check.holds]


def _nearest(allowed: Sequence[int], value: int) -> int:
    return min(allowed, key=lambda option: abs(option - value))


# -- table 1: values of single fields
_POSITIVE: Final = (
    "M", "N", "Ka", "Kb", "singleCoreM", "singleCoreN", "singleCoreK", "baseM", "baseN", "baseK", "depthA1", "depthB1",
    "stepM", "stepN", "stepKa", "stepKb",
)  # fmt: skip
_SETS: Final = {"isBias": (0, 1), "iterateOrder": (0, 1), "dbL0A": (1, 2), "dbL0B": (1, 2), "dbL0C": (1, 2)}


def _ranges(task: _Task) -> _Checks:
    for name in _POSITIVE:
        if task.has(name):
            yield TCubeCheck(1, f"{name} > 0", getattr(task.t, name), ">", 0)
    for name, allowed in _SETS.items():
        if task.has(name):
            value = getattr(task.t, name)
            nearest = _nearest(allowed, value)
            yield TCubeCheck(1, f"{name} = {allowed[0]} or {allowed[1]}", value, "==", nearest)


def _single_core(task: _Task) -> _Checks:
    t, extra = task.t, task.t.tileproof
    for name, whole in (("singleCoreM", "M"), ("singleCoreN", "N")):
        if task.has(name, whole):
            yield TCubeCheck(1, f"{name} <= {whole}", getattr(t, name), "<=", getattr(t, whole))
    cuts_k = extra is not None and "stream_k" in (extra.plan.get("branch"), extra.plan.get("inner_branch"))
    if task.has("singleCoreK", "Ka") and not cuts_k:
        yield TCubeCheck(1, "singleCoreK = K", t.singleCoreK, "==", t.Ka)
    if task.has("Ka", "Kb"):
        yield TCubeCheck(1, "Ka = Kb", t.Ka, "==", t.Kb)
    tasks = _tasks(task)
    if extra is None and tasks is not None:
        yield TCubeCheck(1, "usedCoreNum = (M / singleCoreM) * (N / singleCoreN)", t.usedCoreNum, "==", tasks)
    if task.case.format_b == "NZ":
        for name, value, multiple in (("Kb", task.case.k, task.c0), ("N", task.case.n, ATOM)):
            yield TCubeCheck(1, f"{name} % {multiple} = 0 (B is NZ)", value % multiple, "==", 0)
        if task.has("singleCoreK") and t.singleCoreK != t.Ka:
            yield TCubeCheck(1, f"singleCoreK % {task.c0} = 0 (B is NZ)", t.singleCoreK % task.c0, "==", 0)
        if task.has("singleCoreN") and t.singleCoreN != t.N:
            yield TCubeCheck(1, f"singleCoreN % {ATOM} = 0 (B is NZ)", t.singleCoreN % ATOM, "==", 0)


def _tasks(task: _Task) -> int | None:
    """Tasks of the cores; with a batch, at most one for each core of the chip."""
    t = task.t
    if not task.has("usedCoreNum", "M", "N", "singleCoreM", "singleCoreN") or min(t.singleCoreM, t.singleCoreN) < 1:
        return None
    tasks = -(-t.M // t.singleCoreM) * -(-t.N // t.singleCoreN)
    return tasks if task.case.batch == 1 else min(task.spec.aic_cores, tasks * task.case.batch)


def _mx(task: _Task) -> _Checks:
    """MxMatmul: only where its parameter is set."""
    t = task.t
    if not t.mxTypePara:
        return
    factor_k = {side: (t.mxTypePara >> shift) & 0xFF for side, shift in (("a", 0), ("b", 8))}
    factor_mn = {side: (t.mxTypePara >> shift) & 0xFF for side, shift in (("a", 16), ("b", 24))}
    for side, letter, name in (("a", "A", "M"), ("b", "B", "N")):
        for label, value in ((f"scaleFactorK{side}", factor_k[side]), (f"scaleFactor{name}", factor_mn[side])):
            yield TCubeCheck(1, f"{label} = 1 .. 127", value, "==", min(max(value, 1), 127))
        step = f"stepK{side}"
        if factor_mn[side] > 1 and task.has("baseK", step, "singleCoreK"):
            loaded = t.baseK * getattr(t, step) * factor_k[side]
            rule = f"baseK * {step} * scaleFactorK{side} >= singleCoreK (scale{letter}: scaleFactor{name} > 1)"
            yield TCubeCheck(1, rule, loaded, ">=", t.singleCoreK)
    if task.has("baseK"):
        yield TCubeCheck(1, "baseK % 64 = 0 (MxMatmul)", t.baseK % 64, "==", 0)


# -- table 2
def _cores(task: _Task) -> _Checks:
    if task.has("usedCoreNum"):
        yield TCubeCheck(1, "usedCoreNum >= 1", task.t.usedCoreNum, ">=", 1)
        yield TCubeCheck(2, "usedCoreNum <= aiCoreCnt", task.t.usedCoreNum, "<=", task.spec.aic_cores)


def _l0(task: _Task) -> _Checks:
    t, spec, s = task.t, task.spec, task.s
    if task.has("baseM", "baseK", "dbL0A"):
        used = t.baseM * t.baseK * s * t.dbL0A
        yield TCubeCheck(2, "baseM * baseK * sizeof(A_type) * dbL0A <= l0a_size", used, "<=", spec.l0a_bytes)
    if task.has("baseN", "baseK", "dbL0B"):
        used = t.baseN * t.baseK * s * t.dbL0B
        yield TCubeCheck(2, "baseN * baseK * sizeof(B_type) * dbL0B <= l0b_size", used, "<=", spec.l0b_bytes)
    if task.has("baseM", "baseN", "dbL0C"):
        used = t.baseM * t.baseN * ACC_BYTES * t.dbL0C
        yield TCubeCheck(2, "baseM * baseN * sizeof(l0c_type) * dbL0C <= l0c_size", used, "<=", spec.l0c_bytes)
    if task.has("baseN", "isBias") and t.isBias:
        used = t.baseN * task.bias_bytes
        yield TCubeCheck(2, "baseN * sizeof(Bias_type) <= biasT_size", used, "<=", spec.bias_table_bytes)


def _depth(task: _Task) -> _Checks:
    t = task.t
    extra = t.tileproof.plan if t.tileproof is not None else {}
    for depth, step, step_k in (("depthA1", "stepM", "stepKa"), ("depthB1", "stepN", "stepKb")):
        if task.has(depth, step, step_k):
            part, held = getattr(t, step) * getattr(t, step_k), getattr(t, depth)
            options = (1, 2, 4) if extra.get("l1_buffers") == 4 else (1, 2)
            nearest = _nearest([part * db for db in options], held)
            yield TCubeCheck(2, f"{step} * {step_k} * db = {depth}", nearest, "==", held)


def _l1(task: _Task) -> _Checks:
    t = task.t
    if not task.has("baseM", "baseN", "baseK", "depthA1", "depthB1"):
        return
    size_a, size_b = l1_sizes(t, task.case, task.c0)
    name, used = "AL1Size + BL1Size <= L1_size", size_a + size_b
    if t.isBias:
        name, used = "AL1Size + BL1Size + baseN * sizeof(Bias_type) <= L1_size", used + t.baseN * task.bias_bytes
    yield TCubeCheck(2, name, used, "<=", task.spec.l1_bytes)


def _alignment(task: _Task) -> _Checks:
    t, case = task.t, task.case
    for name in ("baseM", "baseN"):
        if task.has(name):
            yield TCubeCheck(2, f"{name} % {ATOM} = 0", getattr(t, name) % ATOM, "==", 0)
    if task.has("baseK"):
        by_c0 = not case.trans_a and case.trans_b
        multiple = task.c0 if by_c0 else ATOM
        yield TCubeCheck(2, f"baseK % {'C0_size' if by_c0 else ATOM} = 0", t.baseK % multiple, "==", 0)


# -- table 3
def _mdl(task: _Task) -> _Checks:
    t = task.t
    for side, whole, step_k, step in (("a", "Ka", "stepKa", "stepM"), ("b", "Kb", "stepKb", "stepN")):
        if task.has(whole, "baseK", step_k, step) and getattr(t, whole) > t.baseK * getattr(t, step_k):
            rule = f"K{side} / baseK > {step_k}: {step} = 1"
            yield TCubeCheck(3, rule, getattr(t, step), "==", 1)
    if task.has("singleCoreK", "baseK", "stepKa", "stepKb") and min(t.singleCoreK, t.baseK, t.stepKa, t.stepKb) > 0:
        steps = [ceil_to(t.singleCoreK, t.baseK * step) // (t.baseK * step) for step in (t.stepKa, t.stepKb)]
        rule = "kaStepIter_ % kbStepIter_ = 0 or kbStepIter_ % kaStepIter_ = 0"
        yield TCubeCheck(3, rule, max(steps) % min(steps), "==", 0)
