"""``tileproof recommend --cluster``: the same bytes as without, and one sentence when there is no cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

CASES = """case_id,b,m,n,k,pin_base_m
one,2,64,64,64,
two,4,32,48,0,
bad,1,-1,16,16,
none,1,64,64,64,7
two again,4,32,48,0,
three,1,128,96,256,
"""


def test_a_local_cluster_gives_the_same_bytes(process: Any, tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(CASES, encoding="utf-8")
    streams = []
    for name, where in (("here", ("--jobs", "1")), ("there", ("--cluster", "local", "--library", "plans.lib"))):
        done = process("recommend", "cases.csv", "--out", f"{name}.csv", "--plans", f"{name}_plans.csv", *where)
        assert done.returncode == 2
        said = [line for line in done.stderr.splitlines() if " after " not in line]  # progress
        streams.append((done.stdout, said[:-1], said[-1].removesuffix(", 1 from the library")))
    assert streams[0] == streams[1]
    for kind in ("", "_plans"):
        here, there = ((tmp_path / f"{name}{kind}.csv").read_bytes() for name in ("here", "there"))
        assert here == there


def test_no_cluster_is_one_sentence(process: Any, tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(CASES, encoding="utf-8")
    for address, why in (
        ("tcp://127.0.0.1:1", "no scheduler answers at tcp://127.0.0.1:1"),
        ("here", "'here' is no address; allowed: local or tcp://host:port"),
    ):
        done = process("recommend", "cases.csv", "--out", "result.csv", "--cluster", address)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: cluster: {why}\n")
