"""Binned errors of long columns in plain memory, whose parts are read one after the other.

What bins hold adds up over parts where they are of equal width; where they are of equal mass, what
is near their borders is sorted. The definitions in `_binned` say the same of whole vectors, on the
graph.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import check_bins, check_norm
from .._tables import Events
from ..criteria import BY_PARTS
from ._binned import MANY, Binning, bin_mean, debiased_ece, debiased_root, ece, gap_norm, mce
from ._mass_bins import mass_totals
from ._width_bins import MOST_BINS, width_error, width_totals


def ece_by_parts(
    events: Events, *, bins: int = 15, norm: float = 1, binning: Binning = "width"
) -> Float[Tensor, ""] | None:
    """`ece`. Where samples count alike, its first norm does not ask how many a bin holds."""
    check_norm(norm)
    check_bins(bins)
    if binning == "width" and norm == 1 and not events.weighted and _are_many(events, bins):
        return torch.tensor(width_error(events, bins), dtype=events.dtype, device="cpu")
    found = _totals(events, bins, binning)
    return None if found is None else gap_norm(found[0], found[1], norm).to(events.dtype)


def mce_by_parts(
    events: Events, *, bins: int = 15, binning: Binning = "width"
) -> Float[Tensor, ""] | None:
    """`mce`."""
    check_bins(bins)
    found = _totals(events, bins, binning)
    return None if found is None else bin_mean(found[1], found[0]).abs().max().to(events.dtype)


def debiased_by_parts(
    events: Events, *, bins: int = 15, binning: Binning = "mass"
) -> Float[Tensor, ""] | None:
    """`debiased_ece`, of bins of equal mass."""
    check_bins(bins)
    found = _totals(events, bins, binning) if binning == "mass" else None
    return None if found is None else debiased_root(*found).to(events.dtype)


def _totals(events: Events, bins: int, binning: Binning) -> tuple[Tensor, ...] | None:
    """Mass and gaps of each bin, and outcomes where bins are of equal mass."""
    if not _are_many(events, bins):
        return None
    if binning == "width":
        return width_totals(events, bins)
    return mass_totals(events, bins) if binning == "mass" and not events.weighted else None


def _are_many(events: Events, bins: int) -> bool:
    """Whether this is faster. Of half precision the definition has gaps of its own."""
    return len(events) >= MANY and bins <= MOST_BINS and not events.narrow


BY_PARTS[ece], BY_PARTS[mce], BY_PARTS[debiased_ece] = ece_by_parts, mce_by_parts, debiased_by_parts
