"""The rooms of the source: who may import whom, where OR-Tools may be, and how long files and functions may get."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: Rooms from low to high; a room imports only rooms that stand before it. A room is a folder or one module of solver/.
ROOMS = (
    "hardware",
    "models",
    "solver/result",
    "solver/describe",
    "solver/library",
    "solver/pools",
    "solver/tables",
    "solver/cpsat",
    "solver/search",
    "solver/settings",
    "solver/api",
    "solver/tcube",
    "solver/proof",
    "solver/review",
    "solver/batch",
    "solver/measure",
    "solver/cli",
)
MOST_LINES_OF_A_FILE = 450
MOST_LINES_OF_A_FUNCTION = 60
#: A longer function says why in its docstring, in a sentence that begins so.
REASON = "Long because "


def _module(path: Path) -> str:
    """``solver/cpsat/run`` for a file, ``solver/cpsat`` for the package's own file, ``.`` for the root's."""
    name = path.relative_to(ROOT)
    return (name.parent if name.name == "__init__.py" else name.with_suffix("")).as_posix()


@cache
def sources() -> dict[str, Path]:
    """Every module of the product."""
    folders = ("hardware", "models", "solver")
    files = [ROOT / "__init__.py", *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]
    return {_module(path): path for path in sorted(files)}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(sources()[module].read_text(encoding="utf-8"))


def room(module: str) -> str:
    """The room of a module; the two packages ``.`` and ``solver`` hold nothing and stand below all rooms."""
    return next((name for name in ROOMS if module == name or module.startswith(f"{name}/")), module)


def rank(module: str) -> int:
    return -1 if module in (".", "solver") else ROOMS.index(room(module))


def _for_types(module: str) -> set[ast.AST]:
    """What stands under ``if TYPE_CHECKING``."""
    tests = [node for node in ast.walk(tree(module)) if isinstance(node, ast.If)]
    return {
        inner
        for node in tests
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }


@cache
def imports(module: str, *, types: bool = True) -> frozenset[str]:
    """Modules of this package that a module imports anywhere: at the top, in a function, and for ``types`` alone."""
    path = sources()[module]
    left_out = set() if types else _for_types(module)
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.level and node not in left_out:
            folder = path.parents[node.level - 1].relative_to(ROOT)
            target = folder.joinpath(*(node.module or "").split("."))
            for alias in node.names:
                inner = (target / alias.name).as_posix()
                found.add(inner if inner in sources() else target.as_posix())
    return frozenset(found)


def outside(module: str) -> frozenset[str]:
    """Top-level names of the packages that a module imports absolutely."""
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return frozenset(found)


def functions(module: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree(module)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the statements: neither signature nor docstring, which are there to be read as documentation."""
    first = function.body[1:2] if ast.get_docstring(function) else function.body[:1]
    return 0 if not first else (function.end_lineno or 0) - first[0].lineno + 1


def test_the_walk_sees_the_source() -> None:
    assert "solver/cpsat/run" in imports("solver/search/branch_search")
    assert "solver/search/solve_branch" in imports("solver/api"), "imports inside functions count"
    assert "models/branches/base" in imports("models/branches") - imports("models/branches", types=False)
    assert "ortools" in outside("solver/cpsat/run")
    lengths = {function.name: body_lines(function) for function in functions("solver/cpsat/run")}
    assert lengths["of"] == 1
    assert lengths["run_unpresolved"] == 2


def test_every_module_stands_in_a_room() -> None:
    assert [m for m in sources() if m not in (".", "solver") and room(m) not in ROOMS] == []
    assert [name for name in ROOMS if name not in sources()] == []


def test_imports_between_rooms_go_one_way() -> None:
    up = {(m, t) for m in sources() if m != "." for t in imports(m) if rank(t) > rank(m)}
    assert up == set(), "imports of a room that stands higher"


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter({m: imports(m, types=False) for m in sources() if m != "."}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_only_one_room_imports_ortools() -> None:
    assert {room(m) for m in sources() if "ortools" in outside(m)} == {"solver/cpsat"}


def test_imports_inside_the_source_are_relative() -> None:
    assert [m for m in sources() if outside(m) & {"tileproof", "hardware", "models", "solver"}] == []


@pytest.mark.parametrize("room", ["hardware", "models"])
def test_the_lower_rooms_need_no_table_library_and_no_command_line(room: str) -> None:
    used = {name for m in sources() if m.startswith(room) for name in outside(m)}
    assert used & {"ortools", "pandas", "pyarrow", "rich", "typer", "distributed"} == set()


def test_modules_named_in_texts_exist() -> None:
    """Worker processes load modules by name."""
    name = re.compile(r"\btileproof((?:\.(?:hardware|models|solver)\b)(?:\.[a-z_]+)*)")
    for module, path in sources().items():
        for found in name.findall(path.read_text(encoding="utf-8")):
            named = found.strip(".").replace(".", "/")
            home, _, member = named.rpartition("/")
            known = named in sources() or (home in sources() and member in sources()[home].read_text(encoding="utf-8"))
            assert known, f"{module} names tileproof{found}"


def test_every_folder_of_the_source_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    setuptools = project["tool"]["setuptools"]
    named = set(setuptools["packages"])
    folders = {path.parent.relative_to(ROOT) for path in sources().values()}
    assert {".".join(("tileproof", *folder.parts)) for folder in folders} <= named
    for package in named:
        folder = ROOT.joinpath(*package.split(".")[1:])
        wanted = setuptools["package-data"].get(package, ["*.py"])
        assert all(any(folder.glob(pattern)) for pattern in wanted), f"{package} installs nothing"


def test_files_stay_short() -> None:
    lengths = {m: len(path.read_text(encoding="utf-8").splitlines()) for m, path in sources().items()}
    assert {m: lines for m, lines in lengths.items() if lines > MOST_LINES_OF_A_FILE} == {}


def test_functions_stay_short_or_say_why_not() -> None:
    long, explained = {}, set()
    for module in sources():
        for function in functions(module):
            name = f"{module} {function.name}"
            if body_lines(function) > MOST_LINES_OF_A_FUNCTION:
                long[name] = body_lines(function)
            if REASON in (ast.get_docstring(function) or ""):
                explained.add(name)
    assert {name: lines for name, lines in long.items() if name not in explained} == {}
    assert explained - set(long) == set(), "short by now: their docstrings need not say why"
