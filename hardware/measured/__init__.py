"""Public measurements of the chip, carried as facts: times, tiles, sources, and what is assumed about each set.

``measurements()`` are the rows of ``ascend950.csv``, ``measured_sets()`` the facts of ``sets.toml``;
``read_measurements`` reads a file of the same columns.
"""

from .reader import COLUMNS, COUNTERS, Measurement, measurements, read_measurements
from .sets import MeasuredSet, MeasuredSets, SetRows, measured_sets

__all__ = [
    "COLUMNS",
    "COUNTERS",
    "MeasuredSet",
    "MeasuredSets",
    "Measurement",
    "SetRows",
    "measured_sets",
    "measurements",
    "read_measurements",
]
