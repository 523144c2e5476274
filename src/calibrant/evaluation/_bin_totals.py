"""What bins of many resamples hold: totals by matrix products."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..measures._binned import assign_bins
from ._resampled import Events

# From this many bins on, adding row by row beats a product with mostly zeros; and where the zeros
# would be more than these, 64 MiB of them, it saves their room.
_MANY_BINS, _MOST_ZEROS = 256, 2**23


@dataclass(frozen=True)
class Totals:
    """What each bin of each resample holds, as shares of the resample.

    - `mass`: how much counts, `gap`: the sum of gaps, `hits`: the sum of outcomes.
    - `size`: how much each resample counts in all.
    - `of_sample`: what one number per sample of the original sample comes to in the same bins.
    """

    mass: Float[Tensor, "draws bins"]
    gap: Float[Tensor, "draws bins"]
    hits: Float[Tensor, "draws bins"]
    size: Float[Tensor, " draws"]
    of_sample: Callable[[Float[Tensor, " n"]], Float[Tensor, "#draws bins"]]

    def moved(
        self, events: Events, truth: Float[Tensor, " n"], scales: Float[Tensor, " scales"]
    ) -> Float[Tensor, "draws scales bins"]:
        """The gaps of the bins, moved from the observed to each multiple of a truth's."""
        noise = self.gap - self.of_sample(events.gap)
        return noise[:, None] + scales[:, None] * self.of_sample(truth)[:, None]


Binned = Callable[[Float[Tensor, "draws n"]], Totals]


def by_cell(events: Events, cell: Int[Tensor, " n"], cells: int) -> Binned:
    """Bins that do not depend on the weights."""
    columns = torch.stack([torch.ones_like(events.gap), events.gap, events.outcome], dim=1)
    few = cells < _MANY_BINS and 3 * cells * len(cell) <= _MOST_ZEROS
    if few:
        member = torch.nn.functional.one_hot(cell, cells).to(events.gap.dtype)
        table = (member[:, None, :] * columns[:, :, None]).reshape(len(cell), 3 * cells)

    def of_sample(x: Tensor) -> Tensor:
        empty = torch.zeros(cells, dtype=x.dtype, device=x.device)
        return empty.index_add(0, cell, events.shares(x))[None]

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
        return Totals(mass, gap, hits, size, of_sample)

    return _shared(totals)


def by_mass(events: Events, bins: int) -> Binned:
    """Bins of equal mass: those of the sample.

    Cut anew for every resample they would mix gaps that the truth has in neighbouring bins, and
    so make less of a truth than the sample's own bins do.
    """
    cell = assign_bins(events.confidence, bins=bins, binning="mass", weights=events.weights)
    return by_cell(events, cell, bins)


def by_width(events: Events, bins: int) -> Binned:
    """Bins of equal width."""
    return by_cell(events, assign_bins(events.confidence, bins=bins, binning="width"), bins)


def _shared(binned: Binned) -> Binned:
    """Remember the last answer: several norms ask for the totals of the same weights."""
    last: list[tuple[Tensor, Totals]] = []

    def totals(weights: Tensor) -> Totals:
        if not last or last[0][0] is not weights:
            last[:] = [(weights, binned(weights))]
        return last[0][1]

    return totals
