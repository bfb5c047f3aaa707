"""The fields of a hardware description: name, type, unit, meaning. The numbers are in ``data/*.toml``.

TB, GB are decimal; B is bytes; cycles are Cube cycles (``cube_mhz``); "core" is an AI core (AIC) unless said.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .quantities import (
    BufferBytes,
    CoreCount,
    FieldError,
    Heads,
    NaturalInt,
    NaturalRate,
    PositiveInt,
    Rate,
    RateOrHbm,
    RowClasses,
    Share,
    SmallBufferBytes,
)

__all__ = ["NUMBER_FIELDS", "SpecFields", "meaning_of", "unit_of"]

#: Rows of a Cube fractal in M and N: the 16 × 16 × K0 of NpuArch 3510.
_FRACTAL_ROWS = 16
_MAX_AIV_PER_AIC = 8


def _number(unit: str, meaning: str) -> Any:
    return Field(description=f"{meaning} [{unit}]", json_schema_extra={"unit": unit, "meaning": meaning})


class SpecFields(BaseModel):
    """All numbers of one chip, checked one by one and against each other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="name of the chip")
    description: str = Field(description="one sentence about the chip")

    # cores and clock
    aic_cores: CoreCount = _number("cores", "AI cores (Cube), C in the formulas")
    aiv_cores: CoreCount = _number("cores", "vector cores, V in the formulas")
    cube_mhz: PositiveInt = _number("MHz", "Cube clock; all cycles are counted with it")

    # memory outside the core
    hbm_tb_s: Rate = _number("TB/s", "HBM rate of the chip, reads and writes share it")
    l2_bytes: SmallBufferBytes = _number("B", "L2 cache")
    l2_read_gb_s_per_core: Rate = _number("GB/s/core", "effective L2 read rate per core")
    l2_write_gb_s_per_core: Rate = _number("GB/s/core", "L2 write rate per core")
    unaligned_write_bytes_per_cycle_per_core: RateOrHbm = _number(
        "B/cycle/core", "write rate when output rows are not aligned; none means the HBM rate"
    )

    # buffers of one core
    l1_bytes: BufferBytes = _number("B", "L1 buffer of a core")
    l0a_bytes: BufferBytes = _number("B", "L0A buffer of a core")
    l0b_bytes: BufferBytes = _number("B", "L0B buffer of a core")
    l0c_bytes: BufferBytes = _number("B", "L0C buffer of a core")
    bias_table_bytes: SmallBufferBytes = _number("B", "bias table of a core")
    ub_bytes: BufferBytes = _number("B", "usable unified buffer of a vector core")

    # transfers inside the core
    mte2_port_bytes_per_cycle: Rate = _number("B/cycle/core", "port from L2 and HBM into L1")
    mte1_bytes_per_cycle: Rate = _number("B/cycle/core", "L1 to L0A and to L0B")
    mte1_load_cycles: NaturalRate = _number("cycles/load", "fixed cost of a load into L0")

    # Cube
    mac_per_cycle_16bit: PositiveInt = _number("MAC/cycle/core", "Cube rate, fp16 and bf16")
    mac_per_cycle_8bit: PositiveInt = _number("MAC/cycle/core", "Cube rate, int8, fp8, hif8")
    mac_per_cycle_hf32: PositiveInt = _number("MAC/cycle/core", "Cube rate, hf32")
    mac_per_cycle_fp32: PositiveInt = _number("MAC/cycle/core", "Cube rate, exact fp32")
    fractal_k_16bit: PositiveInt = _number("elements", "K0 of a fractal 16 x 16 x K0, fp16 and bf16")
    fractal_k_8bit: PositiveInt = _number("elements", "K0 of a fractal, int8, fp8, hif8")
    fractal_k_hf32: PositiveInt = _number("elements", "K0 of a fractal, hf32")
    fractal_k_fp32: PositiveInt = _number("elements", "K0 per fractal step, exact fp32")
    fractal_cycles: PositiveInt = _number("cycles", "time of one fractal 16 x 16 x K0")
    mmad_head_cycles_double: NaturalRate = _number("cycles/MMAD", "issue cost of an MMAD, L0 double-buffered")
    mmad_head_cycles_single: NaturalRate = _number("cycles/MMAD", "issue cost of an MMAD, L0 single-buffered")

    # fixpipe
    drain_cycles: NaturalRate = _number("cycles/drain", "fixed cost of an L0C to GM drain")
    drain_elements_per_cycle: Rate = _number("elements/cycle/core", "drain rate L0C to GM, any output type")

    # efficiency of transfers
    row_efficiency: RowClasses = _number(
        "B, share", "share of the rate by contiguous row bytes, longest first; proportional below the last class"
    )
    unaligned_pitch_efficiency: Share = _number("share", "share of the rate when the row pitch is not aligned")
    pitch_alignment_bytes: PositiveInt = _number("B", "alignment of the row pitch for the full rate")
    bytes_in_flight: PositiveInt = _number("B/core", "bytes in flight that hide the latency of memory")
    saturation_share: Share = _number("share", "share of the cores that saturates HBM")
    copy_efficiency: Share = _number("share", "share of the HBM rate that a device copy (read plus write) reaches")
    reduce_fixed_us: NaturalRate = _number("us", "fixed cost of the StreamK reduction")
    vector_unit_bytes: PositiveInt = _number("B", "work unit of a vector core")
    output_alignment_bytes: PositiveInt = _number("B", "alignment of an output row for the aligned write rate")
    head_us: Heads = _number("us", "launch head by environment: profiler, cold, warm, resident")

    # limits of the kernels
    workspace_slot_elements: PositiveInt = _number("elements", "fp32 workspace slot of a core (StreamK)")
    workspace_extra_bytes: NaturalInt = _number("B", "workspace beyond the slots (StreamK)")
    fp32_streamk_max_k: PositiveInt = _number("elements", "largest K of StreamK in exact fp32")
    max_step_k: PositiveInt = _number("base_k", "largest L1 depth of the MDL template")

    # thresholds from experience, profile v0.4
    policy_merge_batches_per_core: PositiveInt = _number(
        "batches/core", "fewest batches per core for MergeBatch, b_thr"
    )
    policy_k_bytes: PositiveInt = _number("B", "shortest K extent of a move for MergeBatch, k_thr")
    policy_bytes_per_core: PositiveInt = _number("B/core", "least data a core should move")
    policy_tile_bytes: PositiveInt = _number("B", "smallest tile of one move")
    policy_row_bytes: PositiveInt = _number("B", "shortest contiguous row of a move, dValue")
    policy_row_bytes_recommended: PositiveInt = _number("B", "recommended dValue")
    policy_row_bytes_best: PositiveInt = _number("B", "dValue of the full rate")
    policy_balance_share: Share = _number("share", "least load balance of IterBatch when memory bound")
    policy_streamk_k_per_grid2: PositiveInt = _number("elements", "StreamK needs K >= this * grid_k^2")
    policy_l1_operand_share_inverse: PositiveInt = _number(
        "1", "one L1 part of an operand is at most L1 over this (ASW)"
    )

    # thresholds of the shipped code, profile source
    source_max_step_k: PositiveInt = _number("base_k", "largest L1 depth the kernels use")
    source_block: PositiveInt = _number("elements", "side of the StreamK block")
    source_block_fp32: PositiveInt = _number("elements", "side of the StreamK block, exact fp32")
    source_streamk_bytes: PositiveInt = _number("B", "least K extent of StreamK")
    source_merge_min_k: PositiveInt = _number("elements", "least K, rounded up to c0, for MergeBatch")

    @field_validator("name", "description", mode="after")
    @classmethod
    def _one_line(cls, text: str) -> str:
        if not text.strip() or not text.isprintable():
            raise ValueError("must be one line of text, not empty")
        return text.strip()

    @model_validator(mode="after")
    def _agree(self) -> SpecFields:
        if self.aiv_cores > _MAX_AIV_PER_AIC * self.aic_cores:
            raise FieldError(
                "aiv_cores", f"must be at most {_MAX_AIV_PER_AIC} per AI core, here {self.aic_cores} cores"
            )
        l2_tb_s = self.l2_read_gb_s_per_core * self.aic_cores / 1000
        if l2_tb_s < self.hbm_tb_s:
            raise FieldError(
                "hbm_tb_s",
                f"must not be above the L2 read rate, which is {float(l2_tb_s):g} TB/s "
                f"({self.aic_cores} cores * {float(self.l2_read_gb_s_per_core):g} GB/s): "
                "the latency model needs BW_L2 >= BW_HBM",
            )
        for kind in ("16bit", "8bit", "hf32", "fp32"):
            mac, k0 = getattr(self, f"mac_per_cycle_{kind}"), getattr(self, f"fractal_k_{kind}")
            if mac * self.fractal_cycles != _FRACTAL_ROWS * _FRACTAL_ROWS * k0:
                raise FieldError(
                    f"mac_per_cycle_{kind}",
                    f"must be 16 * 16 * fractal_k_{kind} / fractal_cycles = 256 * {k0} / {self.fractal_cycles}",
                )
        if not self.policy_row_bytes <= self.policy_row_bytes_recommended <= self.policy_row_bytes_best:
            raise FieldError(
                "policy_row_bytes",
                "must be at most policy_row_bytes_recommended, and that at most policy_row_bytes_best "
                f"({self.policy_row_bytes_recommended}, {self.policy_row_bytes_best})",
            )
        if self.vector_unit_bytes > self.ub_bytes:
            raise FieldError("vector_unit_bytes", f"must fit in ub_bytes ({self.ub_bytes})")
        return self


#: Names of all fields that hold numbers, in declaration order.
NUMBER_FIELDS: tuple[str, ...] = tuple(key for key in SpecFields.model_fields if key not in ("name", "description"))


def _extra(field: str, item: str) -> str:
    extra = SpecFields.model_fields[field].json_schema_extra
    return str(extra[item]) if isinstance(extra, dict) else ""


def unit_of(field: str) -> str:
    """Unit of a number field, such as ``"TB/s"``."""
    return _extra(field, "unit")


def meaning_of(field: str) -> str:
    """Meaning of a number field, one phrase."""
    return _extra(field, "meaning")
