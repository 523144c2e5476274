"""Binned errors of many resamples: bin totals by matrix products."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..criteria import root
from ..measures._binned import assign_bins, bin_mean
from ..measures._order import Ascending
from ._resampled import AlongRay, Events

# From this many bins on, adding row by row beats a product with mostly zeros; and where the zeros
# would be more than these, 64 MiB of them, it saves their room.
_MANY_BINS, _MOST_ZEROS = 256, 2**23
# Gaps held at once, over resamples, truths and bins.
_AT_ONCE = 2**22


@dataclass(frozen=True)
class Totals:
    """What each bin of each resample holds, as shares of the resample.

    - `mass`: how much counts, `gap`: the sum of gaps.
    - `observed`, `expected`: those of the original sample in the same bins.
    - `size`: how much each resample counts in all; `hits`: the sum of outcomes.
    """

    mass: Float[Tensor, "draws bins"]
    gap: Float[Tensor, "draws bins"]
    hits: Float[Tensor, "draws bins"]
    observed: Float[Tensor, "#draws bins"]
    expected: Float[Tensor, "#draws bins"]
    size: Float[Tensor, " draws"]

    def moved(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "draws scales bins"]:
        """The gaps of the bins, moved from the observed to each multiple of the expected."""
        noise = self.gap - self.observed
        return noise[:, None] + scales[:, None] * self.expected[:, None]


Binned = Callable[[Float[Tensor, "draws n"]], Totals]
Reduce = Callable[[Totals, Float[Tensor, "draws scales bins"]], Float[Tensor, "draws scales"]]


def by_cell(events: Events, cell: Int[Tensor, " n"], cells: int) -> Binned:
    """Bins that do not depend on the weights."""
    columns = torch.stack([torch.ones_like(events.gap), events.gap, events.outcome], dim=1)
    observed, expected = (
        torch.zeros(cells, dtype=x.dtype, device=x.device).index_add(0, cell, events.shares(x))
        for x in (events.gap, events.expected)
    )
    few = cells < _MANY_BINS and 3 * cells * len(cell) <= _MOST_ZEROS
    if few:
        member = torch.nn.functional.one_hot(cell, cells).to(events.gap.dtype)
        table = (member[:, None, :] * columns[:, :, None]).reshape(len(cell), -1)

    def totals(weights: Tensor) -> Totals:
        size = weights.sum(dim=1)
        shares = weights / torch.where(size > 0, size, 1)[:, None]
        if few:
            mass, gap, hits = (shares @ table).reshape(len(weights), 3, cells).unbind(1)
        else:
            empty = shares.new_zeros(cells, len(weights))
            mass, gap, hits = (
                empty.index_add(0, cell, (shares * column).T).T for column in columns.T
            )
        return Totals(mass, gap, hits, observed[None], expected[None], size)

    return _shared(totals)


def by_mass(events: Events, bins: int) -> Binned:
    """Bins of equal mass, cut anew for every resample."""
    ascending = Ascending.of(events.confidence)
    first, source = ascending.first_tied, ascending.source
    tied = not bool((first.diff() > 0).all())
    ordered = torch.stack([torch.ones_like(events.gap), events.gap, events.outcome])[:, source]
    original = _from_zero(
        torch.stack([events.shares(x)[source] for x in (events.gap, events.expected)]).cumsum(-1)
    )

    def totals(weights: Tensor) -> Totals:
        size = weights.sum(dim=1)
        shares = weights[:, source]
        lighter = shares.cumsum(1) - shares
        lighter = lighter[:, first] if tied else lighter
        place = lighter * bins / torch.where(size > 0, size, 1)[:, None]
        edges = torch.arange(bins + 1, dtype=place.dtype, device=place.device)
        cuts = torch.searchsorted(place.contiguous(), edges.expand(len(place), -1).contiguous())
        cuts[:, 0], cuts[:, -1] = 0, place.shape[1]
        shares = shares / torch.where(size > 0, size, 1)[:, None]
        mass, gap, hits = (
            _from_zero((shares * x).cumsum(1)).gather(1, cuts).diff(dim=1) for x in ordered
        )
        observed, expected = original[:, cuts].diff(dim=2)
        # An empty bin is empty, whatever rounding a difference of running sums leaves in it.
        filled = mass > 1e-12
        mass, gap, hits = (torch.where(filled, x, 0) for x in (mass, gap, hits))
        return Totals(mass, gap, hits, observed, expected, size)

    return _shared(totals)


def by_width(events: Events, bins: int) -> Binned:
    """Bins of equal width."""
    return by_cell(events, assign_bins(events.confidence, bins=bins, binning="width"), bins)


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
class BinnedDraws(AlongRay):
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
        totals = self.binned(weights)
        return self.reduce(totals, totals.gap[:, None])[:, 0]

    def moved(
        self, weights: Float[Tensor, "draws n"], scales: Float[Tensor, " scales"]
    ) -> Float[Tensor, "draws scales"]:
        """The totals once, the norm for every scale."""
        totals = self.binned(weights)
        few = max(1, _AT_ONCE // totals.gap.numel())
        parts = [self.reduce(totals, totals.moved(some)) for some in scales.split(few)]
        return torch.cat(parts, dim=1)

    def truth(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, " scales"]:
        """The norm of the expected gaps in the bins of the original sample."""
        totals = self.binned(self.events.weights[None])
        return (self.of_truth or self.reduce)(totals, totals.moved(scales))[0]


def _from_zero(running: Tensor) -> Tensor:
    return torch.nn.functional.pad(running, (1, 0))


def _shared(binned: Binned) -> Binned:
    """Remember the last answer: several norms ask for the totals of the same weights."""
    last: list[tuple[Tensor, Totals]] = []

    def totals(weights: Tensor) -> Totals:
        if not last or last[0][0] is not weights:
            last[:] = [(weights, binned(weights))]
        return last[0][1]

    return totals
