"""The gradient of the logits from those of the statistics of their rows: one read, one write."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._finish import AS_IT_IS, Finish
from ._finish_tile import finished, pulled_back, settings
from ._launch import bits_of, on_device_of
from ._table import Ranked
from ._tiles import ALL, Part, plan


@triton.jit
def _upstream(vector, row, here):  # type: ignore[no-untyped-def]
    return tl.load(vector + row, mask=here, other=0.0)[:, None]


@triton.jit  # type: ignore[untyped-decorator]
def _gradient(  # type: ignore[no-untyped-def]
    logits,
    labels,
    table,
    predicted,
    by_true_log_prob,
    by_confidence,
    by_entropy,
    by_sum_of_squares,
    by_mean_log_prob,
    by_soft_rank,
    rank_table,
    temperature,
    gradient,
    n,
    classes,
    row_stride,
    column_stride,
    gradient_row_stride,
    gradient_column_stride,
    first,
    all_classes,
    scale,
    cap,
    SCALED: tl.constexpr,
    CAPPED: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The formula is in docs/derivations/rows.md; an upstream gradient of None costs nothing."""
    dtype = table.dtype.element_ty
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    here = row < n
    inside = here[:, None] & (j < classes)
    far = row.to(tl.int64)[:, None]
    z = tl.load(logits + far * row_stride + j * column_stride, mask=inside, other=0.0).to(dtype)
    z = finished(z, inside, scale, cap, SCALED, CAPPED)
    base, log_sum = _upstream(table + 6 * n, row, here), _upstream(table + 7 * n, row, here)
    log_p = z - base - log_sum
    p = tl.exp(log_p)
    slope = tl.zeros((ROWS, BLOCK), dtype)
    own = tl.zeros((ROWS, BLOCK), dtype)
    if by_true_log_prob is not None:
        g = _upstream(by_true_log_prob, row, here)
        slope -= g
        own += tl.where(j + first == tl.load(labels + row, mask=here, other=0)[:, None], g, 0.0)
    if by_confidence is not None:
        g = _upstream(by_confidence, row, here) * _upstream(table + n, row, here)
        slope -= g
        own += tl.where(j + first == tl.load(predicted + row, mask=here, other=0)[:, None], g, 0.0)
    if by_entropy is not None:
        # A class ruled out has no share in the entropy.
        surprise = tl.where(p > 0, log_p, 0.0) + _upstream(table + 2 * n, row, here)
        slope -= _upstream(by_entropy, row, here) * surprise
    if by_sum_of_squares is not None:
        above = p - _upstream(table + 3 * n, row, here)
        slope += 2.0 * _upstream(by_sum_of_squares, row, here) * above
    if by_mean_log_prob is not None:
        g = _upstream(by_mean_log_prob, row, here)
        slope -= g
        own += g / all_classes
    if by_soft_rank is not None:
        steepness = temperature.to(tl.float64, bitcast=True).to(dtype)
        truth = _upstream(rank_table + 3 * n, row, here)
        share = 1.0 / (1.0 + tl.exp(-steepness * (p - truth)))
        is_truth = j + first == tl.load(labels + row, mask=here, other=0)[:, None]
        others = -_upstream(rank_table + 4 * n, row, here)
        steep = tl.where(is_truth, others, steepness * share * (1.0 - share))
        steep -= _upstream(rank_table + 5 * n, row, here)
        slope += _upstream(by_soft_rank, row, here) * steep
    target = gradient + far * gradient_row_stride + j * gradient_column_stride
    by_logit = pulled_back(p * slope + own, z, scale, cap, SCALED, CAPPED)
    tl.store(target, by_logit, mask=inside)


def gradient(
    logits: Tensor,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: tuple[Tensor | None, ...],
    *,
    rank: Ranked | None = None,
    part: Part = ALL,
    finish: Finish = AS_IT_IS,
    in_place: bool = False,
) -> Tensor:
    """Gradient of the logits from those of `DIFFERENTIABLE`, in that order.

    - `rank`: what comes from the soft rank.
    - `part`: which classes these logits are of, if not of all.
    - `in_place`: write it over the logits.
    """
    n, classes = logits.shape
    found = logits if in_place else torch.empty_like(logits)
    rows, block, warps = plan(classes)
    with on_device_of(logits):
        _gradient[(triton.cdiv(n, rows), triton.cdiv(classes, block))](
            logits,
            labels.contiguous(),
            table,
            predicted,
            *(None if each is None else each.contiguous() for each in upstream),
            None if rank is None else rank.upstream.contiguous(),
            None if rank is None else rank.table,
            bits_of(0.0 if rank is None else float(rank.temperature)),
            found,
            n,
            classes,
            *logits.stride(),
            *found.stride(),
            part.first,
            part.classes or classes,
            **settings(finish),
            ROWS=rows,
            BLOCK=block,
            num_warps=warps,
        )
    return found
