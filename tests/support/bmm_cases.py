"""Problems that between them reach every branch, form, type, layout, broadcast, chip and environment."""

from __future__ import annotations

from typing import Any

from tileproof.models.plan import BranchName

PR, DT = "ascend950pr", "ascend950dt_c28"

Fields = dict[str, Any]
Item = tuple[str, BranchName, Fields, str, Any]
#: (name, branch, sizes, chip, environment).
CASES: list[Item] = [
    ("k0", "special", dict(batch_a=(6,), batch_b=(6,), m=100, n=77, k=0, dtype="fp16"), PR, "profiler"),
    ("k0 bias", "special", dict(batch_a=(64,), batch_b=(64,), m=9, n=4000, k=0, dtype="bf16", bias="fp32", bias_batch=True), DT, "cold"),
    ("k0 bias read", "special", dict(batch_a=(64,), batch_b=(64,), m=1, n=4001, k=0, dtype="bf16", bias="fp32", bias_batch=True), PR, "warm"),
    ("k0 bias row", "special", dict(batch_a=(1,), batch_b=(1,), m=1, n=60000, k=0, dtype="fp16", bias="fp32"), DT, "profiler"),
    ("k1", "special", dict(batch_a=(4, 3), batch_b=(4, 1), m=129, n=1001, k=1, dtype="fp32"), PR, "warm"),
    ("k1 int8 bias", "special", dict(batch_a=(3,), batch_b=(3,), m=513, n=640, k=1, dtype="int8", bias="int32"), DT, "resident"),
    ("k1 large output", "special", dict(batch_a=(64,), batch_b=(64,), m=2048, n=1024, k=1, dtype="fp16"), PR, "profiler"),
    ("fold a", "to_matmul", dict(batch_a=(5, 4), batch_b=(1, 1), m=96, n=192, k=640), PR, "profiler"),
    ("fold a trans_b odd", "to_matmul", dict(batch_a=(7,), batch_b=(1,), m=50, n=77, k=1000, dtype="bf16", trans_b=True, bias="fp32"), DT, "cold"),
    ("fold a nz", "to_matmul", dict(batch_a=(9,), batch_b=(1,), m=33, n=272, k=352, dtype="int8", format_b="NZ", out_dtype="fp16"), PR, "warm"),
    ("fold b", "to_matmul", dict(batch_a=(1,), batch_b=(6,), m=100, n=90, k=600, trans_a=True), PR, "profiler"),
    ("fold b trans_b", "to_matmul", dict(batch_a=(1,), batch_b=(40,), m=64, n=50, k=512, dtype="hf32", trans_b=True), DT, "resident"),
    ("fold b bias", "to_matmul", dict(batch_a=(1, 1), batch_b=(3, 2), m=17, n=136, k=2048, dtype="hif8", bias="bf16"), PR, "cold"),
    ("iter small", "iter_batch", dict(batch_a=(200,), batch_b=(200,), m=40, n=56, k=72), PR, "profiler"),
    ("iter one a core", "iter_batch", dict(batch_a=(12,), batch_b=(12,), m=100, n=180, k=260, dtype="bf16", bias="bf16"), PR, "warm"),
    ("iter several a core", "iter_batch", dict(batch_a=(70,), batch_b=(70,), m=120, n=90, k=150, trans_a=True, trans_b=True), DT, "cold"),
    ("iter fp32", "iter_batch", dict(batch_a=(33,), batch_b=(33,), m=48, n=100, k=129, dtype="fp32"), DT, "profiler"),
    ("iter fp8 nz", "iter_batch", dict(batch_a=(10, 8), batch_b=(10, 8), m=60, n=96, k=256, dtype="fp8_e4m3", format_b="NZ"), PR, "resident"),
    ("iter large", "iter_batch", dict(batch_a=(30,), batch_b=(30,), m=1000, n=900, k=1100), PR, "profiler"),
    ("iter misses L2", "iter_batch", dict(batch_a=(32,), batch_b=(32,), m=4096, n=4096, k=4096), PR, "profiler"),
    ("merge", "merge_batch", dict(batch_a=(512,), batch_b=(512,), m=8, n=24, k=48), PR, "profiler"),
    ("merge trans_b", "merge_batch", dict(batch_a=(300,), batch_b=(300,), m=20, n=16, k=400, dtype="bf16", trans_b=True), DT, "cold"),
    ("merge trans_a", "merge_batch", dict(batch_a=(250,), batch_b=(250,), m=33, n=10, k=96, dtype="int8", trans_a=True), PR, "warm"),
    ("merge hf32", "merge_batch", dict(batch_a=(1000,), batch_b=(1000,), m=5, n=7, k=250, dtype="hf32"), PR, "resident"),
    ("merge nz", "merge_batch", dict(batch_a=(130,), batch_b=(130,), m=16, n=32, k=64, dtype="fp8_e5m2", format_b="NZ"), DT, "profiler"),
    ("asw", "asw_basic", dict(batch_a=(3,), batch_b=(3,), m=500, n=600, k=700), PR, "profiler"),
    ("asw one matmul", "asw_basic", dict(batch_a=(1,), batch_b=(1,), m=300, n=1100, k=384, dtype="bf16", bias="fp32"), PR, "warm"),
    ("asw trans", "asw_basic", dict(batch_a=(1,), batch_b=(1,), m=1000, n=130, k=300, trans_a=True, trans_b=True), DT, "cold"),
    ("asw unaligned fp32", "asw_basic", dict(batch_a=(5,), batch_b=(5,), m=77, n=99, k=111, dtype="fp32"), DT, "profiler"),
    ("asw broadcast a", "asw_basic", dict(batch_a=(1,), batch_b=(20,), m=64, n=200, k=256), PR, "profiler"),
    ("asw broadcast b", "asw_basic", dict(batch_a=(20,), batch_b=(1,), m=150, n=48, k=320, dtype="hf32", trans_a=True), DT, "resident"),
    ("asw cross", "asw_basic", dict(batch_a=(6, 1), batch_b=(1, 5), m=130, n=140, k=150, dtype="fp8_e4m3"), PR, "cold"),
    ("asw nz int8", "asw_basic", dict(batch_a=(1,), batch_b=(1,), m=400, n=320, k=512, dtype="int8", format_b="NZ", trans_b=True), PR, "profiler"),
    ("asw above L2", "asw_basic", dict(batch_a=(2,), batch_b=(2,), m=8192, n=8192, k=40000), PR, "profiler"),
    ("asw above L2 odd", "asw_basic", dict(batch_a=(3, 1), batch_b=(1, 2), m=5000, n=7001, k=65537, dtype="fp32"), DT, "warm"),
    ("asw coarse tick", "asw_basic", dict(batch_a=(1,), batch_b=(1,), m=17408, n=17408, k=3473408), PR, "profiler"),
    ("streamk", "stream_k", dict(batch_a=(1,), batch_b=(1,), m=64, n=64, k=65536), PR, "profiler"),
    ("streamk batch", "stream_k", dict(batch_a=(3,), batch_b=(3,), m=50, n=170, k=5000, dtype="bf16", trans_a=True, bias="fp32"), DT, "cold"),
    ("streamk int8", "stream_k", dict(batch_a=(2,), batch_b=(2,), m=100, n=33, k=3000, dtype="int8", trans_b=True), PR, "warm"),
    ("streamk fp32", "stream_k", dict(batch_a=(1,), batch_b=(1,), m=40, n=90, k=2000, dtype="fp32"), DT, "profiler"),
    ("streamk nz", "stream_k", dict(batch_a=(5,), batch_b=(5,), m=200, n=128, k=4096, format_b="NZ"), PR, "resident"),
    ("streamk coarse tick", "stream_k", dict(batch_a=(1,), batch_b=(1,), m=256, n=256, k=2**31 - 1), PR, "profiler"),
]  # fmt: skip


def item_id(item: Item) -> str:
    """Name of a case in the test report."""
    return item[0].replace(" ", "_")
