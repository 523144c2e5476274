"""Norms of the gaps of bins, over many resamples."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..criteria import root
from ..measures._binned import bin_mean
from ._bin_rays import OfBins
from ._bin_totals import Binned, Totals
from ._resampled import Events
from ._shape import ShapeName

# Gaps held at once, over resamples, truths and bins.
_AT_ONCE = 2**22

Reduce = Callable[[Totals, Float[Tensor, "draws scales bins"]], Float[Tensor, "draws scales"]]


def total_gap(totals: Totals, gaps: Tensor) -> Tensor:
    """The l1 norm: gaps are shares already."""
    return gaps.abs().sum(dim=-1)


def l2_gap(totals: Totals, gaps: Tensor) -> Tensor:
    """The l2 norm."""
    return root((gaps * _mean(totals, gaps)).sum(dim=-1))


def largest_gap(totals: Totals, gaps: Tensor) -> Tensor:
    """The largest mean gap of a bin."""
    return _mean(totals, gaps).abs().amax(dim=-1)


def debiased_gap(totals: Totals, gaps: Tensor) -> Tensor:
    """The l2 norm, less what noise adds to its square."""
    count = totals.mass * totals.size[:, None]
    rate = bin_mean(totals.hits, totals.mass)
    # A count is a sum of shares, so one sample may come to a little more than one.
    several = count > 1 + 1e-9
    noise = rate * (1 - rate) / torch.where(several, count - 1, 1)
    squares = totals.mass[:, None] * (_mean(totals, gaps).square() - noise[:, None])
    return root(torch.where(several[:, None], squares, 0).sum(dim=-1))


def _mean(totals: Totals, gaps: Tensor) -> Tensor:
    mass = totals.mass[:, None]
    return torch.where(mass > 0, bin_mean(gaps, mass), 0)


@dataclass(frozen=True)
class BinnedDraws(OfBins):
    """A norm of the gaps of bins.

    - `reduce`: the norm. `of_truth`: the norm a truth has, where the estimate is corrected
      for noise that a truth does not have.
    """

    events: Events
    binned: Binned
    reduce: Reduce
    of_truth: Reduce | None = None

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Bin totals, then the norm."""
        return self.of_totals(self.binned(weights))

    def fixed_bins(self) -> Binned:
        """All its bins are those of the sample."""
        return self.binned

    def of_totals(self, totals: Totals) -> Float[Tensor, " draws"]:
        """The norm."""
        return self.reduce(totals, totals.gap[:, None])[:, 0]

    def of_true_totals(self, totals: Totals) -> Float[Tensor, " draws"]:
        """The norm that a truth has."""
        return (self.of_truth or self.reduce)(totals, totals.gap[:, None])[:, 0]

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """The totals once, the norm for every scale."""
        return self._along(shape, weights, scales, self.reduce)

    def truth(
        self, scales: Float[Tensor, " scales"], shape: ShapeName = "expected"
    ) -> Float[Tensor, " scales"]:
        """The norm of the truth's gaps in the bins of the original sample."""
        reduce, own = self.of_truth or self.reduce, self.events.weights[None]
        return self._along(shape, own, scales, reduce)[0]

    def _along(self, shape: ShapeName, weights: Tensor, scales: Tensor, reduce: Reduce) -> Tensor:
        totals, gaps = self.binned(weights), self.events.gaps(shape)
        few = max(1, _AT_ONCE // totals.gap.numel())
        parts = [
            reduce(totals, totals.moved(self.events, gaps, some)) for some in scales.split(few)
        ]
        return torch.cat(parts, dim=1)
