"""Statistics of rows in one pass over the logits.

An online softmax: running sums are rescaled whenever the running maximum rises. Of each row
eight numbers are kept; nothing else has the size of the logits. Arithmetic is float32, or float64
for float64 logits. The formulas are in docs/derivations/rows.md.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._finish import AS_IT_IS, Finish
from ._finish_tile import finished, settings
from ._launch import on_device_of
from ._table import TABLE, arithmetic
from ._tiles import narrow_plan as plan


@triton.jit
def _place(z, top, j, classes):  # type: ignore[no-untyped-def]
    """The class of each logit that is the maximum of its row; of the others, none."""
    return tl.where(z == top[:, None], j[None, :], classes)


@triton.jit
def _raised(top, largest, base, sums, seen):  # type: ignore[no-untyped-def]
    """What is known so far, seen from a new maximum where there is one."""
    total, tilt, squares, level = sums
    higher = top > largest
    base = tl.where(higher, top, base)
    fall = tl.where(higher & (largest != float("-inf")), largest - base, 0.0)[:, None]
    decay = tl.exp(fall)
    tilt = decay * (tilt + fall * total)
    sums = (decay * total, tilt, decay * decay * squares, level + fall * seen)
    return tl.where(higher, top, largest), base, sums


@triton.jit
def _added(z, base, sums, level):  # type: ignore[no-untyped-def]
    """The sums with one more logit in each of their columns; `level` is added to the last."""
    total, tilt, squares, levels = sums
    # What is ruled out adds 0 * -1000, where 0 * -inf would be NaN.
    x = tl.maximum(z - base[:, None], -1000.0, propagate_nan=tl.PropagateNan.ALL)
    e = tl.exp(x)
    return total + e, tilt + e * x, squares + e * e, levels + level


@triton.jit  # type: ignore[untyped-decorator]
def _statistics(  # type: ignore[no-untyped-def]
    logits,
    labels,
    table,
    predicted,
    n,
    classes,
    row_stride,
    column_stride,
    scale,
    cap,
    SCALED: tl.constexpr,
    CAPPED: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    dtype = table.dtype.element_ty
    nothing = float("-inf")
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = row < n
    # Rows beyond the last read the last, so that whole blocks need no mask.
    start = logits + tl.minimum(row, n - 1).to(tl.int64) * row_stride
    largest = tl.full((ROWS,), nothing, dtype)
    base = tl.zeros((ROWS,), dtype)
    first = tl.zeros((ROWS,), tl.int32)
    zeros = tl.zeros((ROWS, BLOCK), dtype)
    sums = (zeros, zeros, zeros, zeros)
    # Four blocks share the search for a maximum, for which programs wait for each other's lanes.
    in_fours = classes // (4 * BLOCK) * (4 * BLOCK)
    for begin in range(0, in_fours, 4 * BLOCK):
        j = begin + tl.arange(0, BLOCK)
        at = start[:, None] + j[None, :] * column_stride
        step = BLOCK * column_stride
        z0, z1 = tl.load(at).to(dtype), tl.load(at + step).to(dtype)
        z2, z3 = tl.load(at + 2 * step).to(dtype), tl.load(at + 3 * step).to(dtype)
        z0 = finished(z0, True, scale, cap, SCALED, CAPPED)
        z1 = finished(z1, True, scale, cap, SCALED, CAPPED)
        z2 = finished(z2, True, scale, cap, SCALED, CAPPED)
        z3 = finished(z3, True, scale, cap, SCALED, CAPPED)
        top = tl.max(tl.maximum(tl.maximum(z0, z1), tl.maximum(z2, z3)), axis=1)
        higher = top > largest
        # A new maximum is soon rare, so what it takes is worth a branch.
        if tl.max(higher.to(tl.int32), axis=0) > 0:
            place = tl.minimum(_place(z0, top, j, classes), _place(z1, top, j + BLOCK, classes))
            place = tl.minimum(place, _place(z2, top, j + 2 * BLOCK, classes))
            place = tl.minimum(place, _place(z3, top, j + 3 * BLOCK, classes))
            first = tl.where(higher, tl.min(place, axis=1), first)
            largest, base, sums = _raised(top, largest, base, sums, begin // BLOCK)
        sums = _added(z0, base, sums, z0 - base[:, None])
        sums = _added(z1, base, sums, z1 - base[:, None])
        sums = _added(z2, base, sums, z2 - base[:, None])
        sums = _added(z3, base, sums, z3 - base[:, None])
    for begin in range(in_fours, classes, BLOCK):
        j = begin + tl.arange(0, BLOCK)
        inside = (j < classes)[None, :]
        z = tl.load(start[:, None] + j[None, :] * column_stride, mask=inside, other=nothing)
        z = finished(z.to(dtype), inside, scale, cap, SCALED, CAPPED)
        top = tl.max(z, axis=1)
        first = tl.where(top > largest, tl.min(_place(z, top, j, classes), axis=1), first)
        largest, base, sums = _raised(top, largest, base, sums, begin // BLOCK)
        sums = _added(z, base, sums, tl.where(inside, z - base[:, None], 0.0))
    total, tilt, squares, level = sums
    whole = tl.sum(total, axis=1)
    log_sum = tl.log(whole)
    y = tl.load(labels + row, mask=here, other=0)
    # A label that names no class reads nothing and shows as NaN.
    named = here & (y >= 0) & (y < classes)
    truth = tl.load(start + y * column_stride, mask=named, other=float("nan")).to(dtype)
    truth = finished(truth, True, scale, cap, SCALED, CAPPED)
    tl.store(predicted + row, first.to(tl.int64), mask=here)
    tl.store(table + row, truth - base - log_sum, mask=here)
    tl.store(table + n + row, tl.exp(largest - base - log_sum), mask=here)
    tl.store(table + 2 * n + row, log_sum - tl.sum(tilt, axis=1) / whole, mask=here)
    tl.store(table + 3 * n + row, tl.sum(squares, axis=1) / (whole * whole), mask=here)
    tl.store(table + 4 * n + row, tl.sum(level, axis=1) / classes - log_sum, mask=here)
    tl.store(table + 5 * n + row, (first == y).to(dtype), mask=here)
    tl.store(table + 6 * n + row, base, mask=here)
    tl.store(table + 7 * n + row, log_sum, mask=here)


def statistics(logits: Tensor, labels: Tensor, finish: Finish = AS_IT_IS) -> tuple[Tensor, Tensor]:
    """The table of `TABLE`, one column per row of logits, and the predicted classes."""
    n, classes = logits.shape
    table = torch.empty(len(TABLE), n, dtype=arithmetic(logits.dtype), device=logits.device)
    predicted = torch.empty(n, dtype=torch.int64, device=logits.device)
    rows, block, warps = plan(classes)
    with on_device_of(logits):
        _statistics[(triton.cdiv(n, rows),)](
            logits,
            labels.contiguous(),
            table,
            predicted,
            n,
            classes,
            *logits.stride(),
            **settings(finish),
            ROWS=rows,
            BLOCK=block,
            num_warps=warps,
        )
    return table, predicted
