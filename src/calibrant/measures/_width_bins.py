"""Bins of equal width by arithmetic in NumPy, where only values are asked of plain memory."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from .._tables import PART, Events

Vector = NDArray[Any]

# Each bin has so many sums, unless bins are many. Of confidences that are much alike each number
# would have to wait until the one before it is added to the same sum.
_LANES = 8


def width_bins(confidence: Float[Tensor, " n"], bins: int) -> Int[Tensor, " n"]:
    """What `torch.bucketize` finds."""
    given = confidence.numpy(force=True)
    borders = _borders(bins, given.dtype)
    found, room = np.empty(len(given), dtype=np.int64), np.empty((2, PART), dtype=given.dtype)
    with np.errstate(invalid="ignore"):
        for start in range(0, len(given), PART):
            part = slice(start, start + PART)
            np.subtract(_bin_of(given[part], borders, *room), 1, out=found[part])
    return torch.from_numpy(found)


def width_totals(
    events: Events, bins: int
) -> tuple[Float[Tensor, " bins"], Float[Tensor, " bins"]]:
    """How much each bin counts, and the sum of its gaps, in double precision."""
    mass, gap = _empty(bins), _empty(bins)
    for cell, gaps, weights in _in_cells(events, bins):
        gap.scatter_add_(0, cell, gaps)
        gaps[:] = 1 if weights is None else torch.from_numpy(weights)
        mass.scatter_add_(0, cell, gaps)
    return mass.reshape(-1, bins).sum(dim=0), gap.reshape(-1, bins).sum(dim=0)


def width_error(events: Events, bins: int) -> float:
    """The mean absolute gap. For it bins need not be counted: each counts by its sum of gaps."""
    gap = _empty(bins)
    for cell, gaps, _ in _in_cells(events, bins):
        gap.scatter_add_(0, cell, gaps)
    return float(np.abs(gap.numpy().reshape(-1, bins).sum(axis=0)).sum() / len(events))


def _in_cells(events: Events, bins: int) -> Iterator[tuple[Tensor, Tensor, Vector | None]]:
    """Of some events after others the sum that each belongs to, its gap by weight, its weight.

    All in the same room, which is overwritten when the next are asked for.
    """
    dtype = np.dtype(np.float64 if events.dtype == torch.float64 else np.float32)
    size, borders = min(PART, len(events)), _borders(bins, dtype)
    lane, first, second = _lane(bins)[:size], np.empty(size, dtype), np.empty(size, dtype)
    cells, gaps = torch.from_numpy(np.empty(size, np.int64)), torch.from_numpy(np.empty(size))
    for confidence, outcome, weights in events:
        n = len(confidence)
        if n < size:  # the last
            lane, first, second = lane[:n], first[:n], second[:n]
            cells, gaps = cells[:n], gaps[:n]
        with np.errstate(invalid="ignore"):
            bin_of = _bin_of(confidence, borders, first, second)
        np.copyto(cells.numpy(), np.add(bin_of, lane, out=bin_of))
        # In their own type, as the definition subtracts them. Sums are in double precision.
        np.copyto(second, outcome, casting="unsafe")
        np.copyto(gaps.numpy(), np.subtract(second, confidence, out=second))
        if weights is not None:
            gaps.numpy()[:] *= weights
        yield cells, gaps, weights


def _empty(bins: int) -> Float[Tensor, " sums"]:
    return torch.from_numpy(np.zeros(_lanes(bins) * bins))


def _lanes(bins: int) -> int:
    return max(1, min(_LANES, PART // bins))


@lru_cache(maxsize=1)
def _lane(bins: int) -> NDArray[np.int32]:
    """Where the sums of each event begin, less one, since bins are counted from one."""
    lane: NDArray[np.int32] = np.arange(PART, dtype=np.int32) % np.int32(_lanes(bins))
    return lane * np.int32(bins) - np.int32(1)


@lru_cache(maxsize=8)
def _borders(bins: int, dtype: "np.dtype[Any]") -> Vector:
    """What `width_edges` finds."""
    borders: Vector = np.arange(1, bins, dtype=dtype) / dtype.type(bins)
    return borders


def _bin_of(confidence: Vector, edges: Vector, place: Vector, upper: Vector) -> NDArray[np.int32]:
    """Bins from one, by arithmetic wherever rounding cannot matter, by a search where it might.

    - `place`, `upper`: room for as many numbers at least. What is found lies in the first.
    """
    n, bins, kind = len(confidence), len(edges) + 1, confidence.dtype
    # Rounding moves a place, and a border, by less than half of this. NaN is near everything.
    near = 2 * bins * np.finfo(kind).eps
    place, upper = place[:n], upper[:n]
    np.multiply(confidence, kind.type(bins), out=place)
    np.ceil(place, out=upper)
    np.subtract(upper, place, out=place)
    # What lies outside of all bins is brought in by the search: limits for all take longer. Above
    # zero a place is rounded up to one at least; below it, perhaps to zero.
    low, high = np.minimum.reduce, np.maximum.reduce
    inside = low(upper) >= 1 and high(upper) <= bins
    sure = inside and low(place) > near and high(place) < 1 - near
    if not sure:
        clear = (place > near) & (place < 1 - near)
        clear &= inside or ((confidence > 0) & (confidence < 1))
    bin_of: NDArray[np.int32] = place.view(np.int32)[:n]
    np.copyto(bin_of, upper, casting="unsafe")
    if not sure:
        few = np.flatnonzero(~clear)
        bin_of[few] = np.searchsorted(edges, confidence[few]) + 1
    return bin_of
