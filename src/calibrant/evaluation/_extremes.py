"""Other ways in which a truth may be spread over bins than the one that is expected."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._resampled import Events


def in_few_bins(events: Events, cell: Int[Tensor, " n"], cells: int) -> Float[Tensor, " n"]:
    r"""The expected gaps, or a few bins alone where these explain the gaps better.

    The other explanation takes $t$ standard errors off the gap of every bin, and leaves out those
    that have less. Which $t$, and which of the two, is chosen by Stein's estimate of the risk:
    squared distance from the gaps, less one for every bin, plus two for every number fitted.

    Donoho & Johnstone, "Adapting to unknown smoothness via wavelet shrinkage", JASA 1995.
    """
    mass, gap, noise = _bins(events, cell, cells)
    filled = noise > 0
    seen, unit = gap[filled], noise[filled]
    expected = torch.zeros_like(mass).index_add(0, cell, events.shares(events.shrunk))[filled]
    size = (seen / unit).abs()
    bins, limits = len(size), size[:, None]
    risks = size.clamp(max=limits).square().sum(dim=1) - bins + 2 * (size > limits).sum(dim=1)
    smooth = ((seen - expected) / unit).square().sum() - bins + 2 * events.freedom
    if not bins or smooth <= risks.min():
        return events.shrunk
    kept = seen * (1 - size[risks.argmin()] / torch.where(size > 0, size, 1)).clamp(min=0)
    return torch.zeros_like(mass).index_put((filled,), kept / mass[filled])[cell]


def alike_everywhere(events: Events, cell: Int[Tensor, " n"], cells: int) -> Float[Tensor, " n"]:
    """In every bin one standard error, to the side of what is expected there."""
    mass, _, noise = _bins(events, cell, cells)
    expected = torch.zeros_like(mass).index_add(0, cell, events.shares(events.expected))
    side = torch.where(expected < 0, -1, 1)
    return (side * noise / torch.where(mass > 0, mass, 1))[cell]


def _bins(events: Events, cell: Tensor, cells: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of each bin, as shares of the whole: its weight, its gap, and the gap's standard error."""
    empty = torch.zeros(cells, dtype=events.gap.dtype, device=events.gap.device)
    share = events.shares(torch.ones_like(events.gap))
    sure = events.confidence.to(empty.dtype)
    # A bin that was never wrong may be wrong as often as it says.
    likely = (sure * (1 - sure)).clamp(min=0)
    noise = [
        empty.index_add(0, cell, share.square() * square)
        for square in (events.gap.square(), likely)
    ]
    mass, gap = (empty.index_add(0, cell, share * x) for x in (torch.ones_like(share), events.gap))
    return mass, gap, torch.maximum(*noise).sqrt()
