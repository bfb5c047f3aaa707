"""Importing the vendor's platform files."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tileproof.hardware import NpuSpec, SpecError, get_spec, load_platform_ini
from tileproof.hardware.platform_ini import parse_platform_ini

# The lines of hicann/pypto 883e7df platform_config/950PR_958x.ini that matter here.
PR_958X = """\
# [Platform Info configuration begin]
[version]
SoC_version=Ascend950PR_9589
Short_SoC_version=Ascend950
NpuArch=3510

[SoCInfo]
ai_core_cnt=32
cube_core_cnt=32
vector_core_cnt=64
memory_size=137438953472
l2_size=134217728

[AICoreSpec]
cube_freq=1650
cube_m_size=16
cube_n_size=16
cube_k_size=16
l0_a_size=65536
l0_b_size=65536
l0_c_size=262144
l1_size=524288
bt_size=4096
ub_size=253952

[AICoreMemoryRates]
ddr_rate=31
ddr_read_rate=31
ddr_write_rate=31
l2_rate=100
l2_read_rate=100
l2_write_rate=100
l1_to_l0_a_rate=256
l1_to_l0_b_rate=256

[DtypeMKN]
Default=16,16,16
DT_INT8=16,32,16
DT_FLOAT=16,8,16

[AICoreintrinsicDtypeMap]
0=Intrinsic_vrelu|float16,float32,int32

