"""The label-binned error of many resamples."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._binned import assign_bins, bin_mean
from ._bin_rays import OfBins
from ._bin_totals import Binned, Totals, by_width
from ._ranking import Levels
from ._resampled import Events
from ._shape import ShapeName


@dataclass(frozen=True)
class LabelBinnedDraws(OfBins):
    """Each forecast against the mean outcome of its bin of equal width.

    Within a bin the forecasts below the mean and those above it are two runs of the ascending
    order, so four running sums give the sum of distances.
    """

    events: Events
    bins: int

    @cached_property
    def levels(self) -> Levels:
        """The order of the confidences."""
        return Levels.of(self.events.confidence)

    @cached_property
    def binned(self) -> Binned:
        """The totals of the bins."""
        return by_width(self.events, self.bins)

    @cached_property
    def starts(self) -> Tensor:
        """The first place of each bin, and the end."""
        bin_of = assign_bins(self.events.confidence, bins=self.bins, binning="width")
        return torch.nn.functional.pad(bin_of.bincount(minlength=self.bins).cumsum(0), (1, 0))

    def _distances(
        self,
        weights: Float[Tensor, "#draws n"],
        totals: Totals,
        gaps: Float[Tensor, "draws scales bins"],
    ) -> Float[Tensor, "draws scales"]:
        wide = self.events.confidence.to(self.events.gap.dtype)
        ordered = wide[self.levels.source].contiguous()
        size = totals.size[:, None]
        weight = weights[:, self.levels.source] / torch.where(size > 0, size, 1)
        mass, moment = (
            torch.nn.functional.pad(x.cumsum(1), (1, 0)).expand(len(gaps), -1)
            for x in (weight, weight * ordered)
        )
        first, last = self.starts[:-1], self.starts[1:]
        forecast = bin_mean(totals.hits - totals.gap, totals.mass)

        def distance(of_bin: Tensor) -> Tensor:
            rate = forecast + bin_mean(of_bin, totals.mass)
            middle = torch.searchsorted(ordered, rate.contiguous())
            middle = torch.minimum(torch.maximum(middle, first), last)
            lower = rate * (mass.gather(1, middle) - mass[:, first])
            lower = lower - (moment.gather(1, middle) - moment[:, first])
            upper = moment[:, last] - moment.gather(1, middle)
            upper = upper - rate * (mass[:, last] - mass.gather(1, middle))
            return (lower + upper).sum(dim=1)

        return torch.stack([distance(each) for each in gaps.unbind(1)], dim=1)

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Running sums of each row."""
        totals = self.binned(weights)
        return self._distances(weights, totals, totals.gap[:, None])[:, 0]

    def fixed_bins(self) -> Binned:
        """All its bins are those of the sample."""
        return self.binned

    def of_totals(self, totals: Totals) -> Float[Tensor, " draws"]:
        """The running sums of the sample, another mean outcome of each bin."""
        return self._distances(self.events.weights[None], totals, totals.gap[:, None])[:, 0]

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """The mean outcome of each bin moved, its forecasts left where they are."""
        totals = self.binned(weights)
        gaps = totals.moved(self.events, self.events.gaps(shape), scales)
        return self._distances(weights, totals, gaps)

    def truth(
        self, scales: Float[Tensor, " scales"], shape: ShapeName = "expected"
    ) -> Float[Tensor, " scales"]:
        """In the bins of the sample."""
        return self._less_luck(self.moved(self.events.weights[None], scales, shape)[0], scales)

    def truths(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "rays scales"]:
        """Of chances that end at zero and one."""
        return self._less_luck(super().truths(scales), scales)

    def _less_luck(
        self, truth: Float[Tensor, "*rays scales"], scales: Float[Tensor, " scales"]
    ) -> Float[Tensor, "*rays scales"]:
        """The distance left at scale zero, that of forecasts within a bin, is itself estimated.

        Two of its standard errors are taken off there, where the lower end of an interval stops.
        """
        weights = self.events.weights[None]
        spread = self.moved(weights, torch.zeros_like(scales[:1]))[0, 0]
        bin_of = assign_bins(self.events.confidence, bins=self.bins, binning="width")
        wide = self.events.confidence.to(self.events.gap.dtype)
        mass = spread.new_zeros(self.bins).index_add(0, bin_of, self.events.weights)
        sums = spread.new_zeros(self.bins).index_add(0, bin_of, self.events.weights * wide)
        distance = (bin_mean(sums, mass)[bin_of] - wide).abs() - spread
        share = self.events.shares(torch.ones_like(distance))
        error = (self.events.squares(share) * distance.square()).sum().sqrt()
        return torch.where(scales == 0, (truth - 2 * error).clamp(min=0), truth)
