"""The validation report: every set of measurements against the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

from ...hardware.measured import Measurement, measured_sets
from .predict import Prediction, predict, prepare
from .scores import SetScore, ShapeRank, environment_heads, score_sets, score_shapes
from .shipped_heads import ShippedHead, shipped_heads


@dataclass(frozen=True)
class Validation:
    """All predictions with their scores; ``shipped`` scores sets of your own with the heads of the shipped runs."""

    predictions: tuple[Prediction, ...]
    sets: tuple[SetScore, ...]
    shapes: tuple[ShapeRank, ...]
    heads: dict[str, float]
    shipped: dict[str, ShippedHead] = field(default_factory=dict)

    @property
    def left_out(self) -> list[Prediction]:
        """Rows without a prediction."""
        return [p for p in self.predictions if p.left_out]

    def headline(self, *, tiling_known: bool, head: str = "own") -> float | None:
        """Mean of the MAPEs of the sets that count, percent; ``head`` is own, shared or fixed."""
        counted = [s for s in self.sets if s.role == "check" and s.tiling_known == tiling_known]
        return fmean(getattr(s, head).mape for s in counted) if counted else None

    def shipped_headline(self, *, tiling_known: bool) -> float | None:
        """Mean of the MAPEs of the sets that count, percent, with the heads of the shipped runs."""
        counted = [s.name for s in self.sets if s.role == "check" and s.tiling_known == tiling_known]
        found = [self.shipped[name].errors.mape for name in counted if name in self.shipped]
        return fmean(found) if found and len(found) == len(counted) else None

    def to_json(self) -> dict[str, Any]:
        """Plain data as ``--json`` prints it."""
        document: dict[str, Any] = {"sets": {score.name: score.to_json() for score in self.sets}}
        for name, shipped in self.shipped.items():
            document["sets"][name] |= {
                "shipped_head_us": round(shipped.head_us, 4),
                "mape_shipped_head_pct": _rounded(shipped.errors.mape),
                "bias_shipped_head_pct": _rounded(shipped.errors.bias),
                "worst_shipped_head_pct": _rounded(shipped.errors.worst),
            }
        for name, known in (("known", True), ("best", False)):
            document[f"mape_{name}_pct"] = _rounded(self.headline(tiling_known=known))
            document[f"mape_{name}_environment_head_pct"] = _rounded(self.headline(tiling_known=known, head="shared"))
            document[f"mape_{name}_fixed_head_pct"] = _rounded(self.headline(tiling_known=known, head="fixed"))
            if self.shipped:
                document[f"mape_{name}_shipped_head_pct"] = _rounded(self.shipped_headline(tiling_known=known))
        document["environment_heads_us"] = {name: round(head, 4) for name, head in self.heads.items()}
        document["tilings_of_one_shape"] = [shape.to_json() for shape in self.shapes]
        document["rows"] = [_row(p, score) for score in self.sets for p in score.predictions]
        document["left_out"] = [
            {"set": p.row.set, "row": p.row.row, "run": p.row.label, "reason": p.left_out} for p in self.left_out
        ]
        return document


def _row(prediction: Prediction, score: SetScore) -> dict[str, Any]:
    run = prediction.row
    assert prediction.evaluation is not None
    return {
        "set": run.set,
        "row": run.row,
        "run": run.label,
        "op": run.op,
        "measured_us": run.latency_us,
        "predicted_us": round(prediction.base_us + score.head_us, 4),
        "error_pct": round(100 * prediction.error(score.head_us), 3),
        "bottleneck": prediction.evaluation.bottleneck,
        "plan": prediction.evaluation.plan.model_dump(exclude_none=True),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def validate(
    rows: Sequence[Measurement],
    *,
    hardware: str | None = None,
    with_shipped_heads: bool = False,
    time_limit: float = 60.0,
    progress: Callable[[int, str], None] | None = None,
) -> Validation:
    """Predict every row and score the sets.

    ``hardware`` holds instead of the chip that a row names; ``with_shipped_heads`` scores with heads of other runs too.

    Raises:
        InputError: a cell of a row cannot be read.
    """
    runs = [prepare(row, hardware) for row in rows]
    found = []
    for done, run in enumerate(runs):
        if progress is not None:
            progress(done, run.row.label)
        found.append(predict(run, time_limit=time_limit))
    scores = score_sets(found)
    tell = None if progress is None else partial(progress, len(runs))
    shipped = shipped_heads(scores, time_limit=time_limit, progress=tell) if with_shipped_heads else {}
    return Validation(tuple(found), tuple(scores), tuple(score_shapes(found)), environment_heads(found), shipped)


def markdown(validation: Validation) -> str:
    """The tables of ``docs/validation.md``."""
    lines = [
        "| set | rows | tile | role | environment | head us | MAPE % | bias % | worst % | held out % | one head per "
        "environment % | fixed head % | rank |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for score in validation.sets:
        head = f"{score.head_us:.2f}" if score.fitted else f"{score.head_us:g} (spec)"
        cells = [
            score.name, str(len(score.predictions)), "known" if score.tiling_known else "best", score.role,
            score.environment, head, f"{score.own.mape:.1f}", f"{score.own.bias:+.1f}", f"{score.own.worst:+.1f}",
            "" if score.held_out_mape is None else f"{score.held_out_mape:.1f}", f"{score.shared.mape:.1f}",
            f"{score.fixed.mape:.1f}", "" if score.rank is None else f"{score.rank:.2f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| mean of the sets that count | head of the set | one head per environment | fixed head |"]
    lines.append("|---|---|---|---|")
    for known, name in ((True, "tile known"), (False, "best tile")):
        means = [validation.headline(tiling_known=known, head=head) for head in ("own", "shared", "fixed")]
        lines.append(f"| {name} | {' | '.join('' if m is None else f'{m:.1f} %' for m in means)} |")
    if validation.shipped:
        lines += ["", "| set | head of the shipped runs us | MAPE % | bias % | worst % |", "|---|---|---|---|---|"]
        for name, shipped in validation.shipped.items():
            errors = shipped.errors
            lines.append(
                f"| {name} | {shipped.head_us:.2f} | {errors.mape:.1f} | {errors.bias:+.1f} | {errors.worst:+.1f} |"
            )
    heads = ", ".join(f"{name} {head:.2f} us" for name, head in validation.heads.items())
    lines += ["", f"Heads fitted for each environment: {heads}.", ""]
    lines += ["| tilings of one shape | runs | pairs in order | rank |", "|---|---|---|---|"]
    for shape in validation.shapes:
        rank = "" if shape.rank is None else f"{shape.rank:.2f}"
        lines.append(f"| {shape.label} | {shape.runs} | {shape.pairs_in_order:g} of {shape.pairs} | {rank} |")
    lines += ["", "| set | what is assumed |", "|---|---|"]
    lines += [f"| {score.name} | {measured_sets().of(score.name).assumption} |" for score in validation.sets]
    if validation.left_out:
        lines += ["", "| left out | rows | reason |", "|---|---|---|"]
        reasons: dict[tuple[str, str], int] = {}
        for p in validation.left_out:
            reasons[p.row.set, p.left_out] = reasons.get((p.row.set, p.left_out), 0) + 1
        lines += [f"| {name} | {count} | {reason} |" for (name, reason), count in reasons.items()]
    return "\n".join(lines) + "\n"
