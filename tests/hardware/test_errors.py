"""The exception family: messages, places, sending between processes."""

from __future__ import annotations

import pickle

import pytest

from tileproof.hardware import InputError, InternalError, SpecError, TileproofError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InputError("is -1, but must be positive"), "is -1, but must be positive"),
        (InputError("is -1", file="cases.csv", row=3, column="m"), "cases.csv, row 3, column m: is -1"),
        (InputError("is -1", row=0), "row 0: is -1"),
        (InputError("is empty", file="cases.csv"), "cases.csv: is empty"),
        (
            SpecError("is 0", file="c.ini", section="SoCInfo", key="l2_size"),
            "c.ini, section SoCInfo, key l2_size: is 0",
        ),
        (SpecError("is 0", key="l2_bytes"), "key l2_bytes: is 0"),
        (InternalError("solver 7, checker 8"), "internal error: solver 7, checker 8"),
        (InternalError("a", report_path="r.json"), "internal error: a (report: r.json)"),
    ],
)
def test_text_and_pickle(error: TileproofError, text: str) -> None:
    assert str(error) == text
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == text
    assert vars(again) == vars(error)


def test_family() -> None:
    assert issubclass(SpecError, InputError)
    assert issubclass(InputError, TileproofError)
    assert issubclass(InternalError, TileproofError)
    assert not issubclass(InternalError, InputError)
    assert InternalError("a").report_path is None
