"""Remarks for people, on stderr."""

from __future__ import annotations

import sys


def say_note(sentence: str) -> None:
    """One line ``note: ...`` on stderr."""
    print(f"note: {sentence}", file=sys.stderr, flush=True)
