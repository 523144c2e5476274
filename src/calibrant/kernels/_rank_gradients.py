"""The gradient of the logits from that of soft ranks: one read, one write."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._finish import AS_IT_IS, Finish
from ._finish_tile import finished, pulled_back, settings
from ._launch import bits_of, on_device_of
from ._tiles import ALL, Part, plan


@triton.jit
def _of_row(vector, row, here):  # type: ignore[no-untyped-def]
    return tl.load(vector + row, mask=here, other=0.0)[:, None]


@triton.jit  # type: ignore[untyped-decorator]
def _gradient(  # type: ignore[no-untyped-def]
    logits,
    labels,
    table,
    upstream,
    gradient,
    temperature,
    n,
    classes,
    row_stride,
    column_stride,
    gradient_row_stride,
    gradient_column_stride,
    first,
    scale,
    cap,
    SCALED: tl.constexpr,
    CAPPED: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The formula is in docs/derivations/rows.md."""
    dtype = table.dtype.element_ty
    temperature = temperature.to(tl.float64, bitcast=True).to(dtype)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    here = row < n
    inside = here[:, None] & (j < classes)
    far = row.to(tl.int64)[:, None]
    z = tl.load(logits + far * row_stride + j * column_stride, mask=inside, other=0.0).to(dtype)
    z = finished(z, inside, scale, cap, SCALED, CAPPED)
    p = tl.exp(z - _of_row(table + n, row, here) - _of_row(table + 2 * n, row, here))
    own, slopes = _of_row(table + 3 * n, row, here), _of_row(table + 4 * n, row, here)
    share = 1.0 / (1.0 + tl.exp(-temperature * (p - own)))
    true_class = j + first == tl.load(labels + row, mask=here, other=0)[:, None]
    slope = tl.where(true_class, -slopes, temperature * share * (1.0 - share))
    by_logit = _of_row(upstream, row, here) * p * (slope - _of_row(table + 5 * n, row, here))
    target = gradient + far * gradient_row_stride + j * gradient_column_stride
    by_logit = pulled_back(by_logit, z, scale, cap, SCALED, CAPPED)
    tl.store(target, by_logit, mask=inside)


def rank_gradient(
    logits: Tensor,
    labels: Tensor,
    table: Tensor,
    upstream: Tensor,
    temperature: float,
    *,
    part: Part = ALL,
    finish: Finish = AS_IT_IS,
    in_place: bool = False,
) -> Tensor:
    """Gradient of the logits from that of the ranks; settings as in `gradient` of rows."""
    n, classes = logits.shape
    found = logits if in_place else torch.empty_like(logits)
    rows, block, warps = plan(classes)
    with on_device_of(logits):
        _gradient[(triton.cdiv(n, rows), triton.cdiv(classes, block))](
            logits,
            labels.contiguous(),
            table,
            upstream.contiguous(),
            found,
            bits_of(float(temperature)),
            n,
            classes,
            *logits.stride(),
            *found.stride(),
            part.first,
            **settings(finish),
            ROWS=rows,
            BLOCK=block,
            num_warps=warps,
        )
    return found
