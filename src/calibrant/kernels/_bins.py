"""Soft-binned errors of a training batch in two launches: memberships are computed, never kept."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..measures._soft_bins import SoftBins
from ._launch import bits_of, on_device_of

_BLOCK = 64
# Of the first launch; every program of the second adds up what these found.
_MOST_BLOCKS = 64
_SUMS = 4


@triton.jit
def _softmax(c, bin, bins, sharpness):  # type: ignore[no-untyped-def]
    """Memberships before any is given to every bin, and the centres of the bins."""
    centre = (bin.to(tl.float64) + 0.5) / bins
    x = centre[None, :] * (2.0 * c[:, None] - centre[None, :]) * sharpness
    x = tl.where((bin < bins)[None, :], x, float("-inf"))
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    return e / tl.sum(e, axis=1)[:, None], centre


@triton.jit  # type: ignore[untyped-decorator]
def _sums_of_bins(  # type: ignore[no-untyped-def]
    confidence,
    outcome,
    sums,
    sharpness,
    scale,
    n,
    bins,
    blocks,
    BLOCK: tl.constexpr,
    BINS: tl.constexpr,
):
    """Each block's share of what every bin holds: mass, outcomes, gaps, squared confidences."""
    sharpness = sharpness.to(tl.float64, bitcast=True)
    scale = scale.to(tl.float64, bitcast=True)
    even = (scale - 1.0) / bins
    bin = tl.arange(0, BINS)
    mass = tl.zeros((BINS,), tl.float64)
    happened = tl.zeros((BINS,), tl.float64)
    gaps = tl.zeros((BINS,), tl.float64)
    squares = tl.zeros((BINS,), tl.float64)
    for start in range(tl.program_id(0) * BLOCK, n, blocks * BLOCK):
        i = start + tl.arange(0, BLOCK)
        here = i < n
        c = tl.load(confidence + i, mask=here, other=0.0).to(tl.float64)
        y = tl.load(outcome + i, mask=here, other=0.0).to(tl.float64)
        u, _ = _softmax(c, bin, bins, sharpness)
        u = (u + even) / scale
        u = tl.where(here[:, None] & (bin < bins)[None, :], u, 0.0)
        mass += tl.sum(u, axis=0)
        happened += tl.sum(u * y[:, None], axis=0)
        gaps += tl.sum(u * (y - c)[:, None], axis=0)
        squares += tl.sum(u * (c * c)[:, None], axis=0)
    own = sums + tl.program_id(0) * 4 * BINS + bin
    tl.store(own, mass)
    tl.store(own + BINS, happened)
    tl.store(own + 2 * BINS, gaps)
    tl.store(own + 3 * BINS, squares)


@triton.jit
def _moved(softmax, centre, values):  # type: ignore[no-untyped-def]
    """How a mean of values over the bins of each sample moves with it, up to a factor."""
    mean_centre = tl.sum(softmax * centre[None, :], axis=1)
    mean_value = tl.sum(softmax * values[None, :], axis=1)
    return tl.sum(softmax * (values * centre)[None, :], axis=1) - mean_centre * mean_value


