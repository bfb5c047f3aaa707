"""Predicted against measured times as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...hardware.errors import InputError
from .validation import Validation

_SUFFIXES: Final = (".png", ".svg")


def check_picture(path: Path) -> None:
    """See before the work that the picture can be drawn.

    Raises:
        InputError: the suffix is none of .png and .svg, the folder does not exist, or matplotlib is missing.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise InputError(f"--plot: {path.name!r} must end in .png or .svg")
    if not path.resolve().parent.is_dir():
        raise InputError(f"--plot: there is no folder {path.resolve().parent}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError("--plot needs matplotlib: pip install 'tileproof[calibrate]'") from None


def draw(validation: Validation, path: Path) -> None:
    """Draw every run, one colour a set, with the line of equality and 10 % to both sides."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    markers = "osD^v<>PX*hp"
    times = [1.0]
    for index, score in enumerate(validation.sets):
        measured = [p.row.latency_us for p in score.predictions]
        predicted = [p.base_us + score.head_us for p in score.predictions]
        times += measured + predicted
        rows = "1 row" if len(measured) == 1 else f"{len(measured)} rows"
        label = f"{score.name} ({rows}, {score.own.mape:.1f} %)"
        axes.plot(measured, predicted, markers[index % len(markers)], color=f"C{index % 10}", label=label, alpha=0.8)
    ends = [min(times) / 1.5, max(times) * 1.5]
    axes.plot(ends, ends, color="black", linewidth=1)
    for share in (0.9, 1.1):
        axes.plot(ends, [share * end for end in ends], color="grey", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    axes.set(xlabel="measured, us", ylabel="predicted with the head of the set, us", title="Model against measurement")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=120)
