"""A calibration from measured rows to a chip file: what was fitted, how well, and what was refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ...hardware import NpuSpec
from ...hardware.errors import InputError
from ...hardware.measured import Measurement, measured_sets
from ...models.context import Environment
from .constants import Constant, chosen_constants, rounded, spec_at, usual_constants
from .fit import Fit, Refused, fit, held_out_errors, identifiable, import_scipy, intervals, unfounded
from .partners import Partner, partners_of, shifts
from .predict import Run, predict, prepare, with_plan
from .timing import Array, Timing

#: Measured over predicted time from which only the unit can be wrong; measured runs stay within a factor of ten.
_OTHER_UNIT = 100
#: Mean error on held-out runs from which a calibration is doubted, and from which it is refused.
DOUBTFUL = 0.20
HOPELESS = 0.40
#: Partners whose doubt moves a constant by less than this share of its interval are not named.
_NAMED = 0.10


@dataclass(frozen=True)
class FitOptions:
    """How to calibrate: constants to fit (none: the usual ones), folds, bootstrap draws, seed."""

    names: tuple[str, ...] = ()
    folds: int = 5
    draws: int = 200
    seed: int = 0


@dataclass(frozen=True)
class Fitted:
    """One fitted constant with its 95 % interval, and the held constants whose own doubt counts in it."""

    constant: Constant
    value: Fraction
    low: float
    high: float
    partners: tuple[Partner, ...] = ()

    @property
    def half_width(self) -> float:
        """Half of the interval over the value."""
        return (self.high - self.low) / 2 / max(float(self.value), 1e-12)


@dataclass(frozen=True)
class Calibration:
    """Result of a calibration; errors are relative, of the total times."""

    base: NpuSpec
    spec: NpuSpec
    source: str
    rows: int
    assumed: int
    fitted: tuple[Fitted, ...]
    refused: tuple[Refused, ...]
    before: float
    in_sample: float
    held_out: float | None
    pipes: dict[str, tuple[int, float, float]]
    left_out: tuple[str, ...]
    at_edge: tuple[Refused, ...] = ()

    @property
    def error(self) -> float:
        """What the calibration is judged by: the error on held-out runs, or the one in sample when none were."""
        return self.in_sample if self.held_out is None else self.held_out

    @property
    def helps(self) -> bool:
        """Whether the fitted constants predict held-out runs better than the chip as it was."""
        return self.error < self.before

    @property
    def refusal(self) -> str | None:
        """Why no chip may be made of it; ``None`` when one may."""
        if self.at_edge:
            names = ", ".join(one.constant.name for one in self.at_edge)
            return (
                f"{names}: {self.at_edge[0].reason}, so the runs are not what the model describes; look at the runs "
                "and their tilings, or leave the constant out of --fit"
            )
        if self.error >= HOPELESS:
            return f"{self._judged} are predicted with {100 * self.error:.1f} % error, {100 * HOPELESS:g} % or more"
        return None

    @property
    def warnings(self) -> list[str]:
        """What to doubt about a chip made of it."""
        found = []
        if self.error >= DOUBTFUL:
            found.append(
                f"{self._judged} are predicted with {100 * self.error:.1f} % error, {100 * DOUBTFUL:g} % or more; do "
                "not trust the chip before the worst runs are understood"
            )
        if not self.helps:
            found.append(f"{self._judged} are not predicted better than before; the chip as it was is the better one")
        return found

    @property
    def _judged(self) -> str:
        return "the runs" if self.held_out is None else "runs held out"

    def to_json(self) -> dict[str, Any]:
        """Plain data as ``--json`` prints it; ``constants`` are what ``solve --robust --intervals`` reads."""
        return {
            "base": self.base.name,
            "chip": self.spec.name,
            "refused": self.refusal,
            "warnings": self.warnings,
            "source": self.source,
            "rows": self.rows,
            "rows_with_assumed_tiling": self.assumed,
            "constants": {
                one.constant.name: {
                    "field": one.constant.field,
                    "key": one.constant.key or None,
                    "own": one.constant.own,
                    "value": float(one.value),
                    "low": one.low,
                    "high": one.high,
                    "held": {p.constant.name: p.half_width for p in one.partners},
                }
                for one in self.fitted
            },
            "not_fitted": {one.constant.name: one.reason for one in self.refused},
            "mape_before_pct": round(100 * self.before, 3),
            "mape_in_sample_pct": round(100 * self.in_sample, 3),
            "mape_held_out_pct": None if self.held_out is None else round(100 * self.held_out, 3),
            "helps": self.helps,
            "pipes": {
                name: {"n": n, "mape_before_pct": round(100 * a, 3), "mape_pct": round(100 * b, 3)}
                for name, (n, a, b) in self.pipes.items()
            },
            "left_out": list(self.left_out),
        }


def calibrate(
    rows: Sequence[Measurement],
    hardware: NpuSpec,
    settings: FitOptions,
    *,
    name: str | None = None,
    environment: Environment | None = None,
    progress: Callable[[int, str], None] | None = None,
) -> Calibration:
    """Fit constants of ``hardware`` to measured rows.

    Raises:
        InputError: a row cannot be read, no row can be used, or the rows identify none of the constants.
    """
    import_scipy("optimize")  # before the work
    tell = progress or (lambda done, what: None)
    runs, left_out, assumed = _whole_runs(rows, hardware, environment, lambda done: tell(done, "plans"))
    source = rows[0].file
    if not runs:
        reasons = f": {left_out[0]}" if left_out else ""
        raise InputError(f"no row can be used{reasons}", file=source)
    timing = Timing(runs, hardware)
    start = timing.at((), np.ones(0))
    _same_unit(timing, start)
    environments = [run.environment for run in runs]
    wanted = (
        chosen_constants(hardware, settings.names, environments)
        if settings.names
        else usual_constants(hardware, environments)
    )
    tell(len(rows), "what the rows identify")
    kept, refused = identifiable(timing, wanted)
    fitted, at_edge = _fit_what_holds(timing, kept, refused, source, lambda what: tell(len(rows), what))
    tell(len(rows), "held-out error")
    held_out = None
    if settings.folds > 1 and len(runs) > 2:
        held_out = float(np.nanmean(np.abs(held_out_errors(timing, fitted, settings.folds, settings.seed))))
    tell(len(rows), "intervals")
    partners = partners_of(hardware, fitted.constants, [one.constant for one in refused], environments)
    moves = shifts(timing, fitted, partners)
    spans = intervals(timing, fitted, settings.draws, settings.seed, moves)
    found = tuple(
        _fitted(one, x, span, [p for p, step in zip(partners, move, strict=True) if _is_named(step, span)])
        for one, x, span, move in zip(fitted.constants, fitted.scales, spans, moves, strict=True)
    )
    spec = spec_at(hardware, {one.constant: float(one.value) for one in found})
    title = name or f"{hardware.name}_calibrated"
    text = f"{hardware.name} calibrated with {len(runs)} runs of {Path(source).name}"
    spec = spec.replace(name=title, description=text)
    total = np.array([q.stage == "total" for q in timing.quantities])
    return Calibration(
        base=hardware,
        spec=spec,
        source=source,
        rows=len(runs),
        assumed=assumed,
        fitted=found,
        refused=tuple(refused),
        before=float(np.abs(start[total]).mean()),
        in_sample=float(np.abs(fitted.errors[total]).mean()),
        held_out=held_out,
        pipes=_pipes(timing, start, fitted),
        left_out=tuple(left_out),
        at_edge=at_edge,
    )


def _same_unit(timing: Timing, errors: Array) -> None:
    """No run is so far from the model that only its unit can be wrong.

    Raises:
        InputError: one is; the message names its row and both times.
    """
    for quantity, error in zip(timing.quantities, errors, strict=True):
        if quantity.stage != "total" or 1 / _OTHER_UNIT < 1 + error < _OTHER_UNIT:
            continue
        row = timing.runs[quantity.run].row
        predicted = (1 + float(error)) * quantity.measured
        raise InputError(
            f"{row.label} took {quantity.measured:g} us, the model says {predicted:.3g}; is the time in another unit? "
            "Allowed are us, in an export the unit in the column's name",
            file=row.file,
            row=row.row,
        )


def _fit_what_holds(
    timing: Timing, kept: list[Constant], refused: list[Refused], source: str, tell: Callable[[str], None]
) -> tuple[Fit, tuple[Refused, ...]]:
    """Fit, and fit again without a constant that turns out not to be identified; ``refused`` grows by those.

    A rate that runs to the edge of its range ends it: no other constant may take over what the rate could not explain.

    Raises:
        InputError: none is left.
    """
    while kept:
        tell(f"fit of {', '.join(one.name for one in kept)}")
        fitted = fit(timing, kept)
        weak = unfounded(timing, fitted)
        if weak is None or weak.at_edge:
            return fitted, () if weak is None else (weak,)
        refused.append(weak)
        kept = [one for one in kept if one != weak.constant]
    why = "; ".join(f"{one.constant.name}: {one.reason}" for one in refused)
    raise InputError(f"the rows identify none of the constants ({why})", file=source)


def _whole_runs(
    rows: Sequence[Measurement], hardware: NpuSpec, environment: Environment | None, progress: Callable[[int], None]
) -> tuple[list[Run], list[str], int]:
    """Runs with whole plans; an open tiling is closed once, with the chip's constants as they are."""
    runs, left_out, assumed = [], [], 0
    for done, row in enumerate(rows):
        progress(done)
        if measured_sets().of(row.set).role == "stress":
            left_out.append(f"row {row.row}, {row.label}: its set is outside of what the model describes")
            continue
        own = prepare(row, environment=environment)
        if own.spec is not None and row.chip and own.spec.aic_cores != hardware.aic_cores:
            left_out.append(f"row {row.row}, {row.label}: measured on {row.chip}, not on {hardware.name}")
            continue
        prediction = predict(prepare(row, hardware, environment))
        if prediction.left_out:
            left_out.append(f"row {row.row}, {row.label}: {prediction.left_out}")
            continue
        assumed += not row.tiling_known
        runs.append(with_plan(prediction))
    return runs, left_out, assumed


def _is_named(step: float, span: Array) -> bool:
    """Whether a partner's move of a scale is a part of its interval that counts."""
    half = float(span[1] - span[0]) / 2
    return half > 0 and abs(step) >= _NAMED * half


def _fitted(one: Constant, scale: float, span: Array, partners: Sequence[Partner]) -> Fitted:
    ends = sorted((one.value(float(span[0])), one.value(float(span[1]))))
    low, high = (float(f"{end:.6g}") for end in ends)
    return Fitted(one, rounded(one.value(float(scale))), low, high, tuple(partners))


def _pipes(timing: Timing, start: Array, fitted: Fit) -> dict[str, tuple[int, float, float]]:
    """Counters of each pipe: how many, and their mean error before and after."""
    result = {}
    for stage in ("mmad", "mte1", "mte2", "fixpipe"):
        index = [i for i, q in enumerate(timing.quantities) if q.stage == stage]
        if index:
            result[stage] = (
                len(index),
                fmean(abs(float(start[i])) for i in index),
                fmean(abs(float(fitted.errors[i])) for i in index),
            )
    return result