[VectorCoreSpec]
vec_freq=1650
ub_size=253952
"""
#: 950DT_9581.ini differs in these lines.
DT_9581 = PR_958X.replace("950PR_9589", "950DT_9581").replace("=31", "=80")

FROM_FILE = {
    "aic_cores", "aiv_cores", "bias_table_bytes", "cube_mhz", "hbm_tb_s", "l0a_bytes", "l0b_bytes", "l0c_bytes",
    "l1_bytes", "l2_bytes", "mte1_bytes_per_cycle", "mte2_port_bytes_per_cycle", "ub_bytes",
}  # fmt: skip


def parse(text: str) -> NpuSpec:
    return parse_platform_ini(text, "some/chip.ini")


def changed(old: str, new: str) -> str:
    assert old in PR_958X
    return PR_958X.replace(old, new, 1)


def test_pr_file_is_the_shipped_chip_but_for_the_hbm_rate() -> None:
    spec = parse(PR_958X)
    assert spec.name == "Ascend950PR_9589"
    assert spec.hbm_tb_s == Fraction(31 * 32 * 1650, 10**6) == Fraction("1.6368")  # facts_hardware a.1: 1.637
    base = get_spec("ascend950pr")
    assert spec.replace(name=base.name, description=base.description, hbm_tb_s="1.6") == base
    assert spec.unaligned_write_bytes_per_cycle == spec.hbm_bytes_per_cycle


def test_dt_file() -> None:
    spec = parse(DT_9581)
    assert spec.hbm_tb_s == Fraction("4.224")  # 80 B/cycle/core * 32 * 1650 MHz
    assert spec.unaligned_write_bytes_per_cycle_per_core == Fraction("30.3")
    assert "ascend950dt" in spec.description


def test_provenance_tells_file_and_default_apart() -> None:
    spec = parse(PR_958X)
    assert set(spec.provenance) - set(spec.inherited_fields()) == FROM_FILE
    for key, quantity in spec.provenance.items():
        if key in FROM_FILE:
            assert quantity.source.startswith("chip.ini, [")
        elif key.startswith("l2_"):
            assert quantity.source.startswith("chip.ini, [AICoreMemoryRates] l2_rate * cube_freq, times the share")
        else:
            assert quantity.source.startswith("default of ascend950pr: ")
    assert spec.provenance["l1_bytes"].source == "chip.ini, [AICoreSpec] l1_size"


def test_lines_that_may_be_missing() -> None:
    text = PR_958X
    for line in ("bt_size=4096\n", "ub_size=253952\n", "cube_core_cnt=32\n", "l2_rate=100\n", "l1_to_l0_a_rate=256\n"):
        text = text.replace(line, "")
    spec = parse(text)
    assert spec.fingerprint() == parse(PR_958X).fingerprint()
    missing = {"bias_table_bytes", "ub_bytes", "mte2_port_bytes_per_cycle", "mte1_bytes_per_cycle"}
    assert missing <= set(spec.inherited_fields())
    assert spec.provenance["aic_cores"].source == "chip.ini, [SoCInfo] ai_core_cnt"
    assert spec.provenance["l2_read_gb_s_per_core"].source.startswith("the nominal rate of ascend950pr")


def test_effective_l2_rate_follows_the_nominal_one() -> None:
    text = PR_958X.replace("l2_rate=100", "l2_rate=50").replace("l2_read_rate=100", "l2_read_rate=50")
    spec = parse(text.replace("l2_write_rate=100", "l2_write_rate=50").replace("cube_freq=1650", "cube_freq=1500"))
    assert spec.mte2_port_bytes_per_cycle == 50
    assert spec.l2_read_gb_s_per_core == Fraction("143.75") * 50 / 100 * 1500 / 1650
    assert NpuSpec.model_validate(spec.to_dict()) == spec


def test_few_cores_are_judged_with_their_own_hbm_rate() -> None:
    # 8 cores: L2 1.15 TB/s, HBM 31 * 8 * 1650 MHz = 0.41 TB/s
    text = PR_958X.replace("_core_cnt=32", "_core_cnt=8").replace("vector_core_cnt=64", "vector_core_cnt=16")
    assert parse(text).aic_cores == 8


def test_name_without_memory_type() -> None:
    spec = parse(changed("Ascend950PR_9589", "Ascend950"))
    quantity = spec.provenance["unaligned_write_bytes_per_cycle_per_core"]
    assert quantity.value is None
    assert quantity.source.endswith('assumed, since the name "Ascend950" holds neither PR nor DT')
    assert quantity.confidence == "L"
    assert parse(changed("SoC_version=Ascend950PR_9589\n", "")).name == "chip"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", r"some/chip.ini: is no platform .ini file"),
        ("", r"some/chip.ini, section version: has no such section; needed are version, SoCInfo, AICoreSpec"),
        (changed("[SoCInfo]", "[SocInfo]"), r"section SoCInfo: has no such section.*needed are version, SoCInfo"),
        (changed("[AICoreMemoryRates]", "[x]"), r"section AICoreMemoryRates: has no such section"),
        (changed("l2_size=134217728", "l2_size=1\nl2_size=2"), r"is no platform .ini file: .*already exists"),
        (changed("NpuArch=3510", "NpuArch=2201"), r"key NpuArch: is '2201', but the model describes NpuArch 3510 only"),
        (changed("NpuArch=3510\n", ""), r"section version, key NpuArch: is missing; the model describes NpuArch 3510"),
        (PR_958X.replace("_core_cnt=32", "_core_cnt=0"), r"section SoCInfo, key cube_core_cnt: is 0 \[cores\]"),
        (PR_958X.replace("_core_cnt=32", "_core_cnt=2.5"), r"key cube_core_cnt: is 2.5 \[cores\], but must be a whole"),
        (
            changed("ai_core_cnt=32", "ai_core_cnt=30"),
            r"key ai_core_cnt: is 30, but must equal \[SoCInfo\] cube_core_cnt = 32",
        ),
        (changed("vector_core_cnt=64", "vector_core_cnt=999"), r"key vector_core_cnt: is 999 .* at most 8 per AI core"),
        (changed("vector_core_cnt=64\n", ""), r"section SoCInfo, key vector_core_cnt: is missing \[cores\]"),
        (changed("ai_core_cnt=32\ncube_core_cnt=32\n", ""), r"section SoCInfo, key ai_core_cnt: is missing \[cores\]"),
        (
            changed("l2_size=134217728", "l2_size=-1"),
            r"section SoCInfo, key l2_size: is -1 \[B\], but must be positive",
        ),
        (changed("l2_size=134217728", "l2_size=128MB"), r"key l2_size: is '128MB' \[B\], but must be a number"),
        (changed("l2_size=134217728", "l2_size="), r"key l2_size: is '' \[B\], but must be a number"),
        (changed("l1_size=524288", "l1_size=524289"), r"section AICoreSpec, key l1_size: is 524289 .* multiple of 32"),
        (changed("l0_a_size=65536\n", ""), r"section AICoreSpec, key l0_a_size: is missing \[B\]"),
        (
            changed("cube_freq=1650", "cube_freq=1650.5"),
            r"key cube_freq: is 1650.5 \[MHz\], but must be a whole number",
        ),
        (
            changed("cube_k_size=16", "cube_k_size=32"),
            r"key cube_k_size: is '32', but the model describes Cube fractals",
        ),
        (
            changed("DT_INT8=16,32,16", "DT_INT8=16,64,16"),
            r"section DtypeMKN, key DT_INT8: is '16,64,16', but the model",
        ),
        (changed("ddr_rate=31\n", ""), r"section AICoreMemoryRates, key ddr_rate: is missing \[B/cycle/core\]"),
        (changed("ddr_rate=31", "ddr_rate=inf"), r"key ddr_rate: is 'inf', but must be a finite number"),
        (
            changed("ddr_write_rate=31", "ddr_write_rate=16"),
            r"key ddr_write_rate: is 16, but must equal .* ddr_rate = 31",
        ),
        (changed("l2_read_rate=100", "l2_read_rate=110"), r"key l2_read_rate: is 110, but must equal"),
        (
            changed("l1_to_l0_b_rate=256", "l1_to_l0_b_rate=128"),
            r"section AICoreMemoryRates, key l1_to_l0_b_rate: is 128, but must equal \[AICoreMemoryRates\] "
            r"l1_to_l0_a_rate = 256: the model has one number for both",
        ),
        (
            PR_958X.replace("=31", "=88"),
            r"section AICoreMemoryRates, key ddr_rate: is 4.6464 \[TB/s\], but must not be",
        ),
        (
            PR_958X.replace("ub_size=253952", "ub_size=262144", 1),
            r"section VectorCoreSpec, key ub_size: is 253952, but",
        ),
    ],
)
def test_refused_files(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse(text)


def test_files_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.INI"
    path.write_text("\ufeff" + PR_958X, encoding="utf-8")
    assert get_spec(path) == load_platform_ini(str(path))
    no_suffix = tmp_path / "platform"
    no_suffix.write_text(PR_958X)
    assert get_spec(no_suffix).name == "Ascend950PR_9589"
    with pytest.raises(SpecError, match=r"none\.ini: does not exist"):
        get_spec(str(tmp_path / "none.ini"))


# facts_production 1.2: implied DRAM rate of each file
IMPLIED_TB_S = {
    "950PR_957x": (28, 1.43),
    "950PR_958x": (32, 1.637),
    "950DT_957x": (28, 3.70),
    "950DT_958x": (32, 3.22),
    "950DT_9581": (32, 4.22),
}


@pytest.mark.parametrize("stem", sorted(IMPLIED_TB_S))
def test_vendor_files(stem: str) -> None:
    path = Path(__file__).parents[3] / "shared" / "data" / "platform_config" / f"{stem}.ini"
    if not path.is_file():
        pytest.skip(f"the vendor's file {path} is not here")
    spec = get_spec(path)
    cores, tb_s = IMPLIED_TB_S[stem]
    assert (spec.aic_cores, spec.aiv_cores) == (cores, 2 * cores)
    assert float(spec.hbm_tb_s) == pytest.approx(tb_s, abs=0.005)
    assert spec.l2_read_gb_s_per_core == Fraction("143.75")
    assert set(spec.provenance) - set(spec.inherited_fields()) == FROM_FILE