@triton.jit  # type: ignore[untyped-decorator]
def _error_and_gradient(  # type: ignore[no-untyped-def]
    confidence,
    outcome,
    sums,
    value,
    by_confidence,
    by_outcome,
    sharpness,
    scale,
    n,
    bins,
    blocks,
    BLOCK: tl.constexpr,
    BINS: tl.constexpr,
    BLOCKS: tl.constexpr,
    NORM: tl.constexpr,
    LABEL: tl.constexpr,
):
    """The formulas are in docs/derivations/soft-bins.md; the first block writes the value."""
    sharpness = sharpness.to(tl.float64, bitcast=True)
    scale = scale.to(tl.float64, bitcast=True)
    even = (scale - 1.0) / bins
    bin = tl.arange(0, BINS)
    block = tl.arange(0, BLOCKS)
    every = sums + block[:, None] * 4 * BINS + bin[None, :]
    known = (block < blocks)[:, None]
    mass = tl.sum(tl.load(every, mask=known, other=0.0), axis=0)
    happened = tl.sum(tl.load(every + BINS, mask=known, other=0.0), axis=0)
    # Gaps are summed as they are: the difference of two means would lose small ones.
    gaps = tl.sum(tl.load(every + 2 * BINS, mask=known, other=0.0), axis=0)
    # A bin with next to no mass has no mean, and weighs nothing.
    some = mass > 2.2250738585072014e-308
    safe = tl.where(some, mass, 1.0)
    mean_outcome = tl.where(some, happened, 0.0) / safe
    gap = tl.where(some, gaps, 0.0) / safe

    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = i < n
    c = tl.load(confidence + i, mask=here, other=0.0).to(tl.float64)
    y = tl.load(outcome + i, mask=here, other=0.0).to(tl.float64)
    softmax, centre = _softmax(c, bin, bins, sharpness)
    u = (softmax + even) / scale
    step = 2.0 * sharpness / scale
    if LABEL:
        squares = tl.sum(tl.load(every + 3 * BINS, mask=known, other=0.0), axis=0)
        forecast = happened - gaps
        error = tl.sum(mean_outcome * (mass * mean_outcome - 2.0 * forecast) + squares, axis=0)
        constant = _moved(softmax, centre, mean_outcome * mean_outcome - 2.0 * gap * mean_outcome)
        by_c = _moved(softmax, centre, mean_outcome)
        by_y = _moved(softmax, centre, 2.0 * gap)
        here_mean = tl.sum(u * mean_outcome[None, :], axis=1)
        pull = tl.sum(u * (2.0 * gap)[None, :], axis=1)
        slope = step * (constant - 2.0 * c * by_c + y * by_y) - 2.0 * (here_mean - c)
    else:
        size = tl.abs(gap)
        sign = tl.where(gap > 0, 1.0, tl.where(gap < 0, -1.0, 0.0)).to(tl.float64)
        if NORM == 1:
            by_gap, by_mass = sign, 0.0 * size
            error = tl.sum(mass * size, axis=0)
        else:
            by_gap, by_mass = 2.0 * gap, -gap * gap
            error = tl.sum(mass * gap * gap, axis=0)
        pull = tl.sum(u * by_gap[None, :], axis=1)
        moves = (y - c) * _moved(softmax, centre, by_gap) + _moved(softmax, centre, by_mass)
        slope = step * moves - pull
    count = n.to(tl.float64)
    tl.store(by_confidence + i, slope / count, mask=here)
    tl.store(by_outcome + i, pull / count, mask=here)
    if tl.program_id(0) == 0:
        tl.store(value, error / count)


def error_with_gradient(
    confidence: Tensor, outcome: Tensor, soft: SoftBins, norm: float, *, label: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Eq. 11, or 12 if `label`, before the root; gradients by confidence and by outcome."""
    n = len(confidence)
    tiles, bins = triton.cdiv(n, _BLOCK), max(2, triton.next_power_of_2(soft.bins))
    blocks = min(tiles, _MOST_BLOCKS)
    confidence, outcome = confidence.contiguous(), outcome.contiguous()
    sums = torch.empty(blocks, _SUMS, bins, dtype=torch.float64, device=confidence.device)
    value = confidence.new_empty(())
    by_confidence, by_outcome = torch.empty_like(confidence), torch.empty_like(confidence)
    sharpness, scale = bits_of(1 / soft.temperature), bits_of(1 + soft.bins * soft.even)
    with on_device_of(confidence):
        _sums_of_bins[(blocks,)](
            confidence,
            outcome,
            sums,
            sharpness,
            scale,
            n,
            soft.bins,
            blocks,
            BLOCK=_BLOCK,
            BINS=bins,
        )
        _error_and_gradient[(tiles,)](
            confidence,
            outcome,
            sums,
            value,
            by_confidence,
            by_outcome,
            sharpness,
            scale,
            n,
            soft.bins,
            blocks,
            BLOCK=_BLOCK,
            BINS=bins,
            BLOCKS=_MOST_BLOCKS,
            NORM=int(norm),
            LABEL=label,
        )
    return value, by_confidence, by_outcome
