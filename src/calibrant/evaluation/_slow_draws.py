"""Sweep, smooth and label-binned errors of many resamples."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from .._tables import in_numpy
from ..measures._binned import assign_bins, bin_mean
from ..measures._smooth import (
    _deposit,
    _integral_of_size,
    _smoothed,
    _Waves,
    remaining_of_rows,
)
from ..measures._sweep import sweep_bins
from ._bin_rays import OfBins
from ._bin_totals import Binned, Totals, by_width
from ._binned_draws import BinnedDraws, l2_gap
from ._ranking import Levels
from ._resampled import AlongRay, Events
from ._shape import ShapeName

# Steps of the secant rule after which the width is known to the last digits.
_STEPS = 8
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


@dataclass(frozen=True)
class SmoothDraws(AlongRay):
    """The fixed point of every resample by the secant rule, all at once."""

    events: Events
    most: int | None = 100
    scales: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)

    @cached_property
    def waves(self) -> _Waves:
        """The same for every resample."""
        return _Waves(self.events.gap)

    def _strength(self, charge: Tensor) -> Tensor:
        """Waves in each row of charges."""
        place = self.events.confidence.to(charge.dtype)
        grid = torch.vmap(_deposit, in_dims=(None, 0))(place, charge)
        return torch.vmap(self.waves.of)(grid)

    def _charges(self, weights: Tensor) -> Tensor:
        total = weights.sum(dim=1)
        return weights * self.events.gap / torch.where(total > 0, total, 1)[:, None]

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Each row's own fixed point."""
        return self._fixed_point(self._strength(self._charges(weights)))

    def of_gaps(self, gaps: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Each row's own fixed point."""
        return self._fixed_point(self._strength(self.events.shares(gaps)))

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """Strengths add up as gaps do."""
        both = (self.events.gap, self.events.gaps(shape))
        observed, true = self._strength(torch.stack([self.events.shares(x) for x in both]))
        noise = self._strength(self._charges(weights)) - observed
        return torch.stack([self._fixed_point(noise + s * true) for s in scales.tolist()], dim=1)

    def _fixed_point(self, strength: Tensor) -> Tensor:
        def by_definition(width: Tensor) -> Tensor:
            return torch.vmap(
                lambda each, at: _integral_of_size(self.waves.seen(_smoothed(each, at)))
            )(strength, width)

        remaining = remaining_of_rows(strength) if in_numpy(strength) else by_definition

        def excess(width: Tensor) -> Tensor:
            return remaining(width) - width

        before = torch.zeros(len(strength), dtype=strength.dtype, device=strength.device)
        above = excess(before)
        width = above / 2
        for _ in range(_STEPS):
            excess_here = excess(width)
            change = excess_here - above
            # What remains falls as the width grows: the slope of the excess is -1 at least.
            slope = torch.where(change == 0, -1.0, change / (width - before)).clamp(max=-1)
            slope = slope.nan_to_num(-1.0, -1.0, -1.0)
            before, above = width, excess_here
            width = (width - excess_here / slope).clamp(min=0)
        return width


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
