"""Errors of the solving side."""

from ...hardware.errors import TileproofError


class RowOverflow(TileproofError):
    """A model would leave the number range in which OR-Tools is sound; the branch stays unproven."""


class TooHard(TileproofError):
    """An explanation is not proven within its deterministic time."""
