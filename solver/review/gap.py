"""How far a plan is from what is possible: its branch, every branch, the roofline, and the traffic its memory forces.

All bounds hold for every legal plan of the case in every branch of the latency model:

* ``roofline``: launch head + the longest of MACs at the Cube peak, compulsory bytes over HBM, the output at the rate at
  which it can leave. The model lets the Cube branches write at the drain rate of L0C where that is above the L2 write
  rate (fp32 outputs), so the faster of the two counts.
* ``traffic``: launch head + least bytes into L1 at the rate of L2 or of the MTE2 ports. With ``S`` elements of on-chip
  memory a core must read at least ``2 * MACs / sqrt(S) - 2S`` elements of A, B or C (Hong and Kung 1981; Smith, Lowery,
  Langou and van de Geijn 2019). Accumulators start at zero and are not read, so their number is taken off as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Any, Final

from ...hardware import NpuSpec
from ...models.context import Context
from ...models.plan import BRANCHES, BranchName
from ..result import BranchResult, CaseResult
from ..search.best import least_optimum, least_ticks, optimum_ticks

if TYPE_CHECKING:
    from ..search.solve_branch import SolveOptions

__all__ = ["LEVELS", "Gap", "gap_of", "gap_of_result", "optima", "roofline_ticks", "traffic_bytes", "traffic_ticks"]

#: Rungs of the ladder, from the plan down.
LEVELS: Final = ("branch_optimum", "optimum", "roofline", "traffic")


@dataclass(frozen=True)
class Gap:
    """Ticks of a plan and of every rung; None where the time limit came first or no plan exists."""

    ctx: Context
    ticks: int
    branch_optimum: int | None
    optimum: int | None
    roofline: int
    traffic: int

    def rungs(self) -> Iterator[tuple[str, int | None, float | None]]:
        """(name, ticks, plan over rung) of every rung."""
        for name in LEVELS:
            ticks: int | None = getattr(self, name)
            yield name, ticks, self.ticks / ticks if ticks else None

    def to_json(self) -> dict[str, Any]:
        """Plain data: the plan and every rung in microseconds, with the ratio of the plan to it."""
        result: dict[str, Any] = {"plan_us": self.ctx.us(self.ticks)}
        for name, ticks, ratio in self.rungs():
            result[name] = {"us": None if ticks is None else self.ctx.us(ticks), "ratio": ratio}
        return result


def gap_of(ctx: Context, branch: BranchName, ticks: int, options: SolveOptions | None = None) -> Gap:
    """The ladder of a plan of a branch that takes ``ticks``."""
    own, least = optima(ctx, branch, options)
    return Gap(ctx, ticks, own, least, roofline_ticks(ctx), traffic_ticks(ctx))


def gap_of_result(result: CaseResult, spec: NpuSpec, options: SolveOptions | None = None) -> Gap | None:
    """The ladder of the winner of a solved case; its optima are those without pins."""
    best = result.best
    if best is None or best.latency_ticks is None or result.winner is None:
        return None
    ctx = Context.of(result.case, spec, result.rules, result.environment)
    if not result.pins and result.verdict == "proven" and set(result.branches) == set(BRANCHES):
        own = best.latency_ticks
        return Gap(ctx, own, own, least_ticks(result), roofline_ticks(ctx), traffic_ticks(ctx))
    return gap_of(ctx, result.winner, best.latency_ticks, options)


def optima(ctx: Context, branch: BranchName, options: SolveOptions | None = None) -> tuple[int | None, int | None]:
    """Optimum of a branch and of all branches, in ticks; None when it is not known or there is no plan.

    Kept in the context, so that many plans of a case cost one solve.
    """
    from ..search.solve_branch import SolveOptions, solve_branch  # OR-Tools, which the bounds below do not need

    options = SolveOptions(time_limit=options.time_limit if options else 60.0, tie_break=False, explain=False)
    solved: dict[BranchName, BranchResult] = ctx.memo.setdefault("optima", {})
    if branch not in solved:
        solved[branch] = solve_branch(ctx, branch, options).result
    if "least" not in ctx.memo:
        ctx.memo["least"] = least_optimum(ctx, options, solved)
    return optimum_ticks(solved[branch]), ctx.memo["least"]


# -- bounds
def roofline_ticks(ctx: Context) -> int:
    """No plan of any branch is faster: arithmetic, compulsory memory traffic, and the output."""
    if "roofline" not in ctx.memo:
        longest = max(_compute(ctx), _memory(ctx), _write(ctx))
        ctx.memo["roofline"] = ctx.head_ticks + int(longest) if ctx.batch * ctx.m * ctx.n else 0
    ticks: int = ctx.memo["roofline"]
    return ticks


def _compute(ctx: Context) -> Fraction:
    macs = ctx.batch * ctx.m * ctx.n * ctx.k
    if ctx.k < 2:  # no Cube work
        return Fraction(0)
    return macs * ctx.ticks_per_cycle / (ctx.cores * ctx.spec.mac_per_cycle(ctx.case.dtype))


def _memory(ctx: Context) -> Fraction:
    return (ctx.unique_a + ctx.unique_b) * ctx.per_unique_byte + ctx.output_spill * ctx.per_hbm_byte


def _write(ctx: Context) -> Fraction:
    rate: Fraction = ctx.spec.l2_write_bytes_per_cycle
    if ctx.k >= 2:
        rate = max(rate, ctx.cores * ctx.spec.drain_elements_per_cycle * ctx.so)
    return ctx.output_total * ctx.ticks_per_cycle / rate


def traffic_ticks(ctx: Context) -> int:
    """No plan of any branch is faster: what its on-chip memory forces it to read."""
    if not ctx.batch * ctx.m * ctx.n:
        return 0
    if ctx.k < 2:  # the vector cores read past L1
        return ctx.head_ticks + int(_memory(ctx))
    rate = min(ctx.spec.l2_read_bytes_per_cycle, ctx.cores * ctx.spec.mte2_port_bytes_per_cycle)
    return ctx.head_ticks + int(traffic_bytes(ctx) * ctx.ticks_per_cycle / rate)


def traffic_bytes(ctx: Context) -> int:
    """Least bytes into L1 over all cores."""
    spec = ctx.spec
    memory = (spec.l1_bytes + spec.l0a_bytes + spec.l0b_bytes + spec.l0c_bytes) // ctx.s
    macs = ctx.batch * ctx.m * ctx.n * ctx.k
    # A core of a K split holds one workspace slot of partial sums, and the padding of it is not computed.
    accumulators = max(ctx.batch * ctx.m * ctx.n, ctx.cores * spec.workspace_slot_elements)
    elements = isqrt(4 * macs * macs // memory) - 2 * memory * ctx.cores - accumulators
    return max(ctx.unique_a + ctx.unique_b, elements * ctx.s)
