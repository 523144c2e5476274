"""The soft rank of the true class, without a table of probabilities."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._finish import AS_IT_IS, Finish
from ._finish_tile import finished, settings
from ._launch import bits_of, on_device_of
from ._table import RANK_TABLE, arithmetic
from ._tiles import plan


@triton.jit  # type: ignore[untyped-decorator]
def _soft_rank(  # type: ignore[no-untyped-def]
    logits,
    labels,
    table,
    known,
    temperature,
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
    temperature = temperature.to(tl.float64, bitcast=True).to(dtype)
    nothing = float("-inf")
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = row < n
    start = (logits + row.to(tl.int64) * row_stride)[:, None]
    if known is not None:
        base = tl.load(known + 6 * n + row, mask=here, other=0.0)
        log_sum = tl.load(known + 7 * n + row, mask=here, other=0.0)
    else:
        largest = tl.full((ROWS,), nothing, dtype)
        total = tl.zeros((ROWS, BLOCK), dtype)
        for begin in range(0, classes, BLOCK):
            j = begin + tl.arange(0, BLOCK)[None, :]
            inside = here[:, None] & (j < classes)
            z = tl.load(start + j * column_stride, mask=inside, other=nothing).to(dtype)
            z = finished(z, inside, scale, cap, SCALED, CAPPED)
            raised = tl.maximum(largest, tl.max(z, axis=1))
            base = tl.where(raised == nothing, 0.0, raised)
            fall = tl.where(largest == nothing, 0.0, largest - base)
            total = total * tl.exp(fall)[:, None] + tl.exp(z - base[:, None])
            largest = raised
        base = tl.where(largest == nothing, 0.0, largest)
        log_sum = tl.log(tl.sum(total, axis=1))
    y = tl.load(labels + row, mask=here, other=0)
    named = (here & (y >= 0) & (y < classes))[:, None]
    truth = tl.load(start + y[:, None] * column_stride, mask=named, other=float("nan")).to(dtype)
    truth = finished(truth, here[:, None], scale, cap, SCALED, CAPPED)
    own = tl.exp(truth - base[:, None] - log_sum[:, None])
    beaten = tl.zeros((ROWS, BLOCK), dtype)
    steep = tl.zeros((ROWS, BLOCK), dtype)
    steep_mean = tl.zeros((ROWS, BLOCK), dtype)
    for begin in range(0, classes, BLOCK):
        j = begin + tl.arange(0, BLOCK)[None, :]
        other = here[:, None] & (j < classes) & (j != y[:, None])
        z = tl.load(start + j * column_stride, mask=other, other=nothing).to(dtype)
        z = finished(z, other, scale, cap, SCALED, CAPPED)
        p = tl.exp(z - base[:, None] - log_sum[:, None])
        share = 1.0 / (1.0 + tl.exp(-temperature * (p - own)))
        slope = tl.where(other, temperature * share * (1.0 - share), 0.0)
        beaten += tl.where(other, share, 0.0)
        steep += slope
        steep_mean += slope * p
    own = tl.sum(own, axis=1)
    slopes = tl.sum(steep, axis=1)
    # The true class meets itself at one half, and the rank counts from one.
    tl.store(table + row, 1.0 + tl.sum(beaten, axis=1), mask=here)
    tl.store(table + n + row, base, mask=here)
    tl.store(table + 2 * n + row, log_sum, mask=here)
    tl.store(table + 3 * n + row, own, mask=here)
    tl.store(table + 4 * n + row, slopes, mask=here)
    tl.store(table + 5 * n + row, tl.sum(steep_mean, axis=1) - slopes * own, mask=here)


def ranks(
    logits: Tensor,
    labels: Tensor,
    temperature: float,
    finish: Finish = AS_IT_IS,
    known: Tensor | None = None,
) -> Tensor:
    """A table whose first row holds the ranks, the others what `rank_gradient` needs.

    - `known`: the table of `statistics`, where it is there: it spares one of two passes.
    """
    n, classes = logits.shape
    table = torch.empty(RANK_TABLE, n, dtype=arithmetic(logits.dtype), device=logits.device)
    rows, block, warps = plan(classes)
    with on_device_of(logits):
        _soft_rank[(triton.cdiv(n, rows),)](
            logits,
            labels.contiguous(),
            table,
            known,
            bits_of(float(temperature)),
            n,
            classes,
            *logits.stride(),
            **settings(finish),
            ROWS=rows,
            BLOCK=block,
            num_warps=warps,
        )
    return table
