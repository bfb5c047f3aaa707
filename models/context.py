"""Everything a formula needs to know about one case on one chip, derived once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any, Final, Literal, get_args

from ..hardware import NpuSpec
from .algebra import Rates
from .case import BmmCase
from .rules import Profile

Environment = Literal["profiler", "cold", "warm", "resident"]
ENVIRONMENTS: Final[tuple[Environment, ...]] = get_args(Environment)

MODEL_VERSION: Final = "1"
#: Rows of a Cube fractal in M and N, elements; bytes of an accumulator, of a bias entry in L1 and in the bias table.
ATOM: Final = 16
ACC_BYTES: Final = 4
BIAS_BYTES: Final = 4
C0_BYTES: Final = 32
#: K extent of the first L0 load that ``fill0`` waits for, bytes (design section 5).
FIRST_LOAD_BYTES: Final = 128
#: Ticks: finest is 1/1024 cycle; 16 times the least conceivable time stays below 2^31 ticks.
FINEST_TICK: Final = Fraction(1, 1024)
_TICK_ROOM: Final = 16
_TICK_LIMIT: Final = 2**31


def ceil_to(value: int, multiple: int) -> int:
    """``value`` rounded up to a multiple."""
    return -(-value // multiple) * multiple


@dataclass(frozen=True)
class Context:
    """Case, chip, rules and environment, and what follows from them.

    ``batch_a``, ``batch_b``, ``batch`` are the products B_A, B_B and B; ``m``, ``n``, ``k`` the true extents. A folded
    matmul (to_matmul) is a context of its own that keeps the tick and the output alignment of the whole case.
    """

    case: BmmCase
    spec: NpuSpec
    profile: Profile
    environment: Environment
    batch_a: int
    batch_b: int
    batch: int
    m: int
    n: int
    k: int
    equal_batch: bool
    trans_a: bool
    trans_b: bool
    bias_batch: bool
    cycles_per_tick: Fraction
    aligned_output: bool

    @classmethod
    def of(
        cls, case: BmmCase, spec: NpuSpec, profile: Profile = "v0.4", environment: Environment = "profiler"
    ) -> Context:
        """Context of a case."""
        width = max(len(case.batch_a), len(case.batch_b))
        left, right = ((1,) * (width - len(dims)) + dims for dims in (case.batch_a, case.batch_b))
        product_a = product_b = 1
        for a, b in zip(left, right, strict=True):
            product_a *= a
            product_b *= b
        context = cls(
            case=case,
            spec=spec,
            profile=profile,
            environment=environment,
            batch_a=product_a,
            batch_b=product_b,
            batch=case.batch,
            m=case.m,
            n=case.n,
            k=case.k,
            equal_batch=left == right,
            trans_a=case.trans_a,
            trans_b=case.trans_b,
            bias_batch=case.bias_batch,
            cycles_per_tick=FINEST_TICK,
            aligned_output=case.n * case.output_bytes % spec.output_alignment_bytes == 0,
        )
        return replace(context, cycles_per_tick=context._tick())

    def folded(self, side: Literal["a", "b"]) -> Context:
        """The matmul that remains when the batch of A is folded into M, or that of B into N."""
        return replace(
            self,
            batch_a=1,
            batch_b=1,
            batch=1,
            equal_batch=True,
            m=self.m * self.batch if side == "a" else self.m,
            n=self.n * self.batch if side == "b" else self.n,
            trans_b=self.trans_b,
        )

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Constants of the case that formulas derive again and again."""
        return {}

    def rates(self, key: tuple[Any, ...], build: Callable[[], Iterable[Fraction | int]]) -> Rates:
        """Rates of a cost, folded once for each ``key``."""
        rates: Rates | None = self.memo.get(key)
        if rates is None:
            rates = self.memo[key] = Rates.of(build())
        return rates

    # -- sizes
    @cached_property
    def s(self) -> int:
        """Bytes of an input element."""
        return self.case.input_bytes

    @cached_property
    def so(self) -> int:
        """Bytes of an output element."""
        return self.case.output_bytes

    @cached_property
    def c0(self) -> int:
        """Elements in 32 B."""
        return C0_BYTES // self.s

    @cached_property
    def atom_k(self) -> int:
        """Least step of base_k, elements."""
        return max(ATOM, self.c0)

    @cached_property
    def am(self) -> int:
        """M padded to 16."""
        return ceil_to(self.m, ATOM)

    @cached_property
    def an(self) -> int:
        """N padded to 16."""
        return ceil_to(self.n, ATOM)

    @cached_property
    def ak(self) -> int:
        """K padded to the step of base_k."""
        return ceil_to(self.k, self.atom_k)

    @cached_property
    def cores(self) -> int:
        """Cube cores of the chip."""
        return self.spec.aic_cores

    @cached_property
    def saturating(self) -> int:
        """Cube cores that saturate HBM (q of the design)."""
        return self.spec.saturating_aic_cores

    @cached_property
    def fractals_k(self) -> int:
        """Cube cycles of one 16 x 16 column of the whole K."""
        return self.fractal_steps(self.k)

    def fractal_steps(self, k: int) -> int:
        """Cube cycles of a 16 x 16 block over ``k``."""
        return -(-k // self.spec.fractal_k(self.case.dtype)) * self.spec.fractal_cycles

    @cached_property
    def bias_l1_bytes(self) -> int:
        """Bytes of the bias row in L1, per column of base_n."""
        return BIAS_BYTES if self.case.bias else 0

    @cached_property
    def nz_b(self) -> bool:
        """B is stored in fractals."""
        return self.case.format_b == "NZ"

    # -- bytes
    @cached_property
    def unique_a(self) -> int:
        """Bytes of A, each counted once."""
        return self.batch_a * self.m * self.k * self.s

    @cached_property
    def unique_b(self) -> int:
        """Bytes of B, each counted once."""
        return self.batch_b * self.k * self.n * self.s

    @cached_property
    def output_total(self) -> int:
        """Bytes of C."""
        return self.batch * self.m * self.n * self.so

    @cached_property
    def output_spill(self) -> int:
        """Bytes of C that L2 cannot take."""
        return max(0, self.output_total - self.spec.l2_bytes)

    # -- time
    @cached_property
    def ticks_per_cycle(self) -> Fraction:
        """Ticks of one Cube cycle."""
        return 1 / self.cycles_per_tick

    @cached_property
    def ticks_per_us(self) -> Fraction:
        """Ticks of one microsecond."""
        return self.spec.cycles_per_us * self.ticks_per_cycle

    def us(self, ticks: int) -> float:
        """Microseconds of a number of ticks."""
        rate = self.ticks_per_us
        return ticks * rate.denominator / rate.numerator

    @cached_property
    def per_hbm_byte(self) -> Fraction:
        """Ticks to move one byte through HBM."""
        return self.ticks_per_cycle / self.spec.hbm_bytes_per_cycle

    @cached_property
    def per_l2_byte(self) -> Fraction:
        """Ticks to read one byte from L2."""
        return self.ticks_per_cycle / self.spec.l2_read_bytes_per_cycle

    @cached_property
    def per_unique_byte(self) -> Fraction:
        """Ticks for the first read of a byte: HBM, or L2 when the environment says that everything is resident."""
        in_l2 = self.unique_a + self.unique_b + self.output_total <= self.spec.l2_bytes
        return self.per_l2_byte if self.environment == "resident" and in_l2 else self.per_hbm_byte

    @cached_property
    def per_unaligned_byte(self) -> Fraction:
        """Ticks to write one byte of rows that are no multiple of 32 B."""
        return self.ticks_per_cycle / self.spec.unaligned_write_bytes_per_cycle

    @cached_property
    def unaligned_ticks(self) -> int:
        """Least time of the writes when output rows are unaligned, else 0."""
        return 0 if self.aligned_output else -(-self.output_total * self.per_unaligned_byte // 1)

    @cached_property
    def head_ticks(self) -> int:
        """Launch head of the environment."""
        return round(self.spec.head_us[self.environment] * self.ticks_per_us)

    @cached_property
    def default_window(self) -> int:
        """Largest divisor of C not above sqrt(C)."""
        return max(d for d in range(1, isqrt(self.cores) + 1) if self.cores % d == 0)

    @cached_property
    def windows(self) -> tuple[int, ...]:
        """Divisors of C, largest first."""
        return tuple(d for d in range(self.cores, 0, -1) if self.cores % d == 0)

    def _tick(self) -> Fraction:
        """Cycles of a tick: a closed function of case, chip and environment (design section 5)."""
        macs = self.batch * self.m * self.n * self.k
        compute = Fraction(macs, self.cores * self.spec.mac_per_cycle(self.case.dtype))
        traffic = (self.unique_a + self.unique_b + self.output_spill) / self.spec.hbm_bytes_per_cycle
        cycles = self.spec.head_us[self.environment] * self.spec.cycles_per_us + max(compute, traffic)
        tick = FINEST_TICK
        while _TICK_ROOM * cycles / tick >= _TICK_LIMIT:
            tick *= 2
        return tick
