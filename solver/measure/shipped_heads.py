"""Runs of your own, scored with the launch heads of the measurements that come with the package.

A head that is fitted on the rows it is judged by flatters them. The heads here come from other runs of the same
environment, so that the errors are out of sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...hardware.measured import measured_sets, measurements
from .predict import predict, prepare
from .scores import Errors, SetScore, environment_heads


@dataclass(frozen=True)
class ShippedHead:
    """The head (us) of the shipped runs of an environment, and the errors of a set with it."""

    head_us: float
    errors: Errors


def shipped_heads(
    sets: Sequence[SetScore], *, time_limit: float = 60.0, progress: Callable[[str], None] | None = None
) -> dict[str, ShippedHead]:
    """Scores by set name. A shipped set of the same name does not count for its own head.

    A set is missing when no shipped run of its environment counts. The shipped runs are predicted on their own chips.
    """
    environments = {score.environment for score in sets}
    facts = measured_sets()
    rows = [
        row
        for row in measurements()
        if facts.of(row.set).role == "check" and facts.of(row.set).environment in environments
    ]
    shipped = []
    for row in rows:
        if progress is not None:
            progress(f"shipped {row.label}")
        shipped.append(predict(prepare(row), time_limit=time_limit))
    found = {}
    for score in sets:
        heads = environment_heads(p for p in shipped if p.row.set != score.name)
        if score.environment in heads:
            head = heads[score.environment]
            found[score.name] = ShippedHead(head, Errors.of([p.error(head) for p in score.predictions]))
    return found
