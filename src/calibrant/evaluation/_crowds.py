"""Many events as few: neighbours in confidence that came out alike are drawn together."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..measures._binned import assign_bins
from ..measures._order import Ascending
from ..measures._precision import in_proportion, widened
from ..measures._sweep import sweep_bins
from ._resampled import Events
from ._shape import Shape, shape_of
from ._weights import Population, alike

# Up to so many samples each is drawn by itself.
SINGLY_UP_TO = 2**14
# Of more, so many cells of neighbours.
_CELLS = 2**12


class Drawn(NamedTuple):
    """What is drawn.

    - `sweep`: of crowds, the least confidence of each bin of the sweep but the lowest.
    """

    events: Events
    sweep: Float[Tensor, " inner"] | None = None


def events_drawn(confidence: Tensor, outcome: Tensor, weights: Tensor, bins: int) -> Drawn:
    """Samples as they are while they are few; crowds of them, of which the time of a draw is that
    of eight thousand samples however many there are.

    - `bins`: of the measures, across whose borders no crowd reaches, nor across those of the sweep.
    """
    if len(confidence) <= SINGLY_UP_TO:
        return Drawn(Events.of(confidence, outcome, weights))
    counted = weights > 0
    some = confidence[counted], outcome[counted], weights[counted]
    sweep = _sweep(*some)
    return Drawn(_crowds(*some, bins, sweep), sweep)


def _sweep(confidence: Tensor, outcome: Tensor, weights: Tensor) -> Tensor | None:
    """Where its bins begin; nothing where they are so many that they are to be those of crowds."""
    found, bin_of = sweep_bins(confidence, outcome, weights, "mass").unique(return_inverse=True)
    if len(found) > _CELLS:
        return None
    first = confidence.new_zeros(len(found))
    return first.scatter_reduce(0, bin_of, confidence, "amin", include_self=False)[1:]


def _crowds(
    confidence: Tensor, outcome: Tensor, weights: Tensor, bins: int, sweep: Tensor | None
) -> Events:
    r"""Samples of one cell and one outcome, as one that stands for all of them.

    How often the samples of a crowd are drawn in all is a Poisson number, as it is of the
    multinomial draws of single samples but for their fixed total, which no measure depends on.
    A crowd whose weights $w_i$ differ is that of $(\sum w_i)^2 / \sum w_i^2$ samples with equal
    ones, whose sum has the same mean and variance.

    Both crowds of a cell are tied, at its mean; the gaps keep their own sums.
    """
    cell = _cells(confidence, weights, bins, sweep)
    gap, sure, happened = widened(outcome - confidence, confidence, outcome)
    crowd, member = _filled(2 * cell + happened.long())
    mass = _sums(crowd, weights)
    own = in_proportion(weights)
    count = alike(crowd, len(mass), own, own.square())

    def mean(x: Tensor) -> Tensor:
        return _sums(crowd, weights * x) / mass

    shape = Shape(*(mean(x) for x in shape_of(sure, gap, weights)))
    return Events(
        _middle(confidence, sure, weights, cell)[member],
        happened[member],
        mean(gap),
        mass,
        shape,
        Population(mass, count, crowd),
    )


class _Filled(NamedTuple):
    """Which of the filled slots each sample is in, and a sample of each."""

    slot: Int[Tensor, " n"]
    member: Int[Tensor, " slots"]


def _filled(key: Int[Tensor, " n"]) -> _Filled:
    found, slot = key.unique(return_inverse=True)
    member = torch.zeros_like(found).index_copy(0, slot, torch.arange(len(slot), device=key.device))
    return _Filled(slot, member)


def _cells(
    confidence: Tensor, weights: Tensor, bins: int, sweep: Tensor | None
) -> Int[Tensor, " n"]:
    """Runs of neighbours of about equal number, or of ties where there are no more confidences.

    Ties are never divided, and bins never share a cell.
    """
    ascending = Ascending.of(confidence)
    run = ascending.first_tied
    if len(run.unique_consecutive()) > _CELLS:
        run = run * _CELLS // len(confidence)
    width = assign_bins(ascending.values, bins=bins, binning="width")
    mass = assign_bins(
        ascending.values, bins=bins, binning="mass", weights=weights[ascending.source]
    )
    # Each rises with the confidence, so that their sum rises where any does.
    rising = run + width + mass
    if sweep is not None:
        rising += torch.bucketize(ascending.values, sweep, right=True)
    begun = rising.diff(prepend=torch.zeros_like(run[:1])) > 0
    return torch.empty_like(run).index_copy(0, ascending.source, begun.cumsum(0))


def _middle(
    confidence: Tensor, sure: Tensor, weights: Tensor, cell: Int[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """The mean confidence of the cell of each sample, in the type in which measures see it.

    No further than its members, whatever rounding does: those of a tie stay where they are.
    """
    cells = int(cell.max()) + 1
    mean = _sums(cell, weights * sure, cells) / _sums(cell, weights, cells)
    least, most = (
        torch.zeros_like(mean).scatter_reduce(0, cell, sure, reduce, include_self=False)
        for reduce in ("amin", "amax")
    )
    return mean.clamp(least, most)[cell].to(confidence.dtype)


def _sums(slot: Int[Tensor, " n"], x: Float[Tensor, " n"], slots: int = 0) -> Tensor:
    slots = slots or int(slot.max()) + 1
    return torch.zeros(slots, dtype=x.dtype, device=x.device).index_add(0, slot, x)
