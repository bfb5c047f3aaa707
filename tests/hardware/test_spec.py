"""Numbers of the shipped chips against values typed in from the sources, and the behaviour of ``NpuSpec``."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from fractions import Fraction

import pytest
from pydantic import ValidationError

from tileproof.hardware import DTYPES, NpuSpec, SpecError, get_spec, list_specs
from tileproof.hardware.quantities import decimal_text, exact_fraction

# name: AIC, AIV, HBM TB/s, L2 bytes (design section 4: white paper tables 3-1 and 4-2, platform ini files)
SKUS = {
    "ascend950pr": (32, 64, Fraction(16, 10), 128 * 2**20),
    "ascend950pr_c28": (28, 56, Fraction(14, 10), 112 * 2**20),
    "ascend950dt": (36, 72, Fraction(4), 128 * 2**20),
    "ascend950dt_c32": (32, 64, Fraction(422, 100), 128 * 2**20),
    "ascend950dt_c28": (28, 56, Fraction(370, 100), 128 * 2**20),
}


def test_shipped_skus() -> None:
    assert list_specs() == sorted(SKUS)
    for name, (aic, aiv, hbm, l2) in SKUS.items():
        spec = get_spec(name)
        assert (spec.aic_cores, spec.aiv_cores, spec.hbm_tb_s, spec.l2_bytes) == (aic, aiv, hbm, l2)
        assert spec.name == name
        # design section 4, "Common"
        assert (spec.l1_bytes, spec.l0a_bytes, spec.l0b_bytes, spec.l0c_bytes) == (524288, 65536, 65536, 262144)
        assert (spec.bias_table_bytes, spec.ub_bytes, spec.cube_mhz) == (4096, 253952, 1650)
        assert (spec.mte2_port_bytes_per_cycle, spec.mte1_bytes_per_cycle) == (Fraction(100), Fraction(256))
        assert spec.row_efficiency == ((512, Fraction(1)), (256, Fraction(90, 100)), (128, Fraction(78, 100)))
        assert dict(spec.head_us) == {
            "profiler": Fraction(5, 2),
            "cold": 9,
            "warm": Fraction(1, 2),
            "resident": Fraction(1, 2),
        }


@pytest.mark.parametrize(
    ("name", "dtype", "tflops"),
    [
        # facts_hardware a.1, a.3 (asc-devkit tests/perf; white paper): 432.5, 865, 216, 27.0; 378 (28 cores); 486 (36)
        ("ascend950pr", "fp16", "432.5376"),
        ("ascend950pr", "bf16", "432.5376"),
        ("ascend950pr", "int8", "865.0752"),
        ("ascend950pr", "fp8_e4m3", "865.0752"),
        ("ascend950pr", "fp8_e5m2", "865.0752"),
        ("ascend950pr", "hif8", "865.0752"),
        ("ascend950pr", "hf32", "216.2688"),
        ("ascend950pr", "fp32", "27.0336"),
        ("ascend950pr_c28", "fp16", "378.4704"),
        ("ascend950dt", "fp16", "486.6048"),
    ],
)
def test_cube_peak(name: str, dtype: str, tflops: str) -> None:
    assert get_spec(name).cube_peak_tflops(dtype) == Fraction(tflops)


def test_balance_point() -> None:
    # R = 2 * 16^3 MAC * 1650 MHz * 32 / (1.6 TB/s / 2 B) = 540.672 (facts: 540.6, not 607.5); the same on the card bin
    assert get_spec("ascend950pr").balance_flop_per_element("fp16", 2) == Fraction("540.672")
    assert get_spec("ascend950pr_c28").balance_flop_per_element("bf16", 2) == Fraction("540.672")
    assert get_spec("ascend950dt").balance_flop_per_element("fp16", 2) == Fraction("243.3024")
    assert get_spec("ascend950pr").balance_flop_per_element("fp32", 4) == Fraction("67.584")


@pytest.mark.parametrize(
    ("name", "hbm", "l2", "unaligned", "floor"),
    [
        # facts_latency "Constants": BW_HBM 970 / 848 / 2424, BW_L2 2788 / 2439, BW_UN the HBM rate on PR, 30.3*C on DT;
        # design section 5: lambda = 32 KB / (BW_HBM / (0.75*C)) = 811 cycles on PR
        ("ascend950pr", 969.70, 2787.88, 969.70, 811.008),
        ("ascend950pr_c28", 848.48, 2439.39, 848.48, 811.008),
        ("ascend950dt", 2424.24, 3136.36, 1090.80, 364.954),
        ("ascend950dt_c32", 2557.58, 2787.88, 969.60, 307.491),
        ("ascend950dt_c28", 2242.42, 2439.39, 848.40, 306.868),
    ],
)
def test_rates_in_bytes_per_cycle(name: str, hbm: float, l2: float, unaligned: float, floor: float) -> None:
    spec = get_spec(name)
    assert float(spec.hbm_bytes_per_cycle) == pytest.approx(hbm, abs=0.005)
    assert float(spec.l2_read_bytes_per_cycle) == pytest.approx(l2, abs=0.005)
    assert float(spec.unaligned_write_bytes_per_cycle) == pytest.approx(unaligned, abs=0.005)
    assert float(spec.latency_floor_cycles) == pytest.approx(floor, abs=0.0005)


def test_exact_rates() -> None:
    spec = get_spec("ascend950pr")
    assert spec.hbm_bytes_per_cycle == Fraction(32000, 33)  # 1.6e12 / 1650e6
    assert spec.l2_read_bytes_per_cycle == Fraction(4_600_000, 1650)  # 4.6 TB/s at 32 cores
    assert spec.l2_write_bytes_per_cycle == Fraction(5_200_000, 1650)  # 5.2 TB/s at 32 cores
    assert spec.latency_floor_cycles == Fraction(32768 * 24 * 33, 32000)
    assert spec.cycles_per_us == 1650


def test_saturating_cores() -> None:
    # floor(0.75 * cores): 24 of 32 (BMM design v0.4 section 2.2: "at least 3/4"), 21 of 28, 27 of 36
    cores = {name: (get_spec(name).saturating_aic_cores, get_spec(name).saturating_aiv_cores) for name in SKUS}
    assert cores["ascend950pr"] == (24, 48)
    assert cores["ascend950pr_c28"] == (21, 42)
    assert cores["ascend950dt"] == (27, 54)
    one = get_spec("ascend950dt").replace(aic_cores=1, aiv_cores=1, hbm_tb_s="0.1")
    assert (one.saturating_aic_cores, one.saturating_aiv_cores) == (1, 1)


def test_fractals_agree_with_mac_rates() -> None:
    spec = get_spec("ascend950pr")
    expected = {"16bit": (4096, 16), "8bit": (8192, 32), "hf32": (2048, 8), "fp32": (256, 1)}
    kinds = dict.fromkeys(DTYPES, "8bit") | {"fp16": "16bit", "bf16": "16bit", "fp32": "fp32", "hf32": "hf32"}
    assert set(DTYPES) == {"fp16", "bf16", "fp32", "hf32", "int8", "fp8_e4m3", "fp8_e5m2", "hif8"}
    for dtype, kind in kinds.items():
        assert (spec.mac_per_cycle(dtype), spec.fractal_k(dtype)) == expected[kind]


def test_unknown_dtype() -> None:
    with pytest.raises(SpecError, match=r'no input type \'fp61\'; did you mean "fp16"\?; known are fp16, bf16'):
        get_spec().mac_per_cycle("fp61")


@pytest.mark.parametrize("name", sorted(SKUS))
def test_round_trips(name: str) -> None:
    spec = get_spec(name)
    for again in (
        NpuSpec.model_validate(spec.model_dump(mode="json")),
        NpuSpec.model_validate(spec.model_dump()),
        NpuSpec.model_validate_json(spec.model_dump_json()),
        NpuSpec.model_validate(json.loads(json.dumps(spec.to_dict()))),
        pickle.loads(pickle.dumps(spec)),
        copy.deepcopy(spec),
    ):
        assert again == spec
        assert hash(again) == hash(spec)
        assert again.fingerprint() == spec.fingerprint()
    assert pickle.loads(pickle.dumps(spec)).provenance == spec.provenance


def test_identity() -> None:
    spec = get_spec("ascend950pr")
    assert len({get_spec(name).fingerprint() for name in SKUS}) == len(SKUS)
    assert spec.replace(hbm_tb_s=1.6, row_efficiency=spec.row_efficiency) == spec
    renamed = spec.replace(name="other")
    assert renamed != spec
    assert renamed.fingerprint() == spec.fingerprint()
    slower = spec.replace(hbm_tb_s="1.5999999999")
    assert slower != spec
    assert slower.fingerprint() != spec.fingerprint()
    bare = NpuSpec.model_validate(spec.to_dict())
    assert bare == spec
    assert bare.provenance["l1_bytes"].source == "not recorded"
    assert spec != "ascend950pr"
    with pytest.raises(ValidationError, match="frozen"):
        spec.l1_bytes = 1
    with pytest.raises(TypeError):
        spec.head_us["cold"] = 0  # type: ignore[index]


@pytest.mark.parametrize("name", sorted(SKUS))
def test_every_number_has_unit_and_source(name: str) -> None:
    spec = get_spec(name)
    assert [*spec.provenance] == [key for key in NpuSpec.model_fields if key not in ("name", "description")]
    for key, quantity in spec.provenance.items():
        assert quantity.value == getattr(spec, key)
        assert quantity.unit
        assert quantity.meaning
        assert len(quantity.source) > 10
        assert quantity.confidence in ("H", "M", "L")
        assert f"[{quantity.unit}]" in str(NpuSpec.model_fields[key].description)
    assert spec.provenance["aic_cores"].origin == name
    assert "l1_bytes" in spec.inherited_fields()
    assert "aic_cores" not in spec.inherited_fields()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"l1_bytes": 0}, r"key l1_bytes: is 0 \[B\], but must be a multiple of 32 from 1024 to"),
        ({"l1_bytes": -524288}, r"is -524288 \[B\], but must be a multiple of 32"),
        ({"l0a_bytes": 65537}, r"is 65537 \[B\], but must be a multiple of 32"),
        ({"l0c_bytes": 2**41}, r"but must be a multiple of 32 from 1024 to 1099511627776"),
        ({"l1_bytes": 10**70}, r"is an integer of more than 60 digits"),
        ({"aic_cores": 0}, r"is 0 \[cores\], but must be a whole number from 1 to 4096"),
        ({"aic_cores": 31.5}, r"is 31.5 \[cores\], but must be a whole number"),
        ({"aic_cores": True}, r"is True \[cores\], but must be a number, not true or false"),
        ({"aic_cores": [32]}, r"is \[32\] \[cores\], but must be a number"),
        ({"aic_cores": "many"}, r"is 'many' \[cores\], but must be a number"),
        ({"aiv_cores": 257}, r"key aiv_cores: is 257 \[cores\], but must be at most 8 per AI core, here 32 cores"),
        ({"hbm_tb_s": 0}, r"is 0 \[TB/s\], but must be above 0"),
        ({"hbm_tb_s": float("nan")}, r"is nan \[TB/s\], but must be a finite number"),
        ({"hbm_tb_s": Decimal("Infinity")}, r"but must be a finite number"),
        ({"hbm_tb_s": "1/0"}, r"is '1/0' \[TB/s\], but must be a number"),
        ({"hbm_tb_s": "1e9999999"}, r"but must be a number of at most 40 digits"),
        (
            {"hbm_tb_s": 4.61},
            r"key hbm_tb_s: is 4.61 \[TB/s\], but must not be above the L2 read rate, which is 4.6 TB/s",
        ),
        ({"aic_cores": 8, "aiv_cores": 16}, r"key hbm_tb_s: is 1.6 .* 1.15 TB/s \(8 cores \* 143.75 GB/s\)"),
        ({"saturation_share": 0}, r"is 0 \[share\], but must be above 0 and at most 1"),
        ({"copy_efficiency": 1.01}, r"is 1.01 \[share\], but must be above 0 and at most 1"),
        ({"drain_cycles": -1}, r"is -1 \[cycles/drain\], but must be from 0"),
        ({"reduce_fixed_us": -0.5}, r"is -0.5 \[us\], but must be from 0"),
        ({"mac_per_cycle_16bit": 8192}, r"key mac_per_cycle_16bit: is 8192 .* must be 16 \* 16 \* fractal_k_16bit"),
        ({"policy_row_bytes": 300}, r"key policy_row_bytes: is 300 .* at most policy_row_bytes_recommended"),
        ({"vector_unit_bytes": 262144}, r"key vector_unit_bytes: .* must fit in ub_bytes \(253952\)"),
        ({"row_efficiency": []}, r"but must be pairs"),
        ({"row_efficiency": 5}, r"but must be pairs"),
        ({"row_efficiency": [512]}, r"but must be pairs"),
        ({"row_efficiency": [[128, "0.78"], [256, "0.9"]]}, r"the longest rows first"),
        ({"row_efficiency": [[512, "0.5"], [256, "0.9"]]}, r"efficiency not growing"),
        ({"row_efficiency": [[512, 2]]}, r"must be above 0 and at most 1"),
        ({"head_us": {"cold": 9}}, r"must give one number for each of profiler, cold, warm, resident"),
        ({"head_us": dict.fromkeys(("profiler", "cold", "warm", "resident"), -1)}, r"must be from 0 .*\(profiler\)"),
        ({"unaligned_write_bytes_per_cycle_per_core": 0}, r'must be above 0 .*, or "hbm"'),
        ({"l1_byte": 1}, r'key l1_byte: is no field of a chip; did you mean "l1_bytes"\?'),
        ({"name": " "}, r"key name: is ' ', but must be one line of text, not empty"),
        ({"name": 5}, r"key name: is 5, but must be text"),
        ({"description": "a\nb"}, r"but must be one line of text"),
    ],
)
def test_refused_values(changes: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        get_spec("ascend950pr").replace(**changes)


def test_missing_value() -> None:
    values = get_spec().to_dict()
    del values["l1_bytes"]
    with pytest.raises(SpecError, match=r"key l1_bytes: is missing \[B\]"):
        NpuSpec.build(values)


def test_equal_l2_and_hbm_rate_is_allowed() -> None:
    assert get_spec("ascend950pr").replace(hbm_tb_s="4.6").hbm_tb_s == Fraction(46, 10)


def test_changed_number_says_so() -> None:
    quantity = get_spec().replace(l1_bytes=1048576).provenance["l1_bytes"]
    assert (quantity.value, quantity.unit, quantity.source, quantity.confidence) == (1048576, "B", "set in code", None)


@pytest.mark.parametrize(
    ("given", "exact", "text"),
    [
        (0.1, Fraction(1, 10), "0.1"),
        ("0.10", Fraction(1, 10), "0.1"),
        (Decimal("143.75"), Fraction(575, 4), "143.75"),
        ("1/3", Fraction(1, 3), "1/3"),
        ("2.5e3", Fraction(2500), 2500),
        ("-0.001", Fraction(-1, 1000), "-0.001"),
        (7, Fraction(7), 7),
        (Decimal("0E+999999"), Fraction(0), 0),
    ],
)
def test_exact_numbers(given: object, exact: Fraction, text: int | str) -> None:
    assert exact_fraction(given) == exact
    assert decimal_text(exact) == text
    assert exact_fraction(text) == exact
