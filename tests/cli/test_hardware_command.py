"""``tileproof hardware``."""

from __future__ import annotations

import json
from typing import Any

from tileproof.hardware import get_spec, list_specs


def test_list_names_every_chip(run: Any) -> None:
    answer = run("hardware", "list")
    assert answer.exit_code == 0
    rows = {line.split()[0]: line for line in answer.stdout.splitlines()[2:]}
    assert list(rows) == list_specs()
    assert rows["ascend950pr"].split()[1:6] == ["(default)", "32", "64", "1.6", "128"]
    assert rows["ascend950pr_c28"].split()[1:5] == ["28", "56", "1.4", "112"]


def test_list_as_json(run: Any) -> None:
    chips = json.loads(run("hardware", "list", "--json").stdout)
    assert [chip["name"] for chip in chips] == list_specs()


def test_show_gives_every_number_with_its_source(run: Any) -> None:
    answer = run("hardware", "show", "ascend950pr_c28", "--json")
    document = json.loads(answer.stdout)
    spec = get_spec("ascend950pr_c28")
    assert document["numbers"].keys() == spec.provenance.keys()
    assert all(number["unit"] and number["source"] for number in document["numbers"].values())
    assert document["numbers"]["aic_cores"]["value"] == 28
    assert document["derived"]["peak_fp16"] == {"value": float(spec.cube_peak_tflops("fp16")), "unit": "TFLOPS"}
    table = run("hardware", "show", "ascend950pr_c28").stdout
    shown = [line.split()[0] for line in table.splitlines() if line and not line.startswith(" ")]
    assert set(spec.provenance) | set(document["derived"]) <= set(shown)


def test_show_reads_a_file(run: Any, tmp_path: Any) -> None:
    chip = tmp_path / "mine.toml"
    chip.write_text('base = "ascend950pr"\naic_cores = 20\naiv_cores = 40\n')
    document = json.loads(run("hardware", "show", chip, "--json").stdout)
    assert document["name"] == "mine"
    assert document["numbers"]["aic_cores"]["value"] == 20


def test_unknown_chip(run: Any) -> None:
    answer = run("hardware", "show", "ascend910")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert answer.stderr.startswith('error: there is no chip "ascend910"')
    assert answer.stderr.count("\n") == 1


def test_no_command_shows_the_help(run: Any) -> None:
    answer = run("hardware")
    assert answer.exit_code == 2
    assert "show" in answer.output
