"""Fitting constants: what the data can tell apart, robust least relative error, held-out error, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Final

import numpy as np

from ...hardware.errors import InputError
from .constants import Constant
from .timing import Array, Mask, Timing

#: Relative errors beyond this count less and less (soft L1).
_SOFT: Final = 0.05
#: Noise that is assumed before the fit, and the largest standard error (of a scale) that a fit may have.
_NOISE: Final = 0.03
_LEAST_NOISE: Final = 0.01
_MOST_ERROR: Final = 0.5
_INSENSITIVE: Final = 1e-4
_LEVEL: Final = 0.95


@dataclass(frozen=True)
class Refused:
    """A constant that the data cannot identify, and why; ``at_edge`` when it is a rate that ran out of its range."""

    constant: Constant
    reason: str
    at_edge: bool = False


@dataclass(frozen=True)
class Fit:
    """Fitted scales, and the relative errors of all quantities with them."""

    constants: tuple[Constant, ...]
    scales: Array
    errors: Array


def import_scipy(part: str) -> ModuleType:
    """A part of SciPy.

    Raises:
        InputError: SciPy is not installed.
    """
    try:
        return import_module(f"scipy.{part}")
    except ImportError:
        raise InputError("calibration needs SciPy: pip install 'tileproof[calibrate]'") from None


def identifiable(timing: Timing, constants: Sequence[Constant]) -> tuple[list[Constant], list[Refused]]:
    """Constants that the data can fit together, and those they cannot.

    A constant is refused when no measured number moves with it, or when its standard error at 3 % noise would pass half
    of its value given all the others; the worst one goes first.
    """
    kept, refused = list(constants), []
    jacobian = timing.jacobian(kept, np.ones(len(kept)))
    silent = [c for c, column in zip(kept, jacobian.T, strict=True) if np.abs(column).max(initial=0.0) < _INSENSITIVE]
    refused += [Refused(c, "no measured time depends on it") for c in silent]
    keep = [c not in silent for c in kept]
    kept, jacobian = [c for c in kept if c not in silent], jacobian[:, keep]
    while kept:
        errors = _standard_errors(jacobian, _NOISE)
        worst = int(np.argmax(errors))
        if errors[worst] <= _MOST_ERROR and len(kept) < len(jacobian):
            break
        refused.append(Refused(kept[worst], _confusion(kept, jacobian, worst, float(errors[worst]))))
        kept.pop(worst)
        jacobian = np.delete(jacobian, worst, axis=1)
    return kept, refused


def _standard_errors(jacobian: Array, noise: float) -> Array:
    """Standard errors of the scales at a noise; infinite along directions that the data do not see."""
    _, singular, directions = np.linalg.svd(jacobian, full_matrices=False)
    inverse = np.array([1 / s if s > 1e-9 else np.inf for s in singular])
    with np.errstate(invalid="ignore"):
        variance = np.nansum((directions.T * inverse) ** 2, axis=1)
    missing = jacobian.shape[1] - len(singular)
    return np.sqrt(variance) * noise if not missing else np.full(jacobian.shape[1], np.inf)


def unfounded(timing: Timing, fitted: Fit) -> Refused | None:
    """The constant that the fit shows to be the least identified, when it is not identified enough."""
    jacobian = timing.jacobian(fitted.constants, fitted.scales, fitted.errors)
    for one, scale, column in zip(fitted.constants, fitted.scales, jacobian.T, strict=True):
        reach = 1e-3 * (one.high - one.low)
        if one.high - scale < reach or (one.rate and one.field != "row_efficiency" and scale - one.low < reach):
            reason = f"the fit runs it to the edge of its range ({one.value(float(scale)):g})"
            return Refused(one, reason, at_edge=one.rate)
        if np.abs(column).max(initial=0.0) < _INSENSITIVE:
            return Refused(one, "at the fit no measured time depends on it")
    noise = max(_LEAST_NOISE, 1.4826 * float(np.median(np.abs(fitted.errors))))
    errors = _standard_errors(jacobian, noise) / np.maximum(1.0, fitted.scales)
    worst = int(np.argmax(errors))
    if errors[worst] <= _MOST_ERROR:
        return None
    return Refused(fitted.constants[worst], _confusion(fitted.constants, jacobian, worst, float(errors[worst])))


def _confusion(constants: Sequence[Constant], jacobian: Array, index: int, error: float) -> str:
    """Why a constant cannot be fitted: its weight is too small, or another one does the same."""
    column = jacobian[:, index]
    alone = _NOISE / float(np.linalg.norm(column))
    if alone > _MOST_ERROR or len(constants) == 1:
        return f"it moves the measured times too little: its error would be {100 * alone:.0f} %"
    others = [i for i in range(len(constants)) if i != index]
    cosines = [
        abs(float(column @ jacobian[:, i])) / float(np.linalg.norm(column) * np.linalg.norm(jacobian[:, i]))
        for i in others
    ]
    like = constants[others[int(np.argmax(cosines))]].name
    share = "without bound" if not np.isfinite(error) or error > 10 else f"{100 * error:.0f} %"
    return f"the data cannot tell it from {like} (likeness {max(cosines):.2f}): its error would be {share}"


def fit(timing: Timing, constants: Sequence[Constant], start: Array | None = None, rows: Mask | None = None) -> Fit:
    """Scales of least soft-L1 relative error over the quantities of the chosen ``rows`` (default all)."""
    use = np.ones(len(timing.measured), dtype=bool) if rows is None else rows
    begin = np.ones(len(constants)) if start is None else start
    low = np.array([c.low for c in constants])
    high = np.array([c.high for c in constants])
    last: dict[bytes, Array] = {}

    def errors(scales: Array) -> Array:
        last.clear()
        last[scales.tobytes()] = timing.at(constants, scales)
        found: Array = last[scales.tobytes()][use]
        return found

    def slopes(scales: Array) -> Array:
        found: Array = timing.jacobian(constants, scales, last.get(scales.tobytes()))[use]
        return found

    inside = np.clip(begin, low + 1e-6, high - 1e-6)
    result = import_scipy("optimize").least_squares(
        errors, inside, slopes, bounds=(low, high), loss="soft_l1", f_scale=_SOFT, xtol=1e-4, ftol=1e-5, max_nfev=20
    )
    return Fit(tuple(constants), result.x, timing.at(constants, result.x))


def held_out_errors(timing: Timing, fitted: Fit, folds: int, seed: int) -> Array:
    """Relative errors of the totals, each predicted from a fit on the other folds."""
    runs = np.array([q.run for q in timing.quantities])
    total = np.array([q.stage == "total" for q in timing.quantities])
    order = np.random.default_rng(seed).permutation(len(timing.runs))
    errors = np.full(len(timing.runs), np.nan)
    for fold in range(min(folds, len(timing.runs))):
        held = np.isin(runs, order[fold::folds])
        again = fit(timing, fitted.constants, fitted.scales, ~held)
        errors[runs[held & total]] = again.errors[held & total]
    return errors


def soft_weights(errors: Array) -> Array:
    """Weight of each error in the least squares that a soft-L1 fit amounts to at its end."""
    weights: Array = 1 / np.sqrt(1 + (errors / _SOFT) ** 2)
    return weights


def intervals(timing: Timing, fitted: Fit, draws: int, seed: int, shifts: Array) -> Array:
    """95 % intervals of the scales, one row (low, high) a constant.

    Bootstrap over runs with the model linearised at the fit, widened for the degrees of freedom that the fit used; no
    narrower than the interval of normal errors of the size of the residuals. ``shifts`` (a row for each scale) are
    moves by constants that are held; they are independent of the noise and of each other, so squares add.
    """
    least_squares, stats = import_scipy("optimize").least_squares, import_scipy("stats")
    jacobian = timing.jacobian(fitted.constants, fitted.scales, fitted.errors)
    low = np.array([c.low for c in fitted.constants])
    high = np.array([c.high for c in fitted.constants])
    runs = np.array([q.run for q in timing.quantities])
    count, size = len(timing.runs), len(fitted.constants)
    free = max(1, len(runs) - size)
    widen = np.sqrt(len(runs) / free) * stats.t.ppf(0.5 + _LEVEL / 2, free) / stats.norm.ppf(0.5 + _LEVEL / 2)
    rng = np.random.default_rng(seed)
    found = np.empty((draws, size))
    for draw in range(draws):
        times = np.bincount(rng.integers(0, count, count), minlength=count)[runs]
        # A soft-L1 sum with integer weights: every quantity as often as its run was drawn.
        index = np.repeat(np.arange(len(runs)), times)
        part, slope = fitted.errors[index], jacobian[index]

        def linear(step: Array, part: Array = part, slope: Array = slope) -> Array:
            return part + slope @ step

        def same(step: Array, slope: Array = slope) -> Array:
            return slope

        found[draw] = least_squares(linear, np.zeros(size), same, loss="soft_l1", f_scale=_SOFT, max_nfev=30).x
    tail = (1 - _LEVEL) / 2
    spread: Array = widen * np.quantile(found, [tail, 1 - tail], axis=0).T
    noise = float(np.sqrt(np.sum(np.minimum(np.abs(fitted.errors), 3 * _SOFT) ** 2) / free))
    half = stats.t.ppf(1 - tail, free) * _standard_errors(jacobian, noise)
    low_end, high_end = np.minimum(spread[:, 0], -half), np.maximum(spread[:, 1], half)
    held = np.sum(shifts**2, axis=1)
    ends = [-np.sqrt(low_end**2 + held), np.sqrt(high_end**2 + held)]
    bounds = fitted.scales[:, None] + np.stack(ends, axis=1)
    clipped: Array = np.clip(bounds, low[:, None], high[:, None])
    return clipped
