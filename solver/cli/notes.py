"""Remarks for people, on stderr."""

from __future__ import annotations

import sys


def say_note(sentence: str) -> None:
    """One line ``note: ...`` on stderr."""
    print(f"note: {sentence}", file=sys.stderr, flush=True)


class KeptNotes:
    """Says each note, and keeps it for a JSON document."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def __call__(self, sentence: str) -> None:
        """Say and keep a note."""
        say_note(sentence)
        self.sentences.append(sentence)
