"""What A and B take in L1 (``AL1Size``, ``BL1Size`` of the vendor's table 2), bytes."""

from __future__ import annotations

from ...models.case import BmmCase
from ...models.context import ATOM, ceil_to
from .convert import tcube_to_fields
from .struct import TCubeTiling

__all__ = ["l1_sizes"]


def l1_sizes(tiling: TCubeTiling, case: BmmCase, c0: int) -> tuple[int, int]:
    """AL1Size and BL1Size, bytes.

    A bare struct counts ``depth`` blocks of base size, the axis along a fractal row padded to C0_size: M of a
    transposed A, N of an untransposed B. With ``tileproof`` the branch is known: what is resident ends at the matrix
    and is there as often as there are batches.
    """
    rows, columns = tiling.baseM, tiling.baseN
    if tiling.tileproof is not None:
        known = _known_sizes(tiling, case, c0)
        if known is not None:
            return known
    size_a, size_b = _padded(rows, columns, case, c0)
    s = case.input_bytes
    return size_a * tiling.baseK * tiling.depthA1 * s, size_b * tiling.baseK * tiling.depthB1 * s


def _padded(rows: int, columns: int, case: BmmCase, c0: int) -> tuple[int, int]:
    return (ceil_to(rows, c0) if case.trans_a else rows, columns if case.trans_b else ceil_to(columns, c0))


def _known_sizes(tiling: TCubeTiling, case: BmmCase, c0: int) -> tuple[int, int] | None:
    """Sizes of a part that is not simply ``depth`` base blocks; None where it is."""
    branch, fields = tcube_to_fields(tiling, None)
    s, fold = case.input_bytes, fields.get("fold")
    m = case.m * case.batch if fold == "a" else case.m
    n = case.n * case.batch if fold == "b" else case.n
    all_m, all_n, all_k = ceil_to(m, ATOM), ceil_to(n, ATOM), ceil_to(case.k, max(ATOM, c0))
    buffers = int(fields.get("l1_buffers", 1))
    if branch == "merge_batch":
        batches = int(fields.get("b_l1", 1))
        # Rows of several batches lie packed, unless A is transposed; columns keep the padding of each batch.
        height = batches * all_m if case.trans_a else ceil_to(batches * m, ATOM)
        deep = buffers * tiling.stepKa * tiling.baseK * s
        return height * deep, batches * all_n * deep
    form, side = fields.get("l1_form"), fields.get("full_load")
    if form in ("a", "b"):
        batch = buffers * int(fields.get("iter_l1", 1)) * all_k * s
        return all_m * batch, all_n * batch
    whole_k = form in ("c", "d")
    if not whole_k and side not in ("a", "b"):
        return None
    rows = min(tiling.stepM * tiling.baseM, all_m) if whole_k or side == "a" else tiling.stepM * tiling.baseM
    columns = min(tiling.stepN * tiling.baseN, all_n) if whole_k or side == "b" else tiling.stepN * tiling.baseN
    rows, columns = _padded(rows, columns, case, c0)
    deep_a = all_k if whole_k or side == "a" else tiling.stepKa * tiling.baseK
    deep_b = all_k if whole_k or side == "b" else tiling.stepKb * tiling.baseK
    count_a, count_b = (1 if side == "a" else buffers), (1 if side == "b" else buffers)
    return rows * deep_a * s * count_a, columns * deep_b * s * count_b
