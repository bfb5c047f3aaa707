"""How far predictions are from measurements: heads, errors, ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ...hardware.measured import measured_sets
from .predict import Prediction

#: Pairs of runs closer than this are not asked for their order.
_APART = 0.02


@dataclass(frozen=True)
class Errors:
    """Errors of some runs, percent: mean of sizes, mean, largest (signed)."""

    mape: float
    bias: float
    worst: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> Errors:
        """From relative errors."""
        count = len(errors)
        return cls(
            100 * sum(map(abs, errors)) / count, 100 * sum(errors) / count, 100 * max(errors, key=lambda e: (abs(e), e))
        )


@dataclass(frozen=True)
class SetScore:
    """One set: errors with its own head, with that of its environment, with the spec's, and with each row held out."""

    name: str
    role: str
    tiling_known: bool
    environment: str
    predictions: tuple[Prediction, ...]
    head_us: float
    fitted: bool
    own: Errors
    shared: Errors
    fixed: Errors
    held_out_mape: float | None
    rank: float | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "n": len(self.predictions),
            "tiling_known": self.tiling_known,
            "mape_pct": round(self.own.mape, 3),
            "bias_pct": round(self.own.bias, 3),
            "worst_pct": round(self.own.worst, 3),
            "head_us": round(self.head_us, 4),
            "head_fitted": self.fitted,
            "role": self.role,
            "environment": self.environment,
            "mape_environment_head_pct": round(self.shared.mape, 3),
            "mape_fixed_head_pct": round(self.fixed.mape, 3),
            "mape_held_out_pct": None if self.held_out_mape is None else round(self.held_out_mape, 3),
            "spearman": None if self.rank is None else round(self.rank, 4),
        }


@dataclass(frozen=True)
class ShapeRank:
    """Several tilings of one shape: are they in the right order?"""

    label: str
    runs: int
    rank: float | None
    pairs_in_order: float
    pairs: int

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        rank = None if self.rank is None else round(self.rank, 4)
        return {
            "shape": self.label,
            "n": self.runs,
            "spearman": rank,
            "pairs_in_order": self.pairs_in_order,
            "pairs": self.pairs,
        }


def best_head(predictions: Sequence[Prediction]) -> float:
    """The launch head, not below 0, with the least sum of absolute relative errors (a weighted median)."""
    slack = sorted((p.row.latency_us - p.base_us, 1 / p.row.latency_us) for p in predictions)
    half = sum(weight for _, weight in slack) / 2
    passed = 0.0
    for head, weight in slack:
        passed += weight
        if passed >= half:
            return max(0.0, head)
    return 0.0


def score_sets(predictions: Iterable[Prediction]) -> list[SetScore]:
    """Scores of every set, in the order of the rows."""
    groups: dict[str, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        if not prediction.left_out:
            groups[prediction.row.set].append(prediction)
    heads = environment_heads(p for group in groups.values() for p in group)
    return [_score(name, group, heads) for name, group in groups.items()]


def environment_heads(predictions: Iterable[Prediction]) -> dict[str, float]:
    """One head for each environment, fitted on all its rows that count."""
    groups: dict[str, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        if not prediction.left_out and measured_sets().of(prediction.row.set).role == "check":
            groups[prediction.run.environment].append(prediction)
    return {name: best_head(group) for name, group in groups.items()}


def _score(name: str, group: Sequence[Prediction], heads: dict[str, float]) -> SetScore:
    fitted = len(group) > 1
    environment = group[0].run.environment
    # A head fitted on a single row would make its error nothing; such a row takes the head of the spec.
    head = best_head(group) if fitted else group[0].head_us
    held_out = None
    if fitted:
        rest = [[p for p in group if p is not one] for one in group]
        held_out = Errors.of([one.error(best_head(others)) for one, others in zip(group, rest, strict=True)]).mape
    shared = heads.get(environment, group[0].head_us)
    return SetScore(
        name=name,
        role=measured_sets().of(name).role,
        tiling_known=all(p.row.tiling_known for p in group),
        environment=environment,
        predictions=tuple(group),
        head_us=head,
        fitted=fitted,
        own=Errors.of([p.error(head) for p in group]),
        shared=Errors.of([p.error(shared) for p in group]),
        fixed=Errors.of([p.error() for p in group]),
        held_out_mape=held_out,
        rank=spearman([p.row.latency_us for p in group], [p.base_us for p in group]),
    )


def score_shapes(predictions: Iterable[Prediction]) -> list[ShapeRank]:
    """Shapes that were measured with more than one tiling: order of the tilings, heads of the spec."""
    groups: dict[tuple[object, ...], list[Prediction]] = defaultdict(list)
    for p in predictions:
        if not p.left_out and p.row.tiling_known and p.run.case is not None and p.run.spec is not None:
            case = p.run.case
            groups[(p.run.spec.name, case.batch, case.m, case.n, case.k, case.dtype)].append(p)
    result = []
    for (chip, *sizes, dtype), group in groups.items():
        if len({p.base_us for p in group}) < 2:
            continue
        measured = [p.row.latency_us for p in group]
        predicted = [p.base_us + p.head_us for p in group]
        right, pairs = _ordered(measured, predicted)
        label = f"{'x'.join(map(str, sizes))} {dtype} {chip}"
        result.append(ShapeRank(label, len(group), spearman(measured, predicted), right, pairs))
    return result


def _ordered(measured: Sequence[float], predicted: Sequence[float]) -> tuple[float, int]:
    """Pairs in the right order (a tie counts half) of those that were measured apart."""
    right, pairs = 0.0, 0
    for i, j in combinations(range(len(measured)), 2):
        if abs(measured[i] - measured[j]) > _APART * min(measured[i], measured[j]):
            pairs += 1
            product = (measured[i] - measured[j]) * (predicted[i] - predicted[j])
            right += 1.0 if product > 0 else 0.5 if product == 0 else 0.0
    return right, pairs


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Rank correlation, ties at their mean rank; ``None`` below three values or when all are equal."""
    if len(left) < 3:
        return None
    x, y = _ranks(left), _ranks(right)
    mean = (len(left) + 1) / 2
    spread_x = sum((a - mean) ** 2 for a in x)
    spread_y = sum((b - mean) ** 2 for b in y)
    if not spread_x or not spread_y:
        return None
    both = sum((a - mean) * (b - mean) for a, b in zip(x, y, strict=True))
    return float(both / (spread_x * spread_y) ** 0.5)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]
