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
from ._tiles import STAGES
from ._tiles import narrow_plan as plan


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
    STAGES: tl.constexpr,
):
    dtype = table.dtype.element_ty
    nothing = float("-inf")
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = row < n
    start = logits + row.to(tl.int64) * row_stride
    largest = tl.full((ROWS,), nothing, dtype)
    base = tl.zeros((ROWS,), dtype)
    first = tl.zeros((ROWS,), tl.int32)
    total = tl.zeros((ROWS, BLOCK), dtype)
    tilt = tl.zeros((ROWS, BLOCK), dtype)
    squares = tl.zeros((ROWS, BLOCK), dtype)
    level = tl.zeros((ROWS, BLOCK), dtype)
    # Some blocks are on their way while one is looked at.
    for begin in tl.range(0, classes, BLOCK, num_stages=STAGES):
        j = begin + tl.arange(0, BLOCK)
        inside = here[:, None] & (j < classes)[None, :]
        z = tl.load(start[:, None] + j[None, :] * column_stride, mask=inside, other=nothing)
        z = finished(z.to(dtype), inside, scale, cap, SCALED, CAPPED)
        top = tl.max(z, axis=1)
        higher = top > largest
        # A new maximum is soon rare, so what it takes is worth a branch.
        if tl.max(higher.to(tl.int32), axis=0) > 0:
            place = tl.min(tl.where(z == top[:, None], j[None, :], classes), axis=1)
            first = tl.where(higher, place, first)
            base = tl.where(higher, top, base)
            fall = tl.where(higher & (largest != nothing), largest - base, 0.0)[:, None]
            largest = tl.where(higher, top, largest)
            decay = tl.exp(fall)
            tilt = decay * (tilt + fall * total)
            total = decay * total
            squares = decay * decay * squares
            level += fall * (begin // BLOCK)
        x = z - base[:, None]
        e = tl.exp(x)
        tilt += tl.where(e > 0, e * x, 0.0)
        total += e
        squares += e * e
        level += tl.where(inside, x, 0.0)
    whole = tl.sum(total, axis=1)
    log_sum = tl.log(whole)
    y = tl.load(labels + row, mask=here, other=0)
    # A label that names no class reads nothing and shows as NaN.
    named = here & (y >= 0) & (y < classes)
    truth = tl.load(start + y * column_stride, mask=named, other=float("nan")).to(dtype)
    truth = finished(truth, here, scale, cap, SCALED, CAPPED)
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
            STAGES=STAGES if classes > block else 1,
            num_warps=warps,
        )
    return table, predicted
