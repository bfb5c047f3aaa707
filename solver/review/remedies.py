"""Remedies for a bottleneck: the few changes it suggests, each with the room it needs, each evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ...models.branches import BRANCH_OF
from ...models.context import Context
from ...models.evaluation import Evaluation, evaluate_values
from ...models.plan import BranchName
from .neighbours import Broken, Legal, start

__all__ = ["faster_plan", "make_room"]

#: Gains below this share are not worth a sentence.
_LEAST_GAIN: Final = 0.005
#: A change that saves this much is enough, however many others could be tried.
_PLENTY: Final = 0.2
_REPAIRS: Final = 5

Values = dict[str, Any]


def faster_plan(ctx: Context, evaluation: Evaluation, kind: str) -> Evaluation | None:
    """A legal and faster plan among those that the bottleneck suggests: the first that saves much, or the fastest."""
    branch = BRANCH_OF[evaluation.plan.branch]
    here = start(ctx, evaluation.plan)
    # What a plan need not say follows anew; it would tie the changed plan to the old tile.
    here.update(dict.fromkeys(here.keys() & branch.solving(here).open_values(here)))
    best, found = int(evaluation.ticks * (1 - _LEAST_GAIN)), None
    for change in _moves(here, kind):
        values = {**here, **change}
        ticks = make_room(ctx, evaluation.plan.branch, values)
        if ticks is not None and ticks < best:
            best, found = ticks, values
            if ticks < evaluation.ticks * (1 - _PLENTY):
                break
    if found is None:
        return None
    better = evaluate_values(ctx, branch, found)
    return better if better.feasible and better.ticks < evaluation.ticks else None


# -- moves: each yields the changes it can make here
def _both_l0_buffers(here: Values) -> Iterator[Values]:
    if here.get("l0_buffers") == 1:
        yield {"l0_buffers": 2}


def _unit_flag(here: Values) -> Iterator[Values]:
    if here.get("l0c_buffers") == 1 and not here.get("fixpipe_unitflag"):
        yield {"fixpipe_unitflag": 1}


def _second_l1_buffer(here: Values) -> Iterator[Values]:
    if here.get("l1_buffers") == 1:
        yield {"l1_buffers": 2}


def _more_l1_buffers(here: Values) -> Iterator[Values]:
    if here.get("l1_buffers") != 1:
        yield {"l1_buffers": min(4, 2 * (here.get("l1_buffers") or 1))}


def _smaller_groups(here: Values) -> Iterator[Values]:
    if (here.get("iter_l1") or 1) > 1:
        yield from ({"iter_l1": max(1, here["iter_l1"] // part)} for part in (2, 4, 8, 16, 32))


def _merged_batches(here: Values) -> Iterator[Values]:
    if here.get("merge_b0"):
        yield {"merge_b0": 2 * here["merge_b0"], "b_l1": max(2 * here["merge_b0"], here["b_l1"])}
        yield {"b_l1": here["merge_b0"]}


def _larger_tile(here: Values) -> Iterator[Values]:
    yield from ({name: times * here[name]} for times in (2, 4) for name in ("um", "un") if here.get(name))


def _more_batches_in_l0(here: Values) -> Iterator[Values]:
    if here.get("iter_l0"):
        yield {"iter_l0": 2 * here["iter_l0"]}


def _smaller_tile(here: Values) -> Iterator[Values]:
    yield from ({name: -(-here[name] // 2)} for name in ("um", "un") if (here.get(name) or 1) > 1)


def _steps(here: Values) -> list[str]:
    """Steps along K that the plan has."""
    return [name for name in ("step_ka", "step_kb", "step_k") if here.get(name)]


def _other_l1_depth(here: Values) -> Iterator[Values]:
    if steps := _steps(here):
        yield {name: 2 * here[name] for name in steps}
        yield {name: max(1, here[name] // 2) for name in steps}


def _one_deeper_part(here: Values) -> Iterator[Values]:
    yield from ({name: 2 * here[name]} for name in _steps(here))


def _deeper_tile(here: Values) -> Iterator[Values]:
    if here.get("uk"):
        yield {"uk": 2 * here["uk"], **{name: -(-here[name] // 2) for name in _steps(here)}}


def _other_k_slices(here: Values) -> Iterator[Values]:
    if here.get("grid_k"):
        yield {"grid_k": 2 * here["grid_k"], "single_core_k": None}
        yield {"grid_k": max(2, here["grid_k"] // 2), "single_core_k": None}


def _more_vector_cores(here: Values) -> Iterator[Values]:
    if here.get("used"):
        yield {"used": 2 * here["used"]}


_AGAIN: Final = ("again a", "again b")
#: Kinds of bottleneck (none: every kind) and what may help them, the most likely first.
_MOVES: Final[tuple[tuple[tuple[str, ...], Callable[[Values], Iterator[Values]]], ...]] = (
    ((), _both_l0_buffers),
    ((), _unit_flag),
    ((), _second_l1_buffer),
    (("floor",), _more_l1_buffers),
    (("serial",), _smaller_groups),
    (("serial", "port", "mte1"), _merged_batches),
    ((*_AGAIN, "port", "mte1", "floor", "fixpipe"), _larger_tile),
    (("fixpipe",), _more_batches_in_l0),
    (("mmad", "fixed", "port", "fixpipe", "serial"), _smaller_tile),
    (("rows", "floor", "fixed", "serial"), _other_l1_depth),
    ((*_AGAIN, "rows"), _one_deeper_part),
    (("mmad", "mte1"), _deeper_tile),
    (("fixed", "reduce"), _other_k_slices),
    ((), _more_vector_cores),
)


def _moves(here: Values, kind: str) -> Iterator[Values]:
    """Changes worth a try for a kind of bottleneck, the most likely first."""
    for kinds, move in _MOVES:
        if not kinds or kind in kinds:
            yield from move(here)


# -- room for a move
def make_room(ctx: Context, name: BranchName, values: Values) -> int | None:
    """Time of the point after making room for it; ``values`` is changed on the way. None when there is no room."""
    branch = BRANCH_OF[name]
    for _ in range(_REPAIRS):
        try:
            return int(branch.formula(Legal(), ctx, values).stages.total)
        except Broken as broken:
            if not _repair(values, broken.rule):
                return None
    return None


def _repair(values: Values, rule: str) -> bool:
    """Change what a rule leaves room for; False when nothing is known to help."""
    steps = _steps(values)
    if rule == "cap.l0c" and values["l0c_buffers"] == 2:
        values |= {"l0c_buffers": 1, "fixpipe_unitflag": 1}
    elif rule in ("cap.l0a", "cap.l0b") and values["uk"] > 1:
        values["uk"] = values["uk"] // 2
        values |= {name: 2 * values[name] for name in steps}
    elif rule in ("cap.l1", "policy.asw_l1_share", "step.ka_max", "step.kb_max") and any(values[n] > 1 for n in steps):
        values |= {name: max(1, values[name] // 2) for name in steps}
    elif rule == "cap.l1" and (values.get("l1_buffers") or 1) > 1:
        values["l1_buffers"] = values["l1_buffers"] // 2
    elif rule == "cover.iter_l0" and values["iter_l0"] > values["iter_l1"]:
        values["iter_l0"] = values["iter_l1"]
    elif rule.startswith("cover.tail"):
        values |= {"tail_m": 1, "tail_n": 1}
    elif rule == "step.k_divide" and values["step_ka"] != values["step_kb"]:
        values |= dict.fromkeys(("step_ka", "step_kb"), min(values["step_ka"], values["step_kb"]))
    else:
        return False
    return True
