"""Constants that are held while others are fitted, and how far their own doubt moves what is fitted.

A fixed cost and a rate of one pipe do nearly the same to a measured time. When the runs identify only one of them, the
other stands at the chip's value, which is itself uncertain; the interval of the fitted one has to hold that too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...hardware import NpuSpec
from .constants import Constant, all_constants, constant
from .fit import Fit, soft_weights
from .spans import WIDTHS
from .timing import Array, Timing


@dataclass(frozen=True)
class Partner:
    """A constant held at the chip's value, and the half-width of its doubt as a share of that value."""

    constant: Constant
    half_width: float


def partners_of(
    spec: NpuSpec, fitted: Iterable[Constant], refused: Iterable[Constant], environments: Iterable[str]
) -> list[Partner]:
    """Every constant that is not fitted, with its doubt.

    One that nobody asked for is as well known as its confidence mark says. One that was to be fitted, and ``refused``,
    is in question: its value on this chip is a guess.
    """
    done, asked = {one.name for one in fitted}, {one.name for one in refused}
    heads = [constant(spec, f"head_{name}") for name in dict.fromkeys(environments)]
    return [
        Partner(one, WIDTHS.get(None if one.name in asked else spec.provenance[one.field].confidence, WIDTHS[None]))
        for one in (*heads, *all_constants(spec))
        if one.name not in done
    ]


def shifts(timing: Timing, fitted: Fit, partners: list[Partner]) -> Array:
    """How far each fitted scale (row) moves when a partner (column) moves by its half-width.

    First order: the step of the fitted scales that best undoes, in the weighted least squares of the fit, what the
    partner does to the errors.
    """
    both = (*fitted.constants, *(one.constant for one in partners))
    scales = np.concatenate([fitted.scales, np.ones(len(partners))])
    jacobian = timing.jacobian(both, scales) * np.sqrt(soft_weights(fitted.errors))[:, None]
    own, other = jacobian[:, : len(fitted.constants)], jacobian[:, len(fitted.constants) :]
    steps, *_ = np.linalg.lstsq(own, -other * np.array([one.half_width for one in partners]), rcond=None)
    found: Array = steps
    return found
