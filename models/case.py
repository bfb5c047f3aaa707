"""The Batch MatMul problem: ``C[b,m,n] = sum_k A[b,m,k] * B[b,k,n] (+ bias)``."""

from __future__ import annotations

from math import prod
from typing import Any, Final, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ..hardware.errors import InputError

Dtype = Literal["fp16", "bf16", "fp32", "hf32", "int8", "fp8_e4m3", "fp8_e5m2", "hif8"]
OutDtype = Literal["fp16", "bf16", "fp32", "int8", "int32"]
BiasDtype = Literal["fp16", "bf16", "fp32", "int32"]
Format = Literal["ND", "NZ"]

BYTES: Final[dict[str, int]] = {
    "fp16": 2, "bf16": 2, "fp32": 4, "hf32": 4, "int8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "hif8": 1, "int32": 4,
}  # fmt: skip
DEFAULT_OUT: Final[dict[str, str]] = {
    "fp16": "fp16", "bf16": "bf16", "fp32": "fp32", "hf32": "fp32", "int8": "int32",
    "fp8_e4m3": "bf16", "fp8_e5m2": "bf16", "hif8": "bf16",
}  # fmt: skip
_OUT_OF: Final[dict[str, tuple[str, ...]]] = {
    "fp16": ("fp16", "fp32"), "bf16": ("bf16", "fp32"), "fp32": ("fp32",), "hf32": ("fp32",),
    "int8": ("int32", "fp16", "bf16", "int8"),
    "fp8_e4m3": ("bf16", "fp16", "fp32"), "fp8_e5m2": ("bf16", "fp16", "fp32"), "hif8": ("bf16", "fp16", "fp32"),
}  # fmt: skip
MAX_EXTENT: Final = 2**31 - 1
MAX_WORK: Final = 2**62
MAX_BATCH_DIMS: Final = 4


class BmmCase(BaseModel):
    """One Batch MatMul problem (design section 3).

    Shapes: A is ``[*batch_a, m, k]`` (``[..., k, m]`` with ``trans_a``), B ``[*batch_b, k, n]`` (``[..., n, k]`` with
    ``trans_b``), C ``[*broadcast(batch_a, batch_b), m, n]``; bias ``[n]`` or, with ``bias_batch``, ``[*batch, 1, n]``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    case_id: str = Field(default="", description="free name, carried through to every result")
    batch_a: tuple[int, ...] = Field(
        default=(1,), description="batch dims of A, at most 4, right-aligned with those of B"
    )
    batch_b: tuple[int, ...] = Field(default=(1,), description="batch dims of B; each pair equal or one of them 1")
    m: int = Field(description="rows of A and C, elements")
    n: int = Field(description="columns of B and C, elements")
    k: int = Field(description="summed extent, elements")
    dtype: Dtype = Field(default="fp16", description="type of A and B")
    out_dtype: OutDtype | None = Field(default=None, description="type of C; default follows the input type")
    trans_a: bool = Field(default=False, description="A is stored [k, m]")
    trans_b: bool = Field(default=False, description="B is stored [n, k]")
    bias: BiasDtype | None = Field(default=None, description="type of the bias row, none without bias")
    bias_batch: bool = Field(default=False, description="the bias has the batch dims of C")
    format_b: Format = Field(default="ND", description="storage of B: plain or fractal NZ")

    @field_validator("batch_a", "batch_b", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return (value,) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("batch_a", "batch_b")
    @classmethod
    def _check_batch(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not 1 <= len(value) <= MAX_BATCH_DIMS:
            raise ValueError(f"{len(value)} batch dims; allowed are 1 to {MAX_BATCH_DIMS}")
        for dim in value:
            if not 0 <= dim <= MAX_EXTENT:
                raise ValueError(f"batch dim {dim} is out of range; allowed is 0 to {MAX_EXTENT}")
        return value

    @field_validator("m", "n", "k")
    @classmethod
    def _check_extent(cls, value: int) -> int:
        if not 0 <= value <= MAX_EXTENT:
            raise ValueError(f"{value} is out of range; allowed is 0 to {MAX_EXTENT}")
        return value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        width = max(len(self.batch_a), len(self.batch_b))
        left, right = ((1,) * (width - len(dims)) + dims for dims in (self.batch_a, self.batch_b))
        for position, (a, b) in enumerate(zip(left, right, strict=True)):
            if a != b and 1 not in (a, b):
                raise ValueError(
                    f"batch_a {_dims(self.batch_a)} and batch_b {_dims(self.batch_b)} do not broadcast: "
                    f"dim {position - width} is {a} against {b}; allowed are equal dims or a 1"
                )
        if self.out_dtype is not None and self.out_dtype not in _OUT_OF[self.dtype]:
            allowed = ", ".join(_OUT_OF[self.dtype])
            raise ValueError(f"out_dtype {self.out_dtype} is not possible for {self.dtype} inputs; allowed: {allowed}")
        if self.bias_batch and self.bias is None:
            raise ValueError("bias_batch is set but there is no bias; give a bias type or drop bias_batch")
        work = self.batch * self.m * self.n * self.k * self.input_bytes
        if work > MAX_WORK:
            raise ValueError(f"B*M*N*K*bytes = {work} is too large; allowed is up to 2^62 = {MAX_WORK}")
        output = self.batch * self.m * self.n * self.output_bytes
        if output > MAX_WORK:
            raise ValueError(f"the output of {output} bytes is too large; allowed is up to 2^62 = {MAX_WORK}")
        return self

    @property
    def batch(self) -> int:
        """Batches of the output."""
        width = max(len(self.batch_a), len(self.batch_b))
        left, right = ((1,) * (width - len(dims)) + dims for dims in (self.batch_a, self.batch_b))
        return prod(b if a == 1 else a for a, b in zip(left, right, strict=True))

    @property
    def input_bytes(self) -> int:
        """Bytes of one element of A or B."""
        return BYTES[self.dtype]

    @property
    def output_dtype(self) -> str:
        """Type of C, the default resolved."""
        return self.out_dtype or DEFAULT_OUT[self.dtype]

    @property
    def output_bytes(self) -> int:
        """Bytes of one element of C."""
        return BYTES[self.output_dtype]


_ALIASES: Final[dict[str, str]] = {
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32",
    "float8_e4m3": "fp8_e4m3", "float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "hifloat8": "hif8",
}  # fmt: skip


def dtype_name(text: str) -> str:
    """Name of a type as the case spells it: lower case, ``float16`` and the like resolved."""
    plain = text.strip().lower().replace("-", "_")
    return _ALIASES.get(plain, plain)


def _dims(dims: tuple[int, ...]) -> str:
    return "x".join(map(str, dims))


def explain_validation(error: ValidationError) -> tuple[str, str]:
    """Field (or ``case``) and sentence of the first problem pydantic found."""
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else "case"
    if first["type"] == "literal_error":
        allowed = first["ctx"]["expected"].replace(" or ", ", ").replace("'", "")
        return field, f"{first['input']!r} is not known; allowed: {allowed}"
    if first["type"] == "missing":
        return field, "is missing"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] != "value_error":
        message = f"{first['input']!r}: {message[0].lower()}{message[1:]}"
    return field, message


def make_case(**fields: Any) -> BmmCase:
    """Build a case from keyword fields.

    Raises:
        InputError: a field is missing, of the wrong type or out of range; the message names it.
    """
    try:
        return BmmCase(**fields)
    except ValidationError as error:
        field, message = explain_validation(error)
        raise InputError(f"{field}: {message}" if field != "case" else message) from None


DTYPES: Final[tuple[str, ...]] = get_args(Dtype)
