"""What the truth behind some gaps may look like, with the noise taken out."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from ..measures._binned import assign_bins

# Bins of equal mass in which the gaps are compared with their own noise.
SHAPE_BINS = 15
# Standard errors that gaps of the other sign must come to, all together, to be believed.
_BELIEVED = 3

ShapeName = Literal["expected", "sparse", "even", "leaning"]


class Shape(NamedTuple):
    """Gaps that the truth may have at each sample's confidence, each up to a factor.

    - `expected`: as much of the gaps as is more than chance, with a mean of at least one standard
      error: a truth of one sign is the hardest to tell from none, so it is never ruled out.
    - `sparse`: in as few bins as leave no more of the gaps unexplained than noise would.
    - `even`: in every bin as many standard errors, to the side that is expected there.
    - `leaning`: the same, but all to the side of the mean, unless what is expected on the other
      is beyond doubt: of gaps of one sign a running sum adds up all the noise there is.
    """

    expected: Float[Tensor, " n"]
    sparse: Float[Tensor, " n"]
    even: Float[Tensor, " n"]
    leaning: Float[Tensor, " n"]


def shape_of(
    confidence: Float[Tensor, " n"],
    gap: Float[Tensor, " n"],
    weights: Float[Tensor, " n"],
) -> Shape:
    r"""What the truth behind some gaps may look like.

    Expected is as much of the mean, of the slope in the confidence, and of what mean and slope
    leave, as is more than chance: the slope is shrunk by $(1 - 1/z^2)_+$, the rest, over $M$ bins
    of equal mass, by James and Stein's factor $(1 - (M - 2) / \chi^2)_+$. Noise goes to zero; a
    real bump stays.

    >>> confidence = torch.linspace(0, 1, 100, dtype=torch.float64)
    >>> shape_of(confidence, 0.3 - 0.2 * confidence, torch.ones(100)).expected[[0, -1]]
    tensor([0.3000, 0.1000], dtype=torch.float64)
    """
    bin_of = assign_bins(confidence, bins=SHAPE_BINS, binning="mass", weights=weights)
    bins = _Bins.of(bin_of, confidence, gap, weights)
    share = bins.share
    mean = _sum(share * gap)
    centred = confidence - _sum(share * confidence)
    spread = _sum(share * centred.square())
    lever = share * centred / torch.where(spread > 0, spread, 1)
    slope = _sum(lever * gap)
    rest = gap - mean - slope * centred
    # Standard errors from what is left: a line that explains everything has none.
    mean_noise, slope_noise = _sum((share * rest).square()), _sum((lever * rest).square())
    main = torch.where(mean < 0, -1, 1)
    far = main * torch.maximum(mean.abs(), mean_noise.sqrt())
    sloping = _beyond_chance(slope.square(), slope_noise) * slope * centred
    expected = far + sloping + _real_part(rest, bins) * rest
    side = torch.where(bins.sums(expected) < 0, -1, 1)
    other = side != main
    across = -main * _sum(other * bins.gaps)
    doubtful = across < _BELIEVED * _sum(other * bins.noise.square()).sqrt()
    size = (_sum(bins.errors.square()) / bins.filled).sqrt().clamp(min=1)
    even, leaning = (
        bins.per_sample(sides * size) for sides in (side, torch.where(doubtful, main, side))
    )
    return Shape(expected, bins.per_sample(_sparse(bins.errors, bins.filled)), even, leaning)


def sparse_in(
    bin_of: Int[Tensor, "*many n"],
    confidence: Float[Tensor, "*many n"],
    gap: Float[Tensor, "*many n"],
    weights: Float[Tensor, "*many n"],
) -> Float[Tensor, "*many n"]:
    """The sparse one alone, of many samples of events on leading axes.

    - `bin_of`: of `SHAPE_BINS` bins of equal mass.
    """
    bins = _Bins.of(bin_of, confidence, gap, weights)
    return bins.per_sample(_sparse(bins.errors, bins.filled))


@dataclass(frozen=True)
class _Bins:
    """Samples in bins, which are compared with their own noise.

    - `place`: the bin of each sample. `share`: what it counts of the whole.
    - `gaps`: their sum in each bin, by shares. `noise`: the standard error of that.
    """

    place: Int[Tensor, "*many n"]
    share: Float[Tensor, "*many n"]
    gaps: Float[Tensor, "*many bins"]
    noise: Float[Tensor, "*many bins"]

    @staticmethod
    def of(place: Tensor, confidence: Tensor, gap: Tensor, weights: Tensor) -> "_Bins":
        """From samples of any weights."""
        share = weights / _sum(weights).clamp(min=torch.finfo(gap.dtype).tiny)
        # A bin that was never wrong may be wrong as often as it says.
        likely = (confidence * (1 - confidence)).clamp(min=0)
        squares, chances = (_added(place, share.square() * x) for x in (gap.square(), likely))
        return _Bins(
            place, share, _added(place, share * gap), torch.maximum(squares, chances).sqrt()
        )

    @property
    def errors(self) -> Float[Tensor, "*many bins"]:
        """The gap of each bin in standard errors."""
        filled = self.noise > 0
        return torch.where(filled, self.gaps / torch.where(filled, self.noise, 1), 0)

    @property
    def filled(self) -> Int[Tensor, "*many 1"]:
        """How many bins have noise; one at least."""
        return _sum(self.noise > 0).clamp(min=1)

    def sums(self, x: Tensor, power: int = 1) -> Float[Tensor, "*many bins"]:
        """In each bin the sum of x, by shares or by a power of them."""
        return _added(self.place, self.share**power * x)

    def per_sample(self, errors: Float[Tensor, "*many bins"]) -> Float[Tensor, "*many n"]:
        """So many standard errors of each bin, as the gap of each sample in it."""
        mass = _added(self.place, self.share)
        gaps = errors * self.noise / torch.where(mass > 0, mass, 1)
        return gaps.gather(-1, self.place)


def _added(place: Int[Tensor, "*many n"], x: Tensor) -> Float[Tensor, "*many bins"]:
    empty = x.new_zeros(*x.shape[:-1], SHAPE_BINS)
    return empty.scatter_add(-1, place, x)


def _sum(x: Tensor) -> Shaped[Tensor, "*many 1"]:
    return x.sum(dim=-1, keepdim=True)


def _sparse(
    errors: Float[Tensor, "*many bins"], filled: Int[Tensor, "*many 1"]
) -> Float[Tensor, "*many bins"]:
    r"""Gaps, in standard errors, less a threshold; those below it are left out.

    What is taken off, $\sum_b \min(|z_b|, t)^2$, is as much as noise alone may come to: one for
    each of $M$ bins, and a standard deviation of that sum, $\sqrt{2M}$. The largest gap is never
    left out, and keeps its size; the others keep their proportion.

    Morozov, "On the solution of functional equations by the method of regularization", 1966.
    """
    size, chance = errors.abs(), filled + (2 * filled).sqrt()
    ascending = size.sort(dim=-1).values
    below = ascending.square().cumsum(-1)
    above = torch.arange(SHAPE_BINS, device=size.device).flip(0)
    # With the threshold at each size in turn: once it is too high, it stays so.
    fitting = _sum(below + above * ascending.square() <= chance)
    taken = torch.nn.functional.pad(below, (1, 0)).gather(-1, fitting)
    left = SHAPE_BINS - fitting
    threshold = ((chance - taken) / left.clamp(min=1)).sqrt()
    threshold = torch.where(left > 0, threshold, ascending[..., -2:-1])
    kept = errors.sign() * (size - threshold).clamp(min=0)
    largest = kept.abs().amax(dim=-1, keepdim=True)
    stretch = ascending[..., -1:] / torch.where(largest > 0, largest, 1)
    return kept * torch.where(largest > 0, stretch, 0)


def _real_part(rest: Tensor, bins: _Bins) -> Tensor:
    """How much of the residual gaps is more than chance."""
    sums, noise = bins.sums(rest), bins.sums(rest.square(), 2)
    filled = noise > 0
    chi_square = _sum(sums.square() / torch.where(filled, noise, 1))
    return _beyond_chance(chi_square, (_sum(filled) - 2).clamp(min=0).to(rest.dtype))


def _beyond_chance(square: Tensor, noise: Tensor) -> Tensor:
    return (1 - noise / torch.where(square > 0, square, 1)).clamp(0, 1)
