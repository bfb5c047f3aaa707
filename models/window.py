"""What the sliding window keeps in L2: reads of A and B shared by the blocks of one round (design section 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce

from .algebra import Algebra, Rates, Value
from .context import ATOM, Context
from .latency import Reads, hbm_cost


@dataclass(frozen=True)
class Traffic:
    """Reads through L2: ticks at the shared rates, and ticks of what must cross HBM.

    ``hbm_units()`` counts the bytes that cross HBM in units of ``K * s / C`` bytes (exact), ``window()`` is swizzle_w.
    Both are functions because only a tie-break or a report needs them.
    """

    shared: Value
    hbm: Value
    hbm_units: Callable[[], Value]
    window: Callable[[], Value]


def window_traffic(
    alg: Algebra,
    ctx: Context,
    window: int | None,
    tile: tuple[Value, Value],
    reads_a: Reads,
    reads_b: Reads,
    resident: str,
) -> Traffic:
    """Traffic of blocks of ``tile`` = (um, un) atoms dealt in a window; ``window`` = None derives the best one.

    While the window's working set ``(W*base_m + (C/W)*base_n) * K * s`` fits L2, A and B cross HBM once. Otherwise
    nothing survives a round and ``W/C`` of every pass over A, ``1/W`` of every pass over B comes from HBM. An operand
    resident in L1 (``resident`` = "a" or "b") crosses HBM once in any case.
    """
    cores = ctx.cores
    options = ctx.windows if window is None else (window,)
    sets = [tile[0] * w + tile[1] * (cores // w) for w in options]
    fits = alg.at_most(reduce(alg.min_of, sets), ctx.spec.l2_bytes // (ATOM * ctx.k * ctx.s))
    units_a, units_b = ctx.batch_a * ctx.m * cores, ctx.batch_b * ctx.n * cores
    once = reads_a.cost(alg, ctx) + reads_b.cost(alg, ctx)
    hbm_once = hbm_cost(alg, ctx, ctx.unique_a + ctx.unique_b)

    def derived() -> Value:
        return window if window is not None else alg.pick_count(alg.argmin(sets), list(options))

    if fits is True:
        return Traffic(once, hbm_once, lambda: units_a + units_b, derived)
    choice = alg.argmin(sets)

    def sides(w: int) -> list[tuple[Reads, int, int, bool]]:
        """(reads, part of C that one pass takes from HBM, least units, resident) of A and B."""
        return [(reads_a, w, units_a, resident == "a"), (reads_b, cores // w, units_b, resident == "b")]

    def shared(w: int) -> Value:
        costs = []
        for reads, part, _, stays in sides(w):
            cost = reads.cost(alg, ctx)
            costs.append(cost if stays else alg.worst([cost, reads.missing_cost(alg, ctx, Fraction(part, cores))]))
        return costs[0] + costs[1]

    def crossing_rate(nbytes: int | Fraction) -> Rates:
        return ctx.rates(("crossing", nbytes), lambda: (nbytes * ctx.per_unique_byte,))

    def crossing(w: int) -> Value:
        total = hbm_cost(alg, ctx, 0)
        for reads, part, _, stays in sides(w):
            once, bytes_part = reads.once, reads.rate * Fraction(part, cores)
            least = alg.ticks(crossing_rate(once), (1,))
            passes = alg.ticks(crossing_rate(bytes_part), (reads.count,))
            total = total + (least if stays else alg.worst([least, passes]))
        return total

    def units(w: int) -> Value:
        total: Value = 0
        for reads, part, least, stays in sides(w):
            passes = reads.count * (reads.rate // (ctx.k * ctx.s) * part)
            total = total + (least if stays else alg.max_of(passes, least))
        return total

    # Missing L2 never makes a read cheaper, so the case that fits is the floor of both.
    missed = alg.either(fits, [0], [alg.pick(choice, [partial(shared, w) for w in options], fits)])
    crossed = alg.either(fits, [0], [alg.pick(choice, [partial(crossing, w) for w in options], fits)])
    return Traffic(
        alg.worst([once, missed]),
        alg.worst([hbm_once, crossed]),
        lambda: alg.choose(fits, units_a + units_b, alg.pick_count(choice, [units(w) for w in options])),
        derived,
    )
