"""Bins of equal width by arithmetic in NumPy, where only values are asked of plain memory."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

# Vectors of this length stay in the cache; longer ones are taken by parts, one after the other:
# a second thread costs more than it saves, since each step is over before it has got its turn.
PART = 2**15


def width_bins(confidence: Float[Tensor, " n"], bins: int) -> Int[Tensor, " n"]:
    """What `torch.bucketize` finds."""
    given = confidence.numpy(force=True)
    borders = _borders(bins, given.dtype)
    found = np.empty(len(given), dtype=np.int64)

    for start in range(0, len(given), PART):
        part = slice(start, start + PART)
        found[part] = _bin_of(given[part], borders)
    return torch.from_numpy(found)


def width_totals(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    weights: Float[Tensor, " n"] | None,
    bins: int,
) -> tuple[Float[Tensor, " bins"], Float[Tensor, " bins"]]:
    """How much each bin counts, and the sum of its gaps, in double precision."""
    given, happened = confidence.numpy(force=True), outcome.numpy(force=True)
    borders = _borders(bins, given.dtype)
    counted = None if weights is None else weights.numpy(force=True)
    step = max(PART, bins)
    mass, gap = np.zeros((2, -(-len(given) // step), bins))

    for own, start in enumerate(range(0, len(given), step)):
        part = slice(start, start + step)
        bin_of, gaps = _bin_of(given[part], borders), happened[part] - given[part]
        if counted is None:
            mass[own] = np.bincount(bin_of, minlength=bins)
            gap[own] = np.bincount(bin_of, gaps, bins)
        else:
            mass[own] = np.bincount(bin_of, counted[part], bins)
            gap[own] = np.bincount(bin_of, counted[part] * gaps, bins)
    return torch.from_numpy(mass.sum(axis=0)), torch.from_numpy(gap.sum(axis=0))


def width_error(
    confidence: Float[Tensor, " n"], outcome: Float[Tensor, " n"], bins: int
) -> Float[Tensor, ""]:
    """The mean absolute gap. For it bins need not be counted: each counts by its sum of gaps."""
    given, happened = confidence.numpy(force=True), outcome.numpy(force=True)
    borders = _borders(bins, given.dtype)
    gap = np.zeros(bins)
    for start in range(0, len(given), PART):
        part = slice(start, start + PART)
        gap += np.bincount(_bin_of(given[part], borders), happened[part] - given[part], bins)
    return confidence.new_tensor(np.abs(gap).sum() / len(given))


@lru_cache(maxsize=8)
def _borders(bins: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """What `width_edges` finds."""
    borders: NDArray[Any] = np.arange(1, bins, dtype=dtype) / dtype.type(bins)
    return borders


def _bin_of(confidence: NDArray[Any], edges: NDArray[Any]) -> NDArray[np.intp]:
    """By arithmetic wherever rounding cannot matter, by a search where it might."""
    bins = len(edges) + 1
    # Rounding moves a place by less than this. NaN is near everything.
    near = 4 * bins * np.finfo(confidence.dtype).eps
    with np.errstate(invalid="ignore"):
        place = confidence * confidence.dtype.type(bins)
        upper = np.ceil(place)
        np.subtract(upper, place, out=place)
        clear = (place > near) & (place < 1 - near)
        # What lies outside of all bins is brought in by the search: limits for all take longer.
        if not (upper.min(initial=0) >= 0 and upper.max(initial=0) <= bins):
            clear &= (confidence > 0) & (confidence < 1)
        upper -= 1
        bin_of: NDArray[np.intp] = upper.astype(np.intp)
    if not clear.all():
        unsure = np.flatnonzero(~clear)
        bin_of[unsure] = np.searchsorted(edges, confidence[unsure])
    return bin_of
