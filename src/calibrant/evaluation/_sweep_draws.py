"""The sweep's error of many resamples."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._binned import bin_mean
from ..measures._sweep import sweep_bins
from ._bin_rays import OfBins
from ._bin_totals import Binned, Totals
from ._binned_draws import BinnedDraws, l2_gap
from ._resampled import Events
from ._shape import ShapeName

# Of the resamples, at a place of the ray; where fewer rise all count, or none might be left.
_FEWEST = 0.1


@dataclass(frozen=True)
class SweepDraws(OfBins):
    """The sweep's bins: those of each resample for its value, the sample's own along the ray.

    Bins found anew for every resample would rise with its noise, and count that as calibration
    error. But the sample's own were chosen because their accuracies rise, and such bins hold less
    noise than others. So of the moved resamples those count whose accuracies rise in them too.

    - `found`: where the sample's own begin, if that is known: the least confidence of each but the
      lowest.
    """

    events: Events
    found: Float[Tensor, " inner"] | None = None

    def _bins(self, weights: Tensor) -> Binned:
        events = self.events
        outcome = events.outcome.to(events.confidence.dtype)
        bin_of = sweep_bins(events.confidence, outcome, weights, "mass")
        # Ties leave many bins empty, over which the sweep passes.
        filled, place = bin_of.unique(return_inverse=True)
        return Binned(events, place, len(filled))

    @cached_property
    def own(self) -> BinnedDraws:
        """The same in the bins of the sample itself."""
        if self.found is None:
            return BinnedDraws(self.events, self._bins(self.events.weights), l2_gap)
        bin_of = torch.bucketize(self.events.confidence, self.found, right=True)
        binned = Binned(self.events, bin_of, len(self.found) + 1)
        return BinnedDraws(self.events, binned, l2_gap)

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """One search for each row."""
        found = (self._bins(row)(row[None]) for row in weights)
        return torch.cat([l2_gap(totals, totals.gap[:, None])[:, 0] for totals in found])

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """The gaps of the sample's bins, moved, where the accuracies still rise."""
        totals, events = self.own.binned(weights), self.events
        return self._rising(totals, totals.moved(events, events.gaps(shape), scales))

    def fixed_bins(self) -> Binned:
        """Those that its own outcomes chose."""
        return self.own.binned

    def of_totals(self, totals: Totals) -> Float[Tensor, " draws"]:
        """Where the accuracies rise."""
        return self._rising(totals, totals.gap[:, None])[:, 0]

    def of_true_totals(self, totals: Totals) -> Float[Tensor, " draws"]:
        """Whether they rise or not."""
        return self.own.of_totals(totals)

    def _rising(
        self, totals: Totals, gaps: Float[Tensor, "draws scales bins"]
    ) -> Float[Tensor, "draws scales"]:
        forecast = bin_mean(totals.hits - totals.gap, totals.mass)
        rate = forecast[:, None] + bin_mean(gaps, totals.mass[:, None])
        rising = (rate.diff(dim=-1) >= 0).all(dim=-1)
        rising |= rising.double().mean(dim=0) < _FEWEST
        return torch.where(rising, l2_gap(totals, gaps), torch.nan)

    def truth(
        self, scales: Float[Tensor, " scales"], shape: ShapeName = "expected"
    ) -> Float[Tensor, " scales"]:
        """In the bins of the sample."""
        return self.own.truth(scales, shape)
