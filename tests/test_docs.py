"""The documents are true where a machine can tell: paths and links lead somewhere, every test has its line in the map."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [document.relative_to(ROOT).as_posix() for document in DOCUMENTS]

_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
#: What a path of the repository looks like: it begins with a folder of the top, or is a file that lies there.
_TOP = r"(?:hardware|models|solver|tests|docs|examples|\.ci|\.github)/[\w./*-]*|[\w-]+\.(?:md|toml)|__init__\.py"
_PATH = re.compile(rf"(?<![\w./<-])(?:{_TOP})(?![\w<])")
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def paths_in(text: str) -> Iterator[str]:
    """Paths of the repository in code: between backticks or in a fenced block."""
    for code in _CODE.findall(text):
        for path in _PATH.findall(code):
            yield path.rstrip(".")


def anchors_of(text: str) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in _HEADING.findall(text)}


def test_the_patterns_see_what_they_should() -> None:
    text = "`python tests/gone.py --x`, `solver/cpsat/`, `a.b`\n```\ncat docs/no.md > <name>/models/x.py\n```\nmodels/plain.py"
    assert list(paths_in(text)) == ["tests/gone.py", "solver/cpsat/", "docs/no.md"]
    assert anchors_of("# What guards what?\n## C0 and K0") == {"what-guards-what", "c0-and-k0"}


@pytest.mark.parametrize("name", NAMES)
def test_paths_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [path for path in sorted({*paths_in(text)}) if not any(ROOT.glob(path.rstrip("/")))] == []


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    document = ROOT / name
    for link in _LINK.findall(re.sub(_CODE, "", document.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (document.parent / file) if file else document
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target.read_text(encoding="utf-8")), link


def test_the_layout_table_names_the_folders_of_the_source() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Layout")[2]
    named = set(re.findall(r"^\| `([\w/]+)/` \|", table, re.MULTILINE))
    assert {folder for folder in named if not (ROOT / folder).is_dir()} == set()
    assert {"hardware", "models", "solver", "tests", "docs"} <= named


def test_every_room_has_its_line() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "solver").glob("*/__init__.py")}
    assert {room for room in rooms if f"| `{room}/` |" not in text} == set()


def test_every_test_has_its_line_in_the_map() -> None:
    text = (ROOT / "docs/testing.md").read_text(encoding="utf-8")
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    assert {test for test in tests if f"`{test}`" not in text} == set()
