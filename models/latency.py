"""The latency model: stages, and how they overlap (design section 5).

Everything here is written over the algebra and gives *ticks*. A stage is the sum of counts times case constants; the
constants are exact rationals of the chip, folded with all case sizes and rounded once (``algebra.Rates``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .algebra import Algebra, Piece, Rates, Value
from .context import ATOM, FIRST_LOAD_BYTES, Context

#: L1 buffer counts that may be in use at once: buffers 1, 2, 4, or as many as there are steps.
_BUFFERS_IN_USE = (1, 2, 3, 4)


@dataclass
class Stages:
    """Ticks of every stage of one plan, and the total."""

    total: Value
    head: Value = 0
    fill1: Value = 0
    fill0: Value = 0
    mmad: Value = 0
    mte2: Value = 0
    mte1: Value = 0
    fixpipe: Value = 0
    drain: Value = 0
    reduce: Value = 0
    reorder: Value = 0
    vector: Value = 0


#: Stages that may be the bottleneck, in the order in which equal ones are named.
BOTTLENECKS = ("mmad", "mte2", "mte1", "fixpipe", "reduce", "reorder", "vector")


@dataclass
class Outcome:
    """What a branch formula returns: stages, and by name the exact counts that plan fields and tie-breaks use.

    ``loads`` says what MTE2 reads and waits for; a branch without Cube work has none.
    """

    stages: Stages
    counts: dict[str, Callable[[], Value]] = field(default_factory=dict)
    loads: Loads | None = None

    def count(self, name: str) -> Value:
        """One of the counts; they are built on demand because the CP interpreter pays for each."""
        return self.counts[name]()


Values = Mapping[str, Any]
#: Amounts of data: (bytes, count).
Sized = Sequence[tuple[int, Value]]


#: An extent that rows and columns of a whole operand stand for: :class:`Rows` cuts it at the true one.
WHOLE = 2**31


def row_efficiency(ctx: Context, row_bytes: int, pitch_bytes: int) -> Fraction:
    """Share of the bandwidth that rows of ``row_bytes`` reach, at a pitch of ``pitch_bytes`` in memory."""
    spec = ctx.spec
    least, efficiency = next((step for step in spec.row_efficiency if row_bytes >= step[0]), spec.row_efficiency[-1])
    if row_bytes < least:
        efficiency = efficiency * Fraction(row_bytes, least)
    return efficiency if pitch_bytes % spec.pitch_alignment_bytes == 0 else efficiency * spec.unaligned_pitch_efficiency


@dataclass(slots=True)
class Rows:
    """Rows of an L1 load: ``count`` atoms of ``atom`` elements, cut at the true ``extent``, ``s`` bytes an element.

    ``count`` may be an int (the row length is a constant of the case). ``pitch`` is the row pitch in elements.
    ``ideal`` marks fractal storage, which always reaches the full rate.
    """

    count: Value
    atom: int
    extent: int
    pitch: int
    ideal: bool = False

    def classes(self, ctx: Context) -> list[tuple[int, Fraction]]:
        """(largest count, efficiency) of every class, ascending."""
        if self.ideal:
            return [(2**62, Fraction(1))]
        key = ("rows", self.atom, self.extent, self.pitch)
        found: list[tuple[int, Fraction]] | None = ctx.memo.get(key)
        if found is None:
            found = ctx.memo[key] = self._scan(ctx)
        return found

    def _scan(self, ctx: Context) -> list[tuple[int, Fraction]]:
        best = ctx.spec.row_efficiency[0][0]
        result: list[tuple[int, Fraction]] = []
        atoms = 1
        while True:
            row = min(atoms * self.atom, self.extent) * ctx.s
            efficiency = row_efficiency(ctx, row, self.pitch * ctx.s)
            if result and result[-1][1] == efficiency:
                result[-1] = (atoms, efficiency)
            else:
                result.append((atoms, efficiency))
            if row >= best or atoms * self.atom >= self.extent:
                return result
            atoms += 1


def rows_a(ctx: Context, depth: Value, um: Value) -> Rows:
    """Rows of A in one L1 part: along K, or along M when A is transposed. ``depth`` in atoms of K, ``um`` of M."""
    if ctx.trans_a:
        return Rows(um, ATOM, ctx.m, ctx.m)
    return Rows(depth, ctx.atom_k, ctx.k, ctx.k)


def rows_b(ctx: Context, depth: Value, un: Value) -> Rows:
    """Rows of B in one L1 part: along N, or along K when B is transposed."""
    if ctx.trans_b:
        return Rows(depth, ctx.atom_k, ctx.k, ctx.k, ctx.nz_b)
    return Rows(un, ATOM, ctx.n, ctx.n, ctx.nz_b)


def whole_rows_a(ctx: Context) -> Rows:
    """Rows of A when a whole batch of it is loaded."""
    return rows_a(ctx, WHOLE, WHOLE)


def whole_rows_b(ctx: Context) -> Rows:
    """Rows of B when a whole batch of it is loaded."""
    return rows_b(ctx, WHOLE, WHOLE)


@dataclass(slots=True)
class Reads:
    """Reads of one operand from ``rows``: ``rate`` bytes for each of ``count`` passes, ``extra`` (bytes, count) on top.

    ``once`` are the bytes of the operand itself.
    """

    rows: Rows
    once: int
    rate: int
    count: Value
    extra: tuple[int, Value] | None = None

    @property
    def passed(self) -> Value:
        """Bytes of all passes, without the ``extra``."""
        return self.count * self.rate

    def cost(self, alg: Algebra, ctx: Context) -> Value:
        """``(uniq/BW_HBM + (total - uniq)/BW_L2) / eff`` ticks when the operand crosses HBM once."""
        return self._classes(alg, ctx, None)

    def missing_cost(self, alg: Algebra, ctx: Context, share: Fraction) -> Value:
        """The same when ``share`` of every pass comes from HBM."""
        return self._classes(alg, ctx, share)

    def _classes(self, alg: Algebra, ctx: Context, share: Fraction | None) -> Value:
        """Unique reads and re-reads are rounded separately, once for each efficiency class."""
        extra_bytes, extra = self.extra or (0, 0)
        rows = self.rows
        key = ("read", rows.atom, rows.extent, rows.pitch, rows.ideal, self.once, self.rate, extra_bytes, share)
        pieces = ctx.memo.get(key)
        if pieces is None:
            beyond = ctx.per_unique_byte - ctx.per_l2_byte
            per_byte = ctx.per_l2_byte if share is None else ctx.per_l2_byte + beyond * share
            first = self.once * beyond if share is None else 0
            pieces = ctx.memo[key] = [
                Piece(upper, Rates.of((self.rate * per_byte / eff, first / eff, extra_bytes * ctx.per_l2_byte / eff)))
                for upper, eff in rows.classes(ctx)
            ]
        return alg.classes(rows.count, pieces, (self.count, 1, extra))


def occupied(alg: Algebra, ctx: Context, cost: Value, used: Value) -> Value:
    """A shared-bandwidth cost when only ``used`` cores pull: ``ceil(cost * q / min(used, q))``."""
    return alg.share(cost, ctx.saturating, alg.min_of(used, ctx.saturating))


def latency_floor(alg: Algebra, ctx: Context, steps: Value, in_use: Value) -> Value:
    """Ticks of ``steps`` L1 steps that each wait for memory latency, ``in_use`` of them in flight."""
    pieces = ctx.memo.get("floor")
    if pieces is None:
        rate = ctx.spec.latency_floor_cycles * ctx.ticks_per_cycle
        pieces = ctx.memo["floor"] = [Piece(n, Rates.of((rate / n,))) for n in _BUFFERS_IN_USE]
    return alg.classes(in_use, pieces, (steps,))


def port_cost(alg: Algebra, ctx: Context, units: Sized) -> Value:
    """Ticks on the MTE2 port of the busiest core; ``units`` are (bytes, count)."""
    sizes, counts = zip(*units, strict=True)

    def rates() -> Iterable[Fraction]:
        rate = ctx.ticks_per_cycle / ctx.spec.mte2_port_bytes_per_cycle
        return (rate * n for n in sizes)

    return alg.ticks(ctx.rates(("port", sizes), rates), counts)


def first_fill(alg: Algebra, ctx: Context, units: Sized, used: Value) -> Value:
    """Ticks until half of the first L1 step has arrived; ``units`` are (bytes, count)."""
    sizes, counts = zip(*units, strict=True)

    def rates(per_byte: Fraction) -> Iterable[Fraction]:
        return (Fraction(n, 2) * per_byte for n in sizes)

    by_port = ctx.rates(("fill port", sizes), lambda: rates(ctx.ticks_per_cycle / ctx.spec.mte2_port_bytes_per_cycle))
    by_memory = ctx.rates(("fill memory", sizes), lambda: rates(ctx.per_unique_byte))
    with alg.optional():
        memory = alg.ticks(by_memory, [alg.mul(count, used) for count in counts])
        return alg.worst([alg.ticks(by_port, counts), memory])


def hbm_cost(alg: Algebra, ctx: Context, once: int) -> Value:
    """Ticks of what must cross HBM: ``once`` bytes of inputs and the output that L2 cannot take."""
    return alg.ticks(
        ctx.rates(("hbm", once), lambda: (once * ctx.per_unique_byte + ctx.output_spill * ctx.per_hbm_byte,)), (1,)
    )


def first_load(alg: Algebra, ctx: Context, rows: Value, k: Value) -> Value:
    """Ticks of the first L0 loads; ``rows`` = (m + n) / 16."""
    spec, tick = ctx.spec, ctx.ticks_per_cycle
    rates = ctx.rates(
        ("fill0",), lambda: (Fraction(ATOM * ctx.s, spec.mte1_bytes_per_cycle) * tick, 2 * spec.mte1_load_cycles * tick)
    )
    return alg.ticks(rates, (alg.mul(rows, alg.min_of(k, FIRST_LOAD_BYTES // ctx.s)), 1))


def mmad_cost(alg: Algebra, ctx: Context, blocks: Value, heads: Value, l0_buffers: int, fractals: Value) -> Value:
    """Ticks of the Cube: ``blocks`` 16 x 16 columns of ``fractals`` cycles each, ``heads`` MMAD instructions."""
    spec, tick = ctx.spec, ctx.ticks_per_cycle
    head = spec.mmad_head_cycles_double if l0_buffers == 2 else spec.mmad_head_cycles_single
    return alg.ticks(ctx.rates(("mmad", head), lambda: (tick, head * tick)), (alg.mul(blocks, fractals), heads))


def mte1_cost(alg: Algebra, ctx: Context, lines: Value, loads: Value) -> Value:
    """Ticks of the L0 loads: ``lines`` of 16 elements, ``loads`` pairs of load instructions."""
    spec, tick = ctx.spec, ctx.ticks_per_cycle
    rates = ctx.rates(
        ("mte1",), lambda: (Fraction(ATOM * ctx.s, spec.mte1_bytes_per_cycle) * tick, 2 * spec.mte1_load_cycles * tick)
    )
    return alg.ticks(rates, (lines, loads))


def drain_cost(alg: Algebra, ctx: Context, drains: Value, blocks: Value) -> Value:
    """Ticks of ``drains`` L0C drains of ``blocks`` 16 x 16 blocks in all."""
    spec, tick = ctx.spec, ctx.ticks_per_cycle
    rates = ctx.rates(
        ("drain",),
        lambda: (spec.drain_cycles * tick, Fraction(ATOM * ATOM, spec.drain_elements_per_cycle) * tick),
    )
    return alg.ticks(rates, (drains, blocks))


@dataclass
class Loads:
    """What MTE2 reads, and the costs of which the largest is its time, by name.

    ``shared`` are the reads of A and of B at the bandwidth that all cores share, ``port`` the bytes of the busiest core
    through its own port, ``hbm`` what must cross HBM, ``floor`` the L1 steps that wait for memory latency (known once
    the buffers in use are).
    """

    reads_a: Reads
    reads_b: Reads
    shared: Value
    port: Value
    hbm: Value
    floor: Value = 0

    @property
    def passed(self) -> Value:
        """Bytes that all passes over A and B read into L1."""
        return self.reads_a.passed + self.reads_b.passed

    @property
    def largest(self) -> str:
        """Name of the largest cost of one plan, the first among equal ones."""
        return max(("shared", "port", "hbm", "floor"), key=lambda name: int(getattr(self, name)))


@dataclass
class Pipes:
    """Stage costs of a Cube branch before they are overlapped.

    ``steps`` counts the L1 steps that can overlap (they limit how many L1 buffers are in use). The latency floor is
    that of ``floor_steps`` (default ``steps``) over the buffers in use.
    """

    mmad: Value
    mte1: Value
    fixpipe: Value
    drain: Value
    fill1: Value
    fill0: Value
    loads: Loads
    steps: Value
    floor_steps: Value | None = None
    reduce: Value = 0


def overlap(alg: Algebra, ctx: Context, pipes: Pipes, v: Values) -> Stages:
    """Total time of a Cube branch from its stages (design section 5).

    ``l0_buffers``, ``l0c_buffers`` and ``fixpipe_unitflag`` are plain ints in every interpreter.

    ``l0_buffers`` = 1 adds MTE1 to MMAD, a single L0C buffer without unit flag adds the drains, a single L1 buffer in
    use adds MTE2.
    """
    in_use = alg.min_of(v["l1_buffers"], pipes.steps)
    floor_steps = pipes.steps if pipes.floor_steps is None else pipes.floor_steps
    loads = pipes.loads
    loads.floor = latency_floor(alg, ctx, floor_steps, in_use)
    mte2 = alg.worst([loads.shared, loads.port, loads.hbm, loads.floor])
    compute = pipes.mmad + pipes.mte1 if v["l0_buffers"] == 1 else pipes.mmad
    if v["l0c_buffers"] == 2 or v["fixpipe_unitflag"]:
        # The drain of the last block is never hidden: FIX' + drain is T_FIXPIPE again.
        out = [compute + pipes.drain, pipes.fixpipe]
    else:
        out = [compute + pipes.fixpipe]
    many = [
        *(cost + pipes.fill1 + pipes.fill0 for cost in out),
        pipes.mte1 + pipes.fill1 + pipes.drain,
        mte2 + pipes.fill0 + pipes.drain,
    ]
    single = [mte2 + pipes.fill0 + cost for cost in (*out, pipes.mte1 + pipes.drain)]
    body = alg.either(alg.at_most(in_use, 1), single, many)
    return Stages(
        total=body + pipes.reduce + ctx.head_ticks,
        head=ctx.head_ticks,
        fill1=pipes.fill1,
        fill0=pipes.fill0,
        mmad=pipes.mmad,
        mte2=mte2,
        mte1=pipes.mte1,
        fixpipe=pipes.fixpipe,
        drain=pipes.drain,
        reduce=pipes.reduce,
    )
