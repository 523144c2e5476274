"""What the truth behind some gaps may look like, with the noise taken out."""

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._binned import assign_bins

# Bins of equal mass in which the gaps are compared with their own noise.
_BINS = 15


def expected_gap(
    confidence: Float[Tensor, " n"],
    gap: Float[Tensor, " n"],
    weights: Float[Tensor, " n"],
) -> Float[Tensor, " n"]:
    r"""For each sample, the gap to expect at its confidence.

    A straight line in the confidence, and as much of what the line leaves as is more than
    chance: over equal-mass bins the rest is shrunk by James and Stein's factor
    $(1 - (M - 2) / \chi^2)_+$. Pure noise goes to zero; a real bump stays.

    >>> confidence = torch.linspace(0, 1, 100, dtype=torch.float64)
    >>> expected_gap(confidence, 0.1 - 0.2 * confidence, torch.ones(100))[[0, -1]]
    tensor([ 0.1000, -0.1000], dtype=torch.float64)
    """
    total = weights.sum().clamp(min=torch.finfo(gap.dtype).tiny)
    centred = confidence - (weights * confidence).sum() / total
    spread = (weights * centred.square()).sum()
    slope = (weights * centred * gap).sum() / torch.where(spread > 0, spread, 1)
    line = (weights * gap).sum() / total + slope * centred
    rest = gap - line
    bin_of = assign_bins(confidence, bins=_BINS, binning="mass", weights=weights)
    empty = torch.zeros(_BINS, dtype=gap.dtype, device=gap.device)
    sums = empty.index_add(0, bin_of, weights * rest)
    noise = empty.index_add(0, bin_of, (weights * rest).square())
    filled = noise > 0
    chi_square = (sums.square() / torch.where(filled, noise, 1)).sum()
    kept = 1 - (filled.sum() - 2) / torch.where(chi_square > 0, chi_square, 1)
    return line + kept.clamp(0, 1) * rest
