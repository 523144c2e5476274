"""Bins of equal mass in NumPy, where only values are asked of plain memory.

Some events are sorted: with the outcome as one more bit behind those of the confidence a sort
carries both, in place. Of many events only those near where bins meet have to be.
"""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from .._tables import PART, Events, Part
from ._mass_cells import SOME, Places, Vector, bits_of, cells_between, tally
from ._mass_windows import Windows

Totals = NDArray[np.float64]

# From here on to look where bins meet takes less time than to sort all, and less room.
_LONG = 2**15
# Up to two the bits of floating-point numbers leave one free.
_TOO_LARGE = 2
_MOST = 1000
# Bins have so many sums together. Of confidences that are much alike each number would have to wait
# until the one before it is added to the same sum.
_SUMS = 2**7


def mass_totals(
    events: Events, bins: int
) -> tuple[Float[Tensor, " bins"], Float[Tensor, " bins"], Float[Tensor, " bins"]] | None:
    """How many each bin holds, the sum of its gaps and of its outcomes, in double precision.

    None where an outcome is neither zero nor one, a confidence is below zero, two or more or no
    number, or bins are so many that to go from one to the next takes longer than to look them up.
    """
    if bins > _MOST or not all(map(_is_plain, events)):
        return None
    n, totals = len(events), np.zeros((3, bins))
    ranks = -(-np.arange(bins + 1, dtype=np.int64) * n // bins)
    if n < _LONG:
        both = np.concatenate([_together(part.confidence, part.outcome) for part in events])
        both.sort()
        _add_sorted(both, ranks, totals)
    else:
        _add_long(events, ranks, totals)
    mass, gap, happened = torch.from_numpy(totals)
    return mass, gap, happened


def _is_plain(part: Part) -> bool:
    """Whether bits are in order, with one to spare, and outcomes zero or one."""
    sure, came, _, inside = part
    # NaN is within no limits, and equal to nothing. Whole numbers have been looked at.
    close = inside or bool(sure.min() >= 0 and sure.max() < _TOO_LARGE)
    return close and (came.dtype.kind != "f" or bool(((came != 0) == came).all()))


def _together(confidence: Vector, outcome: Vector) -> Vector:
    """The bits of each confidence, with its outcome behind them."""
    both = confidence.view(f"i{confidence.itemsize}") << 1  # minus zero becomes a zero by it
    both |= outcome.astype(both.dtype)
    return both


def _add_long(events: Events, ranks: Places, totals: Totals) -> None:
    """Add events to bins of which these are the lowest ranks, and the end, without a copy."""
    ends = [(part.confidence.min(), part.confidence.max()) for part in events]
    limits = np.array([min(least for least, _ in ends), max(largest for _, largest in ends)])
    if limits[0] == limits[1]:  # to tally them would be slow: each waits until the last is counted
        for sure, came, _, _ in events:
            _add_sorted(_together(sure, came), len(sure) * np.minimum(ranks, 1), totals)
        return
    cells = cells_between(limits)
    tallied = tally(events, cells)
    if tallied is not None:
        _add_tallied(*tallied, ranks, totals)
        return
    windows = Windows(events, ranks, cells, bits_of(limits))
    near = _add_settled(events, windows, totals)
    near.sort()
    _add_sorted(near, windows.lower_than(ranks), totals)


def _add_tallied(confidence: Vector, counts: Places, ranks: Places, totals: Totals) -> None:
    """Add events of a few confidences, each all to the bin of its lowest rank."""
    mass = counts.sum(axis=1)
    own = np.searchsorted(ranks[1:], np.cumsum(mass) - mass, side="right")
    gap = (counts * (np.arange(2, dtype=confidence.dtype) - confidence[:, None])).sum(axis=1)
    for total, added in zip(totals, (mass, gap, counts[:, 1]), strict=True):
        np.add.at(total, own, added)


def _add_settled(events: Events, windows: Windows, totals: Totals) -> Vector:
    """Add what is in no window to its bin. What is in one is returned."""
    bins, filled = totals.shape[1], 0
    near = np.empty(windows.count.sum(), np.int64 if events.dtype == torch.float64 else np.int32)
    lanes = max(1, _SUMS // bins)
    shape = lanes, bins + 1, 2  # what is in a window is added to one bin more
    lane = (np.arange(SOME) % lanes * (2 * bins + 2)).astype(np.int16)
    gaps, counts = np.zeros((2, lanes * (2 * bins + 2)))
    for sure, came, _, _ in events.by(SOME):
        right, state = came.astype(np.int16), windows.state_of(sure)
        inside = np.flatnonzero(state >= bins)
        near[filled : filled + len(inside)] = _together(sure[inside], right[inside])
        filled += len(inside)
        state[inside] = bins
        state *= 2
        state += right
        state += lane[: len(sure)]
        place = state.astype(np.int64)
        # In their own type, as the definition subtracts them. Sums are in double precision.
        gaps += np.bincount(place, weights=right.astype(sure.dtype) - sure, minlength=len(gaps))
        counts += np.bincount(place, minlength=len(gaps))
    count = counts.reshape(shape).sum(axis=0)[:bins]
    totals += count.sum(axis=1), gaps.reshape(shape).sum(axis=(0, 2))[:bins], count[:, 1]
    return near


def _add_sorted(both: Vector, starts: Places, totals: Totals) -> None:
    """Add events in order to the bins that start at these places, or behind a tie."""
    mass, gap, happened = totals
    starts = _behind_ties(both, starts)
    mass += np.diff(starts)
    for own, part in _pieces(starts):
        right = both[part] & 1
        sure = (both[part] >> 1).view(f"f{both.itemsize}")
        gap[own] += (right.astype(sure.dtype) - sure).sum(dtype=np.float64)
        happened[own] += right.sum()


def _behind_ties(both: Vector, starts: Places) -> Places:
    """Ties are in the bin of the lowest of them, so that the next one starts behind them."""
    inside = (starts > 0) & (starts < len(both))
    inner, moved = starts[inside], starts.copy()
    last_of_tie = both[inner] | 1
    tied = (both[inner - 1] | 1) == last_of_tie
    behind = np.searchsorted(both, last_of_tie, side="right")
    moved[inside] = np.where(tied, behind, inner)
    return moved


def _pieces(starts: Places) -> Iterator[tuple[int, slice]]:
    """Each bin with its places, some at a time."""
    for own, (first, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        for start in range(first, end, PART):
            yield own, slice(start, min(start + PART, end))
