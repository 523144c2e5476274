"""The share of what happened in each bin of odds."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import check_bins
from ..predictions import Predictions
from ._isotonic import half_way, pooled
from ._one_vs_rest import StepCurves
from ._report import Outcome
from ._steps import Curve, Floats


class HistogramBinning(StepCurves):
    r"""In every bin of a class's chances, the share of samples where it was true.

    $$f(p) = \frac{\sum_{i : p_i \in B} \omega_i [y_i = j]}{\sum_{i : p_i \in B} \omega_i},
      \qquad p \in B$$

    - `bins`: how many.
    - `equal_mass`: bins that hold equally many samples, bounded half-way between neighbours;
      otherwise bins of equal width in the chance, each open below, where an empty one gives the
      middle of itself.

    Samples with tied odds share a bin, so there may be fewer. For more than two classes each is
    binned against the rest, and the chances are made to sum to one. A share
    is kept $1 / (C (N + 2))$ from 0 and 1, for $N$ samples in its bin, since its logarithm is
    taken.

    >>> import torch
    >>> scores = torch.linspace(-2, 2, 500)
    >>> labels = (torch.arange(500) % 10 < torch.arange(500) // 50).long()  # ever more often
    >>> binning = HistogramBinning(bins=5).fit(scores, labels, folds=0)
    >>> len(binning.predict_proba(scores).unique())
    5

    Zadrozny & Elkan, "Obtaining Calibrated Probability Estimates from Decision Trees and Naive
    Bayesian Classifiers", ICML 2001.
    """

    fewest: ClassVar[int] = 5

    def __init__(self, *, bins: int = 15, equal_mass: bool = True) -> None:
        super().__init__()
        self.bins = bins
        self.equal_mass = equal_mass

    def _fit(self, predictions: Predictions) -> Outcome:
        check_bins(self.bins)
        return super()._fit(predictions)

    def _curve(self, odds: Floats, happened: NDArray[np.bool_], weights: Floats | None) -> Curve:
        x, hits, mass = pooled(odds, happened, weights)
        if self.equal_mass:
            starts = equal_mass_starts(mass, self.bins)
            within = np.add.reduceat(mass, starts)
            return Curve(steps_before(x, starts), np.add.reduceat(hits, starts) / within, within)
        edges = np.arange(1, self.bins) / self.bins
        steps = np.log(edges / (1 - edges))
        bin_of = np.searchsorted(steps, x)
        within = np.bincount(bin_of, mass, self.bins).astype(np.float64)
        middle = (np.arange(self.bins) + 0.5) / self.bins
        share = np.bincount(bin_of, hits, self.bins) / np.where(within > 0, within, 1)
        return Curve(steps, np.where(within > 0, share, middle), within)


def equal_mass_starts(mass: Floats, bins: int) -> NDArray[np.intp]:
    r"""The first of each bin's samples, in ascending order with their weights.

    A sample belongs to bin $\lfloor M m \rfloor$, where $m$ is the share of the weight below its
    own middle; so turning the scale round turns the bins round.
    """
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    bin_of = np.floor(middle * bins)
    return np.flatnonzero(np.r_[True, bin_of[1:] != bin_of[:-1]])


def steps_before(x: Floats, starts: NDArray[np.intp]) -> Floats:
    """Half-way before each start but the first."""
    return half_way(x[starts[1:] - 1], x[starts[1:]])
