"""JSON and C text of ``TCubeTiling``: what is read, and where a wrong text is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tileproof.hardware import InputError
from tileproof.solver.tcube import read_tcube_items, read_tcube_text


def values(text: str) -> list[dict[str, int]]:
    """The given fields of every struct."""
    return [tiling.values() for tiling in read_tcube_text(text)]


@pytest.mark.parametrize(
    "text",
    [
        "{ .baseM = 128, .M = 1024 }",
        "TCubeTiling tiling = {.baseM = 128, .M = 0x400,};",
        "optiling::TCubeTiling tiling{ .M = 1024, .baseM = 128 };",
        "static const AscendC::TCubeTiling t = {\n  .M = 1024u, // rows\n  .baseM = 0x80 /* columns,\n of L0 */ ,\n};",
        "tiling.M = 1024;\ntiling.baseM = 128;",
        "TCubeTiling tiling;\ntiling->M = 1024; tiling->baseM = 64; tiling->baseM = 128; // the last one counts",
        "tilingData.cubeTilingData.set_M(1024);\ntilingData.cubeTilingData.set_baseM(128L);",
        "TCubeTiling t = {.M = 1};\nt.M = 1024;\nt.set_baseM(+128);",
        "#include <kernel_tiling/kernel_tiling.h>\n.M = 1024,\n.baseM = 128,",
        '{"M": 1024, "baseM": 128}',
        '\ufeff [{"baseM": 128, "M": 1024}]\n',
    ],
)
def test_forms_that_are_read(text: str) -> None:
    assert values(text) == [{"M": 1024, "baseM": 128}]


def test_several_structs() -> None:
    assert values("a.M = 1; b.M = 2; a.N = 3;") == [{"M": 1, "N": 3}, {"M": 2}]
    assert values("TCubeTiling t = {.M = 1}; t.N = 5; TCubeTiling t = {.M = 2};") == [{"M": 1, "N": 5}, {"M": 2}]
    assert values("{ .M = 1 }, { .M = 2 }") == [{"M": 1}, {"M": 2}]
    assert values('[{"M": 1}, {"M": 2}]') == [{"M": 1}, {"M": 2}]
    assert [(i.name, i.line) for i in read_tcube_items("a.M = 1;\n\nb.M = 2;")] == [("a", 1), ("b", 3)]


def test_booleans_and_signs() -> None:
    assert values("{ .isBias = true, .M = -1, .N = 0 }") == [{"M": -1, "N": 0, "isBias": 1}]


@pytest.mark.parametrize(
    ("text", "row", "column", "part"),
    [
        ("", 1, "1", "is empty"),
        (" \n ", 1, "1", "is empty"),
        # JSON
        ('{"M": 1,\n "baseM": }', 2, "11", "is no JSON"),
        ('{"M": 1,\n "baseM": 1.5}', 2, "baseM", "is 1.5, but must be a whole number"),
        ('{"M": 1,\n "baseM": "128"}', 2, "baseM", "whole number"),
        ('{"M": true}', 1, "M", "whole number"),
        ('{"M": null}', 1, "M", "whole number"),
        ('{"M": NaN}', 1, "M", "whole number"),
        ('{"M": 1,\n"N": 2147483648}', 2, "N", "int32"),
        ('{\n"base_m": 1}', 2, "base_m", "is no field of TCubeTiling; did you mean 'baseM'?"),
        ('{\n"basem": 1}', 2, "basem", "did you mean 'baseM'?"),
        ('{"M": 1,\n "M": 2}', 2, "2", "'M' is there more than once"),
        ('{"M": 1} x', 1, "10", "behind the end"),
        ("[]", 1, "2", "empty"),
        ('[{"M": 1} {"M": 2}]', 1, "11", "expected ','"),
        ('[{"M": 1}, 5]', 1, "12", "is no JSON object"),
        ('[{"M": 1}, {"M": 2}, {"Q": 3}]', 1, "Q", "is no field"),
        ('{"M": 1, "tileproof": 5}', 1, "tileproof", "dictionary"),
        (
            '{"M": 1,\n"tileproof": {"case": {"m": -1, "n": 1, "k": 1}, "plan": {}}}',
            2,
            "tileproof.case.m",
            "out of range",
        ),
        ('{"M": 1', 1, "8", "is no JSON"),
        # C
        ("{ .M = 1, .baseM = }", 1, "20", "expected a whole number, decimal or 0x hexadecimal, found '}'"),
        ("{ .M = 1,\n .basM = 2 }", 2, "basM", "did you mean 'baseM'?"),
        ("{ .M = 1,\n .M = 2 }", 2, "3", "M is there more than once"),
        ("{ .M = 1.5 }", 1, "8", "whole number"),
        ("{ .M = 010 }", 1, "8", "whole number"),
        ("{ .M = 0x }", 1, "8", "whole number"),
        ("{ .M = 4 * 32 }", 1, "10", "expected ',' or '}', found '*'"),
        ("{ .M = baseM }", 1, "8", "whole number"),
        ("TCubeTiling t = { 32, 1024 };", 1, "19", "by position"),
        ("{ .M = 4294967296 }", 1, "M", "int32"),
        ("t.baseM = 128", 1, "14", "expected ';', found the end of the text"),
        ("t.set_baseM(128;", 1, "16", "expected ')', found ';'"),
        ("t.baseM(128);", 1, "3", "expected a setter like set_baseM"),
        ("t.set_baseQ(128);", 1, "baseQ", "did you mean 'baseN'?"),
        ("int x = 5;", 1, "5", "an assignment like tiling.baseM = 128;"),
        ("{ .M = 1 /* open", 1, "10", "a comment that does not end"),
        ("{ .M = 1 @ }", 1, "10", "'@' is not understood"),
        ("{ .M = 1", 1, "9", "found the end of the text"),
        ("TCubeTiling t;", 1, "1", "there is no field of TCubeTiling"),
        ("// tileproof: {oops\nt.M = 1;", 1, "1", "the JSON behind tileproof:"),
        ('// tileproof: {"plan": {}}\nt.M = 1;', 1, "tileproof.case", "required"),
        ("garbage", 1, "8", "expected"),
    ],
)
def test_where_a_text_is_wrong(text: str, row: int, column: str, part: str) -> None:
    with pytest.raises(InputError) as caught:
        read_tcube_text(text, file="tiling.txt")
    error = caught.value
    assert part in error.message
    assert (error.file, error.row, error.column) == ("tiling.txt", row, column)


def test_a_bad_struct_leaves_the_others_alone() -> None:
    for text in ('[{"M": 1}, {"Q": 1}, {"M": 3}]', "a.M = 1; b.Q = 1; c.M = 3;"):
        items = read_tcube_items(text, file="t")
        assert [item.tiling.values() if item.tiling else None for item in items] == [{"M": 1}, None, {"M": 3}]
        assert items[1].error is not None
        assert str(items[1].error) == "t, row 1, column Q: is no field of TCubeTiling"


PIECES = st.sampled_from(
    ["{", "}", "[", "]", ".", ",", ";", "=", "(", ")", "M", "baseM", "set_M", "t", "1", "0x10", '"M"', ":", "//", "/*",
     "*/", "\n", " ", "tileproof:", "-", "->", "::", "#", "'", "\\", "é", "TCubeTiling", "9" * 5000, "null", "1e5"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    refused: InputError | None = None
    try:
        read_tcube_text(text)
    except InputError as error:
        refused = error
    assert refused is None or (refused.row is not None and refused.column is not None)


def test_deep_nesting_is_refused() -> None:
    for text in ("[" * 100_000, '{"a":' * 100_000, "// tileproof: " + "[" * 100_000 + "\nt.M = 1;", "{" * 100_000):
        with pytest.raises(InputError):
            read_tcube_text(text)
