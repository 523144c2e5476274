"""Bins of equal mass by a sort in NumPy, where only values are asked of plain memory.

The bits of a number that is not negative are in order as whole numbers too. With the outcome as
one more bit behind them a sort carries both, in place, and in a fraction of the time and room
that an order to look things up by would take.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from .._tables import PART, Events

# Whole numbers as wide as floating-point ones. Up to two their bits leave one free.
_KINDS = {np.dtype(np.int32): np.float32, np.dtype(np.int64): np.float64}
_TOO_LARGE = 2
_MOST = 1000


def mass_totals(
    events: Events, bins: int
) -> tuple[Float[Tensor, " bins"], Float[Tensor, " bins"], Float[Tensor, " bins"]] | None:
    """How many each bin holds, the sum of its gaps and of its outcomes, in double precision.

    None where an outcome is neither zero nor one, a confidence is below zero, two or more or no
    number, or bins are so many that to go from one to the next takes longer than to look them up.
    """
    if bins > _MOST:
        return None
    both = _together(events)
    if both is None:
        return None
    both.sort()
    starts = _starts(both, bins)
    kind = _KINDS[both.dtype]
    gap, happened = np.zeros((2, bins))
    for own, part in _pieces(starts):
        right = both[part] & 1
        sure = (both[part] >> 1).view(kind)
        gap[own] += (right.astype(kind) - sure).sum(dtype=np.float64)
        happened[own] += right.sum()
    mass = np.diff(starts).astype(np.float64)
    return torch.from_numpy(mass), torch.from_numpy(gap), torch.from_numpy(happened)


def _together(events: Events) -> NDArray[Any] | None:
    """The bits of each confidence, with its outcome behind them."""
    whole = np.dtype(np.int64 if events.dtype == torch.float64 else np.int32)
    both, start = np.empty(len(events), dtype=whole), 0
    for sure, came, _, inside in events:
        with np.errstate(invalid="ignore"):
            right = came.astype(whole)
        # NaN is within no limits, and equal to nothing.
        close = inside or (sure.min() >= 0 and sure.max() < _TOO_LARGE)
        if not (close and (right == came).all()):
            return None
        own = both[start : start + len(sure)]
        np.left_shift(sure.view(whole), 1, out=own)  # minus zero becomes a zero by it
        own |= right
        start += len(sure)
    return both


def _starts(both: NDArray[Any], bins: int) -> NDArray[np.int64]:
    """The first place of each bin, and the end: ties are in the bin of the lowest of them."""
    n = len(both)
    starts = -(-np.arange(bins + 1, dtype=np.int64) * n // bins)
    inside = (starts > 0) & (starts < n)
    inner = starts[inside]
    last_of_tie = both[inner] | 1
    tied = (both[inner - 1] | 1) == last_of_tie
    behind = np.searchsorted(both, last_of_tie, side="right")
    starts[inside] = np.where(tied, behind, inner)
    return starts


def _pieces(starts: NDArray[np.int64]) -> Iterator[tuple[int, slice]]:
    """Each bin with its places, some at a time."""
    for own, (first, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        for start in range(first, end, PART):
            yield own, slice(start, min(start + PART, end))
