"""Finding chips by name and reading the user's TOML files."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import pytest

from tileproof.hardware import DEFAULT_SPEC, SpecError, get_spec, list_specs


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_names() -> None:
    assert DEFAULT_SPEC == "ascend950pr"
    assert get_spec() is get_spec("ascend950pr")
    assert get_spec(" Ascend950PR ") is get_spec("ascend950pr")


def test_data_files_state_all_four_parts() -> None:
    folder = files("tileproof.hardware").joinpath("data")
    tables = [tomllib.loads(entry.read_text()) for entry in folder.iterdir() if entry.name.endswith(".toml")]
    assert len(tables) == len(list_specs()) + 1
    for table in tables:
        for key, entry in table.items():
            if key not in ("base", "description"):
                assert set(entry) == {"value", "unit", "source", "confidence"}, key


def test_each_fact_has_one_place() -> None:
    """A chip file may not repeat a number of its base."""
    folder = files("tileproof.hardware").joinpath("data")
    tables = {
        entry.name: tomllib.loads(entry.read_text()) for entry in folder.iterdir() if entry.name.endswith(".toml")
    }
    for name, table in tables.items():
        base = tables.get(f"{table.get('base')}.toml", {})
        for key, entry in table.items():
            if isinstance(entry, dict) and key in base:
                assert entry["value"] != base[key]["value"], (name, key)


def test_unknown_name_suggests() -> None:
    with pytest.raises(SpecError) as caught:
        get_spec("ascend950prr")
    assert str(caught.value) == (
        'there is no chip "ascend950prr"; did you mean "ascend950pr"?; known chips are ascend950dt, ascend950dt_c28, '
        "ascend950dt_c32, ascend950pr, ascend950pr_c28, or give a .toml or .ini file"
    )
    with pytest.raises(SpecError, match='there is no chip "common"'):
        get_spec("common")
    with pytest.raises(SpecError, match="there is no chip"):
        get_spec("\0")


def test_override(tmp_path: Path) -> None:
    path = write(
        tmp_path / "my_chip.toml",
        """
        base = "Ascend950PR"
        hbm_tb_s = 1.7
        l1_bytes = { value = 1048576, unit = "B", source = "data sheet", confidence = "M" }
        head_us = { cold = 8.1 }
        """,
    )
    spec = get_spec(str(path))
    base = get_spec("ascend950pr")
    assert spec.name == "my_chip"
    assert spec.description == "my_chip.toml, based on ascend950pr"
    assert spec.hbm_tb_s == Fraction(17, 10)
    assert dict(spec.head_us) == {**base.head_us, "cold": Fraction(81, 10)}
    assert spec == base.replace(
        name="my_chip", description=spec.description, hbm_tb_s="1.7", l1_bytes=1048576, head_us=spec.head_us
    )
    assert spec.provenance["hbm_tb_s"].source == "my_chip.toml"
    assert (spec.provenance["l1_bytes"].source, spec.provenance["l1_bytes"].confidence) == ("data sheet", "M")
    assert spec.provenance["l0a_bytes"] == base.provenance["l0a_bytes"]
    assert set(spec.provenance) - set(spec.inherited_fields()) == {"hbm_tb_s", "l1_bytes", "head_us"}


def test_default_base_and_other_base(tmp_path: Path) -> None:
    assert get_spec(write(tmp_path / "a.toml", "")).fingerprint() == get_spec("ascend950pr").fingerprint()
    text = 'base = "ascend950dt_c28"\nname = "mine"\nunaligned_write_bytes_per_cycle_per_core = "hbm"\n'
    spec = get_spec(write(tmp_path / "b.toml", text))
    assert spec.name == "mine"
    assert (
        spec.unaligned_write_bytes_per_cycle
        == spec.hbm_bytes_per_cycle
        == get_spec("ascend950dt_c28").hbm_bytes_per_cycle
    )


def test_full_file_needs_nothing_of_the_base(tmp_path: Path) -> None:
    lines = ['name = "full"', 'description = "all numbers"']
    for key, value in get_spec("ascend950dt").to_dict().items():
        if key not in ("name", "description"):
            items = (
                f"{{ {', '.join(f'{k} = {v!r}' for k, v in value.items())} }}"
                if isinstance(value, dict)
                else repr(value)
            )
            lines.append(f"{key} = {items}")
    spec = get_spec(write(tmp_path / "full.toml", "\n".join(lines)))
    assert spec.fingerprint() == get_spec("ascend950dt").fingerprint()
    assert spec.inherited_fields() == ()


def test_existing_file_without_known_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "chip", "l1_bytes = 1048576")
    monkeypatch.chdir(tmp_path)
    assert get_spec("chip").l1_bytes == 1048576


def test_a_file_is_read_again_after_a_change(tmp_path: Path) -> None:
    path = write(tmp_path / "a.toml", "l1_bytes = 1048576")
    assert get_spec(path).l1_bytes == 1048576
    assert get_spec(write(path, "l1_bytes = 262144")).l1_bytes == 262144


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l1_byte = 5", r'chip.toml, key l1_byte: is no field of a chip; did you mean "l1_bytes"\?'),
        ("[memory]\nl1_bytes = 5", r"chip.toml, key memory: is no field of a chip"),
        ('l1_bytes = "big"', r"chip.toml, key l1_bytes: is 'big' \[B\], but must be a number"),
        ("l1_bytes = 524288.5", r"chip.toml, key l1_bytes: is 524288.5 \[B\], but must be a multiple of 32"),
        ("l1_bytes = true", r"key l1_bytes: is True \[B\], but must be a number, not true or false"),
        ("l1_bytes = 2020-01-01", r"key l1_bytes: is .* must be a number"),
        ("hbm_tb_s = nan", r"key hbm_tb_s: is NaN \[TB/s\], but must be a finite number"),
        ("hbm_tb_s = 5", r"key hbm_tb_s: is 5 \[TB/s\], but must not be above the L2 read rate"),
        ("hbm_tb_s = 1e999999999999999999999", r"chip.toml: is not valid TOML|must be a number of at most"),
        ('l1_bytes = { value = 512, unit = "KB" }', r'key l1_bytes: is given in "KB", but must be in "B"'),
        ('l1_bytes = { unit = "B" }', r"key l1_bytes: has no value"),
        ("l1_bytes = { value = 524288, sorce = 'x' }", r'has an unknown part \'sorce\'; did you mean "source"\?'),
        ("l1_bytes = { value = 524288, source = 5 }", r"has source = 5, but source must be text"),
        ('l1_bytes = { value = 524288, confidence = "sure" }', r"has confidence 'sure', but it must be one of H, M, L"),
        ("head_us = { wram = 1 }", r'has no environment \'wram\'; did you mean "warm"\?; known are profiler, cold'),
        ('head_us = { warm = "x" }', r"key head_us: is .*, but must be a number \(warm\)"),
        ("head_us = 3", r"key head_us: is 3 \[us\], but must give one number for each of"),
        ('base = "ascend950dr"', r"key base: is 'ascend950dr', but must be one of ascend950dt, .*; did you mean"),
        ("base = 950", r"key base: is 950, but must be one of"),
        ("name = 950", r"key name: is 950, but must be text"),
        ('name = ""', r"key name: is '', but must be one line of text"),
        ('name = "Ascend950DT"', r'key name: is "Ascend950DT", the name of a shipped chip with other numbers'),
        ("l1_bytes =\nl0a_bytes = 65536", r"chip.toml: is not valid TOML: .*line 1"),
        ("l1_bytes = 1\nl1_bytes = 2", r"is not valid TOML"),
    ],
)
def test_refused_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        get_spec(write(tmp_path / "chip.toml", text))


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.toml: does not exist"):
        get_spec(tmp_path / "none.toml")
    with pytest.raises(SpecError, match=r"cannot be read: Is a directory"):
        get_spec(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match=r"bytes\.toml: is not UTF-8 text"):
        get_spec(tmp_path / "bytes.toml")


def test_import_is_light() -> None:
    """Neither solver nor tables are loaded with the hardware, and no data file is read. The root package stays out."""
    code = (
        "import sys, types; from importlib.util import find_spec\n"
        "root = types.ModuleType('tileproof')\n"
        "root.__path__ = list(find_spec('tileproof').submodule_search_locations)\n"
        "sys.modules['tileproof'] = root\n"
        "import tileproof.hardware.registry, tileproof.hardware.shipped as shipped\n"
        "heavy = {'ortools', 'pandas', 'numpy', 'tileproof.models', 'tileproof.solver'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert shipped.shipped_chip.cache_info().currsize == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
