"""What bins of many resamples hold: totals by matrix products."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..measures._binned import assign_bins, bin_mean
from ..measures._precision import in_proportion
from ._resampled import Events
from ._weights import alike

# From this many bins on, adding row by row beats a product with mostly zeros; and where the zeros
# would be more than these, 64 MiB of them, it saves their room.
_MANY_BINS, _MOST_ZEROS = 256, 2**23


@dataclass(frozen=True)
class Totals:
    """What each bin of each resample holds, as shares of the resample.

    - `mass`: how much counts, `gap`: the sum of gaps, `hits`: the sum of outcomes.
    - `size`: how much each resample counts in all. It and the mass are one for all where only
      outcomes are drawn anew.
    - `of_sample`: what one number per sample of the original sample comes to in the same bins.
    """

    mass: Float[Tensor, "#draws bins"]
    gap: Float[Tensor, "draws bins"]
    hits: Float[Tensor, "draws bins"]
    size: Float[Tensor, " #draws"]
    of_sample: Callable[[Float[Tensor, " n"]], Float[Tensor, "#draws bins"]]

    def moved(
        self, events: Events, truth: Float[Tensor, " n"], scales: Float[Tensor, " scales"]
    ) -> Float[Tensor, "draws scales bins"]:
        """The gaps of the bins, moved from the observed to each multiple of a truth's."""
        noise = self.gap - self.of_sample(events.gap)
        return noise[:, None] + scales[:, None] * self.of_sample(truth)[:, None]


class Binned:
    """Bins that do not depend on the weights.

    - `cell`: the bin of each sample, of so many `cells`.
    """

    def __init__(self, events: Events, cell: Int[Tensor, " n"], cells: int) -> None:
        self._events, self._cell, self._cells = events, cell, cells
        self._last: dict[str, tuple[Tensor, Totals]] = {}

    def __call__(self, weights: Float[Tensor, "draws n"]) -> Totals:
        """Of each row of weights."""
        return self._shared("weights", weights, self._of_weights)

    def of_gaps(self, gaps: Float[Tensor, "draws n"]) -> Totals:
        """Of the sample itself, had its gaps been those of each row."""
        return self._shared("gaps", gaps, self._of_gaps)

    @cached_property
    def own(self) -> Totals:
        """What they hold in the sample itself."""
        return self._of_gaps(self._events.gap[None])

    @cached_property
    def chance(self) -> Float[Tensor, " bins"]:
        """The mean confidence of each bin."""
        return bin_mean(self.own.hits - self.own.gap, self.own.mass)[0].clamp(0, 1)

    @cached_property
    def count(self) -> Float[Tensor, " bins"]:
        """How many samples the weights of each bin amount to, one at least."""
        weights = in_proportion(self._events.weights)
        return alike(self._cell, self._cells, weights, self._events.squares(weights)).round()

    def _shared(self, kind: str, asked: Tensor, find: Callable[[Tensor], Totals]) -> Totals:
        """Remember the last answer: several norms ask for the same totals."""
        if kind not in self._last or self._last[kind][0] is not asked:
            self._last[kind] = asked, find(asked)
        return self._last[kind][1]

    @cached_property
    def _few(self) -> bool:
        return self._cells < _MANY_BINS and 3 * self._cells * len(self._cell) <= _MOST_ZEROS

    @cached_property
    def _columns(self) -> Tensor:
        events = self._events
        return torch.stack([torch.ones_like(events.gap), events.gap, events.outcome], dim=1)

    @cached_property
    def _member(self) -> Tensor:
        one_hot = torch.nn.functional.one_hot(self._cell, self._cells)
        return one_hot.to(self._events.gap.dtype)

    @cached_property
    def _table(self) -> Tensor:
        table = self._member[:, None, :] * self._columns[:, :, None]
        return table.reshape(len(self._cell), 3 * self._cells)

    def _of_sample(self, x: Float[Tensor, " n"]) -> Float[Tensor, "1 bins"]:
        empty = torch.zeros(self._cells, dtype=x.dtype, device=x.device)
        return empty.index_add(0, self._cell, self._events.shares(x))[None]

    def _of_weights(self, weights: Tensor) -> Totals:
        size = weights.sum(dim=1)
        shares = weights / torch.where(size > 0, size, 1)[:, None]
        if self._few:
            sums = (shares @ self._table).reshape(len(weights), 3, self._cells)
            mass, gap, hits = sums.unbind(1)
        else:
            mass, gap, hits = (self._added(shares * column) for column in self._columns.T)
        return Totals(mass, gap, hits, size, self._of_sample)

    def _of_gaps(self, gaps: Tensor) -> Totals:
        events, ones = self._events, torch.ones_like(self._events.gap)
        own = events.shares(ones)
        # To the weights of the sample the members are fitted once, not every row of gaps.
        gap = gaps @ (own[:, None] * self._member) if self._few else self._added(gaps * own)
        forecast = self._of_sample(events.outcome - events.gap)
        size = events.weights.sum()[None]
        return Totals(self._of_sample(ones), gap, forecast + gap, size, self._of_sample)

    def _added(self, rows: Tensor) -> Tensor:
        empty = rows.new_zeros(self._cells, len(rows))
        return empty.index_add(0, self._cell, rows.T).T


def by_mass(events: Events, bins: int) -> Binned:
    """Bins of equal mass: those of the sample.

    Cut anew for every resample they would mix gaps that the truth has in neighbouring bins, and
    so make less of a truth than the sample's own bins do.
    """
    cell = assign_bins(events.confidence, bins=bins, binning="mass", weights=events.weights)
    return Binned(events, cell, bins)


def by_width(events: Events, bins: int) -> Binned:
    """Bins of equal width."""
    return Binned(events, assign_bins(events.confidence, bins=bins, binning="width"), bins)
