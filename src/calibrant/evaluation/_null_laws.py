"""What running sums of gaps do when a model is calibrated: drawn, and in the limit."""

from math import erfc, exp, pi, sqrt
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

# Numbers held at once while outcomes are drawn: 1 MiB in float64, which a cache can hold.
_AT_ONCE = 2**17

# Up to this many distinct confidences outcomes are drawn as they are; above it, neighbours
# are drawn together, in this many runs.
EXACT_UP_TO = 2**14
RUNS = 2**9


class Null(NamedTuple):
    """Draws of three statistics for outcomes that come true as often as they should."""

    ks: Float[ndarray, " draws"]
    kuiper: Float[ndarray, " draws"]
    esd: Float[ndarray, " draws"]


def draw_null(confidence: Float[ndarray, " n"], *, draws: int, seed: int = 0) -> Null:
    r"""Statistics of coins tossed with the chances `confidence`.

    The order of the confidences and their ties are the same in every draw, so a draw is a
    running sum. With $n_g$ samples tied at $c_g$, of which $k_g$ come true,
    $S_g = k_g - n_g c_g$, running sums $D_g$ of these, $s_g$ samples before the tie and
    $q_g = n_g c_g^2 + k_g (1 - 2 c_g)$, the sum of squared gaps in the tie,

    $$\mathrm{ESD} = \frac{\sum_g n_g D_g^2 - 2 D_g S_g - q_g (n - s_g - 2)}{n (n-1) (n-2)} .$$

    Takes $O(\mathrm{draws} \cdot g)$ time for $g$ distinct confidences, and a few MiB. Beyond
    16,384 of them runs of neighbours are drawn as if tied at their mean, 512 runs with equal
    shares of the variance.
    """
    n = len(confidence)
    chance, tied = _ties(np.sort(confidence))
    expected, several = tied * chance, tied > 1
    after = n - 2 - (np.cumsum(tied) - tied)
    rng = np.random.default_rng(seed)
    blocks = []
    for start in range(0, draws, step := max(1, _AT_ONCE // len(chance))):
        rows = min(step, draws - start)
        true = (rng.random((rows, len(chance))) < chance).astype(np.float64)
        if several.any():
            shape = (rows, int(several.sum()))
            true[:, several] = rng.binomial(tied[several], chance[several], shape)
        running = true.cumsum(axis=1)
        running -= np.cumsum(expected)
        high, low = running.max(axis=1).clip(min=0), running.min(axis=1).clip(max=0)
        squares = np.einsum("ij,ij,j->i", running, running, tied)
        own = np.einsum("ij,ij->i", running, true) - running @ expected
        pairs = true @ (after * (1 - 2 * chance)) + (after * expected * chance).sum()
        total = squares - 2 * own - pairs
        blocks.append(
            (np.maximum(high, -low) / n, (high - low) / n, total / (n * (n - 1) * (n - 2)))
        )
    return Null(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def ends_of_ties(confidence: Float[ndarray, " n"]) -> Int[ndarray, " g"]:
    """In ascending order, the last place of each tie that `draw_null` sees."""
    _, tied = _ties(np.sort(confidence))
    ends: Int[ndarray, " g"] = np.cumsum(tied) - 1
    return ends


def _ties(
    ascending: Float[ndarray, " n"],
) -> tuple[Float[ndarray, " g"], Int[ndarray, " g"]]:
    """Distinct confidences and how often each occurs; runs of neighbours where too many."""
    chance, tied = np.unique(ascending, return_counts=True)
    if len(chance) <= EXACT_UP_TO:
        return chance, tied
    clock = np.cumsum(ascending * (1 - ascending))
    run = np.ceil(clock / clock[-1] * RUNS).clip(min=1)
    _, first, tied = np.unique(run, return_index=True, return_counts=True)
    return np.add.reduceat(ascending, first) / tied, tied


def beyond_supremum(x: float) -> float:
    r"""Chance that $\max_{t \le 1} |B_t|$ of a Brownian motion is at least $x$.

    >>> round(beyond_supremum(2.2414), 4)
    0.05
    """
    if x <= 0:
        return 1.0
    if x < 1:  # the other series would need many terms; this one is its dual
        odd = ((2 * k + 1, _sign(k)) for k in range(4))
        return 1 - 4 / pi * sum(sign / m * exp(-((m * pi / x) ** 2) / 8) for m, sign in odd)
    return 4 * sum(_sign(k) * _tail((2 * k + 1) * x) for k in range(6))


def beyond_range(x: float) -> float:
    r"""Chance that $\max_{t \le 1} B_t - \min_{t \le 1} B_t$ of a Brownian motion is at least $x$.

    >>> round(beyond_range(2.4977), 4)
    0.05

    Feller, "The Asymptotic Distribution of the Range of Sums of Independent Random
    Variables", Annals of Mathematical Statistics, 1951.
    """
    if x <= 0:
        return 1.0
    if x < 2:
        odd = ((2 * k + 1) * pi for k in range(4))
        return 1 - 8 * sum((m**-2 + x**-2) * exp(-((m / x) ** 2) / 2) for m in odd)
    return 8 * sum(_sign(k - 1) * k * _tail(k * x) for k in range(1, 8))


def _sign(k: int) -> int:
    return -1 if k % 2 else 1


def _tail(x: float) -> float:
    """Chance that a standard normal variable exceeds `x`."""
    return erfc(x / sqrt(2)) / 2
