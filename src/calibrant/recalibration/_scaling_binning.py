"""A sigmoid first, and bins of its values after: calibration that can be verified."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._checks import check_bins
from ..predictions import Predictions
from ._histogram import equal_mass_starts, steps_before
from ._isotonic import pooled
from ._one_vs_rest import StepCurves
from ._platt import fit_platt
from ._report import Outcome
from ._steps import Curve, Floats


class ScalingBinning(StepCurves):
    r"""In every bin, the mean of a fitted sigmoid, not of the outcomes.

    Three steps for each class: fit Platt's sigmoid $g$; choose $B$ bins of its values that hold
    equally many samples; give every value the mean of $g$ in its bin,

    $$f(s) = \frac{1}{|B|} \sum_{i \in B} g(s_i), \qquad s \in B$$

    The mean of $g$ varies less than the mean of the outcomes, so fewer samples calibrate as well
    as `HistogramBinning`; and as it takes only $B$ values, its calibration error can be measured,
    which that of a continuous curve cannot.

    - `bins`: $B$.

    All three steps use the same samples, as in the authors' code; their theorem splits them. For
    more than two classes the chances are made to sum to one, which the authors leave out.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> scores, labels = torch.randn(500), torch.arange(500) % 2
    >>> fitted = ScalingBinning(bins=4).fit(scores, labels, folds=0)
    >>> len(fitted.predict_proba(scores).unique())
    4

    Kumar, Liang & Ma, "Verified Uncertainty Calibration", NeurIPS 2019, section 4.
    """

    fewest: ClassVar[int] = 5

    def __init__(self, *, bins: int = 10) -> None:
        super().__init__()
        self.bins = bins

    def _fit(self, predictions: Predictions) -> Outcome:
        check_bins(self.bins)
        return super()._fit(predictions)

    def _curve(self, odds: Floats, happened: NDArray[np.bool_], weights: Floats | None) -> Curve:
        fitted = fit_platt(odds, happened, weights, smoothed=True)
        if fitted is None:
            raise ValueError("odds must be finite; got some beyond what double precision holds.")
        slope, shift = fitted[0]
        x, _, mass = pooled(odds, happened, weights)
        chance = mass / (1 + np.exp(-(slope * x.astype(np.float64) + shift)))
        starts = equal_mass_starts(mass, self.bins)
        levels = np.add.reduceat(chance, starts) / np.add.reduceat(mass, starts)
        return Curve(steps_before(x, starts), levels, np.full(len(starts), mass.sum()))
