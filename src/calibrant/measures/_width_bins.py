"""Bins of equal width by arithmetic in NumPy, where only values are asked of plain memory."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from .._checks import all_up_to
from .._tables import PART, Events

Vector = NDArray[Any]

# Each bin has so many sums, unless bins are many. Of confidences that are much alike each number
# would have to wait until the one before it is added to the same sum.
_LANES = 8
# Of more bins arithmetic in single precision cannot tell one from the next but one.
MOST_BINS = 2**17


def width_bins(confidence: Float[Tensor, " n"], bins: int) -> Int[Tensor, " n"]:
    """What `torch.bucketize` finds, of no more than `MOST_BINS`."""
    given = confidence.numpy(force=True)
    found, room = np.empty(len(given), dtype=np.int64), np.empty((2, PART), dtype=given.dtype)
    for start in range(0, len(given), PART):
        part = given[start : start + PART]
        bin_of = _bin_of(part, bins, *room[:, : len(part)], inside=all_up_to(1, part))
        np.subtract(bin_of, bin_of > 0, out=found[start : start + PART])
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
    return torch.from_numpy(_of_bins(mass, bins)), torch.from_numpy(_of_bins(gap, bins))


def width_error(events: Events, bins: int) -> float:
    """The mean absolute gap. For it bins need not be counted: each counts by its sum of gaps."""
    gap = _empty(bins)
    for cell, gaps, _ in _in_cells(events, bins):
        gap.scatter_add_(0, cell, gaps)
    return float(np.abs(_of_bins(gap, bins)).sum() / len(events))


def _in_cells(events: Events, bins: int) -> Iterator[tuple[Tensor, Tensor, Vector | None]]:
    """Of some events after others the sum that each belongs to, its gap by weight, its weight.

    All in the same room, which is overwritten when the next are asked for.
    """
    dtype = np.dtype(np.float64 if events.dtype == torch.float64 else np.float32)
    size = min(PART, len(events))
    lane, first, second = _lane(bins)[:size], np.empty(size, dtype), np.empty(size, dtype)
    cell, gap = np.empty(size, np.int64), np.empty(size)
    cells, gaps = torch.from_numpy(cell), torch.from_numpy(gap)
    for confidence, outcome, weights, inside in events:
        n = len(confidence)
        if n < size:  # the last
            lane, first, second = lane[:n], first[:n], second[:n]
            cell, gap, cells, gaps = cell[:n], gap[:n], cells[:n], gaps[:n]
        bin_of = _bin_of(confidence, bins, first, second, inside=inside)
        np.copyto(cell, np.add(bin_of, lane, out=bin_of))
        # In their own type, as the definition subtracts them. Sums are in double precision.
        np.copyto(second, outcome, casting="unsafe")
        np.copyto(gap, np.subtract(second, confidence, out=second))
        if weights is not None:
            gap *= weights
        yield cells, gaps, weights


def _empty(bins: int) -> Float[Tensor, " sums"]:
    return torch.from_numpy(np.zeros(_lanes(bins) * (bins + 1)))


def _of_bins(sums: Float[Tensor, " sums"], bins: int) -> Vector:
    """Of each bin over all lanes; what is exactly zero was added up by itself."""
    total: Vector = sums.numpy().reshape(-1, bins + 1).sum(axis=0)
    total[1] += total[0]
    return total[1:]


def _lanes(bins: int) -> int:
    return max(1, min(_LANES, PART // bins))


@lru_cache(maxsize=1)
def _lane(bins: int) -> NDArray[np.int32]:
    """Where the sums of each event begin."""
    lane: NDArray[np.int32] = np.arange(PART, dtype=np.int32) % np.int32(_lanes(bins))
    return lane * np.int32(bins + 1)


@lru_cache(maxsize=8)
def _scale(bins: int, kind: "np.dtype[Any]") -> tuple[np.floating, np.floating, np.floating | None]:
    """The number of bins, what a confidence is multiplied by instead, and what is near a border.

    It is multiplied by a little less, so that nothing is rounded up over the border it is on. What
    lies just above a border may then be left below it, by less than twice that little.

    By some numbers of bins, 15 in single precision among them, numbers are multiplied without
    leaving their bin. Then nothing is near a border. Since rounding keeps the order of products,
    the border and the next number above it tell of all.
    """
    eps = float(np.finfo(kind).eps)
    count, number = kind.type(bins), np.arange(1, bins + 1, dtype=kind)
    border = number / count
    above = np.nextafter(border, kind.type(2))
    if (border * count <= number).all() and (above * count > number).all():
        return count, count, None
    factor, near = bins * (1 - 4 * eps), 8 * bins * eps
    return count, kind.type(factor), kind.type(near)


def _bin_of(
    confidence: Vector, bins: int, place: Vector, upper: Vector, *, inside: bool
) -> NDArray[np.int32]:
    """Bins from one, by arithmetic; where rounding may matter, a look at the border tells.

    What is exactly zero belongs to the first, and is given none.

    - `place`, `upper`: room for as many numbers. What is found lies in the first.
    - `inside`: whether all are known to lie between 0 and 1. Others are in the bins at the ends,
      and what is no number in the last.
    """
    if not inside:
        confidence = np.fmax(np.fmin(confidence, 1), 0)
    count, factor, near = _scale(bins, confidence.dtype)
    bin_of: NDArray[np.int32] = place.view(np.int32)[: len(confidence)]
    np.multiply(confidence, factor, out=place)
    np.ceil(place, out=upper)
    sure = near is None or np.minimum.reduce(np.subtract(upper, place, out=place)) > near
    np.copyto(bin_of, upper, casting="unsafe")
    if not sure:  # as nothing near a border is
        bin_of += confidence > np.divide(upper, count, out=upper)  # the border as it rounds
    return bin_of
