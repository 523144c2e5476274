"""Cells of confidence in ascending order: whatever is in a later one is larger.

The bits of a number that is not negative are in order as whole numbers too, and finer the smaller
it is. Those of odds are fine at both ends, near 0 and near 1, where confidences crowd.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._tables import Events

Vector = NDArray[Any]
Places = NDArray[np.int64]

# After so many binary digits odds are cut off.
_DIGITS = 7
_DROPPED = np.finfo(np.float32).nmant - _DIGITS
# Added to both sides of odds, so that they are finite and not zero. Single precision has no room
# for less above 1. They then lie within as many octaves as this from the least on.
_LITTLE = 2.0**-23
_LEAST = int(np.array(_LITTLE / 4, np.float32).view(np.int32)) >> _DROPPED
_OCTAVES = 50
# Windows are cut into no more cells together: tables of these stay in the cache.
_CELLS = 2**12
# So many events are looked at together. More take more room, and hardly less time.
SOME = 2**13


def bits_of(confidence: Vector) -> Vector:
    """As whole numbers in the same order; minus zero is zero."""
    return np.absolute(confidence).view(f"i{confidence.itemsize}")


class OddsCells:
    """All confidences, by their odds. Rounding may make odds equal, but leaves them in order.

    - `largest`: of the confidences, which may be a little above 1.
    """

    shape = (1, _OCTAVES << _DIGITS)

    def __init__(self, largest: float) -> None:
        self._top = max(1.0, largest) + _LITTLE

    def cell_of(self, confidence: Vector, window: object = 0) -> NDArray[np.int32]:
        """There is but one window."""
        kind = confidence.dtype.type
        odds = confidence + kind(_LITTLE)
        odds /= kind(self._top) - confidence
        cell: NDArray[np.int32] = odds.astype(np.float32, copy=False).view(np.int32)
        cell >>= _DROPPED
        cell -= _LEAST
        return cell


class BitsCells:
    """Windows of confidence, each cut into as many cells as the others, by their bits.

    - `low`, `high`: the bits of the least and the largest confidence of each. If they differ they
      are in different cells.
    """

    def __init__(self, low: Vector, high: Vector) -> None:
        width = (_CELLS // len(low)).bit_length() - 1
        _, length = np.frexp((high - low).astype(np.float64))
        self._low, self._shift = low, np.maximum(length - width, 0).astype(low.dtype)
        self._before = np.arange(len(low), dtype=low.dtype) << width
        self.shape = len(low), 1 << width

    def cell_of(self, confidence: Vector, window: Places | int) -> Vector:
        """Of confidences in these windows."""
        cell = bits_of(confidence)
        cell -= self._low[window]
        cell >>= self._shift[window]
        cell += self._before[window]
        return cell


Cells: TypeAlias = OddsCells | BitsCells


def cells_between(limits: Vector) -> Cells:
    """Of confidences from one to another: by bits where these are more cells than of odds."""
    odds = OddsCells(float(limits[1]))
    first, last = odds.cell_of(limits).tolist()
    return BitsCells(*bits_of(limits)[:, None]) if last - first < _CELLS // 4 else odds


def tally(events: Events, cells: Cells) -> tuple[Vector, Places] | None:
    """Confidences in ascending order, and how often each came to 0 and to 1.

    None as soon as two are found in one cell.
    """
    size = cells.shape[1]
    held, counts = None, np.zeros((size, 2), np.int64)
    for sure, came, _, _ in events.by(SOME):
        held = np.full(size, np.nan, sure.dtype) if held is None else held
        cell = cells.cell_of(sure, 0)
        odd = held.take(cell) != sure
        if odd.any():
            place, found = cell[odd], sure[odd]
            new = np.isnan(held[place])
            held[place[new]] = found[new]
            if (held[place] != found).any():
                return None
        cell *= 2
        cell += came.astype(cell.dtype)
        np.add.at(counts.reshape(-1), cell, 1)
    assert held is not None
    some = ~np.isnan(held)
    return held[some], counts[some]
