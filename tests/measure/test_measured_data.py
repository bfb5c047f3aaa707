"""The carried measurements, and files of the same columns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tileproof.hardware import InputError, list_specs
from tileproof.hardware.measured import measured_sets, measurements, read_measurements
from tileproof.models.pins import parse_pins
from tileproof.solver.measure.predict import prepare

#: Rows a set, from the list of the collection.
ROWS = {
    "catlass_aswt": 4, "catlass_46": 4, "catlass_ts": 4, "dsl_own": 4, "dsl_torch": 4, "devkit_fp16": 6, "nodb": 2,
    "devkit_mxfp4": 2, "pto_fp16": 2, "pto_mxfp8": 3, "samples_db": 3, "bench_int8": 10, "bench_grouped": 11,
    "mxfp4_tutorial": 3, "samples_small": 3, "devkit_naive": 1,
}  # fmt: skip
COLLECTION = (
    "source,chip,op,b,m,n,k,trans_a,trans_b,dtype,base_m,base_n,base_k,cores,latency_us,mac_us,mte1_us,mte2_us,"
    "fixpipe_us,note,set,tiling_known\n"
)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_every_row_has_its_facts() -> None:
    rows = measurements()
    assert Counter(row.set for row in rows) == ROWS
    sets = measured_sets()
    assert set(sets.sets) == set(ROWS)
    for row in rows:
        assert row.source
        assert row.kind
        assert row.chip in sets.chips
        assert sets.chips[row.chip] in list_specs()
        assert (row.note + row.op + row.source).isascii()
    for name, facts in sets.sets.items():
        assert facts.assumption, name
        assert parse_pins(facts.pins) is not None
        for special in facts.where:
            assert any(special.op in row.op for row in rows if row.set == name) or special.op == "Matmul API / Case 8"
            assert special.why


def test_rows_that_cannot_be_predicted_say_why() -> None:
    reasons = {row.set: prepare(row).left_out for row in measurements() if prepare(row).left_out}
    assert set(reasons) == {"nodb", "devkit_mxfp4", "pto_mxfp8", "mxfp4_tutorial"}
    assert all("MX types are not modelled" in reason for reason in reasons.values())


def test_special_rows_win_over_their_set() -> None:
    devkit = measured_sets().of("devkit_fp16")
    assert "fixpipe_unitflag=0" in devkit.pins_of("Matmul API / Case 5")
    assert "fixpipe_unitflag=1" in devkit.pins_of("basic-API matmul / Scenario 1")
    assert "fixpipe_unitflag=0" not in devkit.pins_of("basic-API matmul / Scenario 1")
    assert measured_sets().of("no such set").pins == ()


def test_a_file_in_the_columns_of_the_collection(tmp_path: Path) -> None:
    file = write(
        tmp_path / "collection.csv",
        COLLECTION
        + 'x,Ascend950PR(28c),torch,8.0,256.0,512.0,1024.0,0.0,1.0,fp16->fp32,,,,28,11.6,,,,,"[min of 20] free",s,0\n'
        + "x,Ascend950PR,g (m=total rows),4.0,130.0,64.0,64.0,0.0,0.0,float16xfloat16,,,,,3.7,,,,,,bench_grouped,0\n",
    )
    one, two = read_measurements(file)
    assert (one.kind, one.note, one.cores, one.tiling_known) == ("min of 20", "free", 28, False)
    ready = prepare(one)
    assert ready.case is not None
    assert ready.spec is not None
    assert (ready.case.batch, ready.case.m, ready.case.output_dtype, ready.case.trans_b) == (8, 256, "fp32", True)
    assert ready.spec.name == "ascend950pr_c28"
    groups = prepare(two)
    assert groups.case is not None
    assert (groups.case.batch, groups.case.m, groups.case.dtype) == (4, 33, "fp16")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("m,n,k\n1,1,1\n", "row 1: column latency_us is missing"),
        ("m,n,k,latency_us\n", "there is no measurement"),
        ("m,n,k,latency_us,m\n1,1,1,1,1\n", "row 1, column m: is there more than once"),
        ("m,n,k,latency_us,base_mm\n1,1,1,1,1\n", "did you mean 'base_m'"),
        ("m,n,k,latency_us\n1,1,1,0\n", "row 2, column latency_us: is 0, but must be a time above 0"),
        ("m,n,k,latency_us\n1,1,1,\n", "row 2, column latency_us: is empty"),
        ("m,n,k,latency_us\n1,1,1,fast\n", "row 2, column latency_us: is 'fast'"),
        ("m,n,k,latency_us\n1,1,1\n", "row 2: 3 cells, but the header has 4"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_measurements(write(tmp_path / "bad.csv", text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("x,1,1,5,fp16,", "row 2, column m: 'x' is no whole number"),
        ("1,1,1,5,fp99,", "row 2, column dtype: 'fp99' is not known"),
        ("64,64,64,5,fp16,12.5", "row 2: pin 'base_m=12.5': base_m is a whole number"),
    ],
)
def test_bad_cells_are_refused_when_they_are_used(tmp_path: Path, cells: str, message: str) -> None:
    file = write(tmp_path / "bad.csv", f"m,n,k,latency_us,dtype,base_m\n{cells}\n")
    (row,) = read_measurements(file)
    with pytest.raises(InputError) as caught:
        prepare(row)
    assert message in str(caught.value)


def test_an_unknown_chip_leaves_the_row_out(tmp_path: Path) -> None:
    (row,) = read_measurements(write(tmp_path / "a.csv", "m,n,k,latency_us,chip\n64,64,64,5,Ascend910B\n"))
    assert 'there is no chip "Ascend910B"' in prepare(row).left_out
