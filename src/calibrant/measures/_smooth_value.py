"""The value of the smooth calibration error, where no gradient is asked of it."""

from functools import cache, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._tables import PART, Events

Vector = NDArray[Any]

# Some vectors of this length in double precision are in the cache together.
_AT_ONCE = PART // 2

# What each of the four points around a sample is given of it, by powers of where it lies
# between them: the cubic spline of `_smooth._deposit`.
_SHARES = (
    np.array([[1, -3, 3, -1], [4, 0, -6, 3], [1, 3, 3, -3], [0, 0, 0, 1]], dtype=np.float64) / 6
)


def fixed_point(events: Events, *, points: int, narrowest: float) -> float:
    """The width at which as much of the gaps remains as it is wide.

    The same grid, spline, smoothing and integral as the definition has, but fast transforms
    and a search that stops when it has found.
    """
    # Imported when first needed: they take as long as all of this package.
    from scipy.fft import dct  # type: ignore[import-untyped]
    from scipy.optimize import brentq  # type: ignore[import-untyped]

    grid, bound = _deposited(events, points)
    if np.isnan(bound):
        return bound
    strength = dct(grid, type=2)[None] / 2

    @cache  # a search begins by looking at its ends again
    def excess(width: float) -> float:
        at = np.array([max(width, narrowest)])
        return float(remaining_of(strength, at)[0]) - width

    # Smoothing never adds to the size of gaps, so there is no excess at the bound, but rounding.
    if bound == 0 or excess(0.0) <= 0:
        return max(0.0, excess(0.0))
    if excess(bound) >= 0:
        return bound
    return float(brentq(excess, 0.0, bound, xtol=1e-15, rtol=1e-12))


def remaining_of(strength: Vector, width: Vector) -> Vector:
    """What is left of each row under a Gaussian of each width.

    - `strength`: sums over the masses of a row, of each wave at their places.
    """
    from scipy.fft import dct

    points = strength.shape[1]
    variance = width**2 - 1 / (3 * points**2)
    # Waves below 1e-43 are left there: numbers too small to be normal make processors crawl.
    kept = np.exp(np.maximum(variance[:, None] * _decay(points), -100))
    kept *= strength
    return _integral_of_size(dct(kept, type=3, axis=1, overwrite_x=True))


@lru_cache(maxsize=1)
def _decay(points: int) -> Vector:
    """How fast each wave decays with the variance of the Gaussian."""
    rate: Vector = (np.pi * np.arange(points)) ** 2 / -2
    return rate


def _deposited(events: Events, points: int) -> tuple[Vector, float]:
    """Mean gaps on the grid, and the mean of their sizes."""
    moments, total, size = _moments(events, points)
    spread = np.zeros(points + 5)
    for offset, share in enumerate(_SHARES @ moments):
        spread[offset : offset + points + 2] += share
    # Two points beyond the left end and three beyond the right are reflected.
    grid = spread[2:-3].copy()
    grid[:2] += spread[1::-1]
    grid[-3:] += spread[:-4:-1]
    scale = total if total > 0 else 1.0
    return grid / scale, size / scale


def _moments(events: Events, points: int) -> tuple[Vector, float, float]:
    """Sums of the gaps between any two points, by powers of where they lie; then what all samples
    count, and the sum of the sizes of their gaps.
    """
    moments, total, size = np.zeros((4, points + 2)), 0.0, 0.0
    place, mass, below = np.empty((3, _AT_ONCE))
    cell = np.empty(_AT_ONCE, np.int64)
    by_power = torch.from_numpy(moments)
    for confidence, outcome, weights, inside in events.by(_AT_ONCE):
        n = len(confidence)
        if n < _AT_ONCE:  # the last
            place, mass, below, cell = place[:n], mass[:n], below[:n], cell[:n]
        place[:] = confidence
        np.subtract(outcome, place, out=mass)
        if weights is None:
            total += n
        else:
            mass *= weights
            total += weights.sum()
        size += np.abs(mass, out=below).sum()
        place *= points
        place -= 0.5
        if not inside:
            # What is no number lies anywhere: its gap is none either, and says so in every sum.
            np.fmin(np.fmax(place, -1, out=place), points, out=place)
        place -= np.floor(place, out=below)
        below += 1
        np.copyto(cell, below, casting="unsafe")
        cells, masses = torch.from_numpy(cell), torch.from_numpy(mass)
        for sums in by_power:
            sums.scatter_add_(0, cells, masses)
            mass *= place
    return moments, total, size


def _integral_of_size(density: Vector) -> Vector:
    """Integral of each |row| over [0, 1], straight between points, exact where it changes sign."""
    row, crossing = np.nonzero(density[:, :-1] * density[:, 1:] < 0)
    size = np.abs(density, out=density)
    # Two triangles instead of a trapezium.
    a, b = size[row, crossing], size[row, crossing + 1]
    less = np.bincount(row, a * b / (a + b), len(density))
    total: Vector = (size.sum(axis=1) - less) / density.shape[1]
    return total
