"""What the truth behind some gaps may look like, with the noise taken out."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._binned import assign_bins

# Bins of equal mass in which the gaps are compared with their own noise.
_BINS = 15


class Shape(NamedTuple):
    """The gap to expect at each sample's confidence.

    - `shrunk`: all of it that is more than chance.
    - `expected`: the same, but a mean within one standard error of zero is put at one standard
      error: a truth of one sign is the hardest to tell from none, so it is never ruled out.
    - `freedom`: how many numbers were fitted, one that was shrunk by half being half of one.
    """

    shrunk: Float[Tensor, " n"]
    expected: Float[Tensor, " n"]
    freedom: Float[Tensor, ""]


def shape_of(
    confidence: Float[Tensor, " n"],
    gap: Float[Tensor, " n"],
    weights: Float[Tensor, " n"],
) -> Shape:
    r"""What the truth behind some gaps may look like.

    As much of the mean, of the slope in the confidence, and of what mean and slope leave, as is
    more than chance: mean and slope are shrunk by $(1 - 1/z^2)_+$, the rest, over $M$ bins of
    equal mass, by James and Stein's factor $(1 - (M - 2) / \chi^2)_+$. Noise goes to zero; a real
    bump stays.

    >>> confidence = torch.linspace(0, 1, 100, dtype=torch.float64)
    >>> shape_of(confidence, 0.3 - 0.2 * confidence, torch.ones(100)).expected[[0, -1]]
    tensor([0.3000, 0.1000], dtype=torch.float64)
    """
    total = weights.sum().clamp(min=torch.finfo(gap.dtype).tiny)
    share = weights / total
    mean = (share * gap).sum()
    centred = confidence - (share * confidence).sum()
    spread = (share * centred.square()).sum()
    lever = share * centred / torch.where(spread > 0, spread, 1)
    slope = (lever * gap).sum()
    rest = gap - mean - slope * centred
    # Standard errors from what is left: a line that explains everything has none.
    mean_noise, slope_noise = (share * rest).square().sum(), (lever * rest).square().sum()
    real_mean = _beyond_chance(mean.square(), mean_noise)
    real_slope = _beyond_chance(slope.square(), slope_noise)
    real_rest, bins = _real_part(confidence, rest, share)
    far = torch.where(mean < 0, -1, 1) * torch.maximum(mean.abs(), mean_noise.sqrt())
    around = real_slope * slope * centred + real_rest * rest
    freedom = real_mean + real_slope + real_rest * bins
    return Shape(real_mean * mean + around, far + around, freedom)


def _real_part(confidence: Tensor, rest: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """How much of the residual gaps is more than chance, and of how many bins they were free."""
    bin_of = assign_bins(confidence, bins=_BINS, binning="mass", weights=share)
    empty = torch.zeros(_BINS, dtype=rest.dtype, device=rest.device)
    sums = empty.index_add(0, bin_of, share * rest)
    noise = empty.index_add(0, bin_of, (share * rest).square())
    filled = noise > 0
    chi_square = (sums.square() / torch.where(filled, noise, 1)).sum()
    free = (filled.sum() - 2).clamp(min=0).to(rest.dtype)
    return _beyond_chance(chi_square, free), free


def _beyond_chance(square: Tensor, noise: Tensor) -> Tensor:
    return (1 - noise / torch.where(square > 0, square, 1)).clamp(0, 1)
