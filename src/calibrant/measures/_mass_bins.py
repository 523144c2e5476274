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

from ._width_bins import PART

# Whole numbers as wide as floating-point ones. Up to two their bits leave one free.
_WHOLE = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}
_TOO_LARGE = 2
_MOST = 1000


def mass_totals(
    confidence: Float[Tensor, " n"], outcome: Float[Tensor, " n"], bins: int
) -> tuple[Float[Tensor, " bins"], Float[Tensor, " bins"], Float[Tensor, " bins"]] | None:
    """How many each bin holds, the sum of its gaps and of its outcomes, in double precision.

    None where an outcome is neither zero nor one, a confidence is below zero, two or more or no
    number, or bins are so many that to go from one to the next takes longer than to look them up.
    """
    if bins > _MOST:
        return None
    given = confidence.numpy(force=True)
    both = _together(given, outcome.numpy(force=True))
    if both is None:
        return None
    both.sort()
    starts = _starts(both, bins)
    gap, happened = np.zeros((2, bins))
    for own, part in _pieces(starts):
        right = both[part] & 1
        sure = (both[part] >> 1).view(given.dtype)
        gap[own] += (right.astype(sure.dtype) - sure).sum(dtype=np.float64)
        happened[own] += right.sum()
    mass = np.diff(starts).astype(np.float64)
    return torch.from_numpy(mass), torch.from_numpy(gap), torch.from_numpy(happened)


def _together(confidence: NDArray[Any], outcome: NDArray[Any]) -> NDArray[Any] | None:
    """The bits of each confidence, with its outcome behind them."""
    whole = _WHOLE[confidence.dtype]
    both = np.empty(len(confidence), dtype=whole)
    for start in range(0, len(confidence), PART):
        part = slice(start, start + PART)
        sure = confidence[part]
        with np.errstate(invalid="ignore"):
            right = outcome[part].astype(whole)
        # NaN is within no limits, and equal to nothing.
        if not (sure.min() >= 0 and sure.max() < _TOO_LARGE and (right == outcome[part]).all()):
            return None
        np.left_shift(sure.view(whole), 1, out=both[part])  # minus zero becomes a zero by it
        both[part] |= right
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
