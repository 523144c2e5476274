"""The largest gap of a bin, whose noise is that of counts."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._binned import assign_bins
from ._bin_rays import OfBins
from ._bin_totals import Binned, Totals
from ._binned_draws import BinnedDraws, l2_gap, largest_gap
from ._interval import inverted
from ._resampled import Events
from ._shape import ShapeName

# Standard errors from zero beyond which a bin's own gap is believed.
_SEEN = 1.5


@dataclass(frozen=True)
class LargestGapDraws(OfBins):
    """The largest error is often that of a bin of few samples, which resampling leaves unmoved.

    So along the ray outcomes are drawn anew: in each bin as many as it holds, or as its weights
    amount to, with the chance that the truth would give them. The shape of the truth is the gap
    of each bin where it stands out from noise, elsewhere the gap that a shape has there.

    The more bins are about as far off, the further noise lifts the largest. Gaps that stand out in
    a sample are further apart than those of the truth, so another ray has the shape alone.

    The largest gap is no smaller than the root of their mean square: where the interval of that
    begins, its own begins at the latest.

    - `binned`: the totals of the `bins` of equal width. `seed`: of the outcomes.
    """

    events: Events
    binned: Binned
    bins: int
    seed: int = 0

    @cached_property
    def typical(self) -> BinnedDraws:
        """The root of the mean square gap in the same bins."""
        return BinnedDraws(self.events, self.binned, l2_gap)

    @cached_property
    def _random(self) -> torch.Generator:
        return torch.Generator(self.events.gap.device).manual_seed(self.seed)

    @cached_property
    def _cell(self) -> Tensor:
        return assign_bins(self.events.confidence, bins=self.bins, binning="width")

    def _totals(self, x: Tensor) -> Tensor:
        """The sum of one number per sample in each bin."""
        empty = torch.zeros(self.bins, dtype=self.events.gap.dtype, device=self.events.gap.device)
        return empty.index_add(0, self._cell, x)

    @cached_property
    def _mass(self) -> Tensor:
        return self._totals(self.events.weights)

    def _mean(self, x: Tensor) -> Tensor:
        """The mean of one number per sample in each bin that has any."""
        filled = self._mass > 0
        weighed = self.events.weights * x.to(self.events.gap.dtype)
        return self._totals(weighed)[filled] / self._mass[filled]

    def _filled(self, shape: ShapeName, seen: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Of each bin with samples: how many they amount to, their confidence, and a gap.

        - `seen`: whether that is its own where it stands out, or the shape everywhere.
        """
        events, filled = self.events, self._mass > 0
        count = self.binned.count[filled]
        confidence, gap, expected = (
            self._mean(x) for x in (events.confidence, events.gap, events.gaps(shape))
        )
        if not seen:
            return count, confidence, expected
        # A bin that is never wrong says little about how often it might be.
        chance = (confidence + expected).clamp(0.01, 0.99)
        stands_out = gap.square() > _SEEN**2 * chance * (1 - chance) / count
        return count, confidence, torch.where(stands_out, gap, expected)

    @property
    def _seen(self) -> float:
        """The largest gap of the sample, computed as those of the draws are, to the last digit."""
        gaps = self._mean(self.events.outcome) - self._mean(self.events.confidence)
        return gaps.abs().max().item() if len(gaps) else 0.0

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Bin totals, then the largest."""
        return self.of_totals(self.binned(weights))

    def fixed_bins(self) -> Binned:
        """All its bins are those of the sample."""
        return self.binned

    def of_totals(self, totals: Totals) -> Float[Tensor, " draws"]:
        """The largest mean gap."""
        return largest_gap(totals, totals.gap[:, None])[:, 0]

    def moved(
        self,
        weights: Float[Tensor, "draws _"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
        *,
        seen: bool = True,
    ) -> Float[Tensor, "draws scales"]:
        """As many draws of the counts as there are rows of weights."""
        count, confidence, gaps = self._filled(shape, seen)
        if not len(count):
            return weights.new_zeros(len(weights), len(scales))
        chance = (confidence + scales[:, None] * gaps).clamp(0, 1)
        size = (len(weights), *chance.shape)
        hits = torch.binomial(
            count.expand(size).contiguous(), chance.expand(size).contiguous(), self._random
        )
        return (hits / count - confidence).abs().amax(dim=-1)

    def truth(
        self,
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
        *,
        seen: bool = True,
    ) -> Float[Tensor, " scales"]:
        """The largest distance of a chance from the confidence."""
        _, confidence, gaps = self._filled(shape, seen)
        if not len(confidence):
            return torch.zeros_like(scales)
        chance = (confidence + scales[:, None] * gaps).clamp(0, 1)
        return (chance - confidence).abs().amax(dim=-1)

    def along(
        self, drawn: Float[Tensor, "draws bins"], scales: Float[Tensor, " scales"], seed: int
    ) -> Float[Tensor, "draws rays scales"]:
        """Its own two, and those of the typical gap."""
        seeded = replace(self, seed=seed)
        own = [seeded.moved(drawn, scales, seen=seen) for seen in (True, False)]
        return torch.cat([torch.stack(own, dim=1), self.typical.along(drawn, scales, seed)], dim=1)

    def truths(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "rays scales"]:
        """The truths of these."""
        own = [self.truth(scales, seen=seen) for seen in (True, False)]
        return torch.cat([torch.stack(own), self.typical.truths(scales)])

    def ends(self, value: float, rays: Tensor, truths: Tensor, level: float) -> tuple[float, float]:
        """Its own, but no lower than where the typical gap begins."""
        # A bin of few samples has few gaps to take, and draws often tie with the value: rounded in
        # another way, it would lie beyond all of them.
        own = (inverted(self._seen, rays[:, ray], truths[ray], level) for ray in range(2))
        lows, highs = zip(*own, strict=True)
        typical = self.typical.draw(self.events.weights[None]).item()
        at_least, _ = self.typical.ends(typical, rays[:, 2:], truths[2:], level)
        return max(min(lows), at_least), max(*highs, at_least)
