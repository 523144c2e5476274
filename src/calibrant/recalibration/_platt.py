"""A sigmoid of the odds."""

from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from ..predictions import Predictions
from ._logistic import Logistic, fit_logistic
from ._odds import log_odds, logits_of_odds
from ._one_vs_rest import events
from ._recalibrator import Recalibrator
from ._refusals import refuse
from ._report import Outcome
from ._steps import Floats


class PlattScaling(Recalibrator):
    r"""Scale and shift the log-odds of every class against the rest.

    $$p_j \mapsto \sigma\bigl(a_j s_j + b_j\bigr), \qquad s_j = \log \frac{p_j}{1 - p_j}$$

    Each class is a logistic regression of its own, solved by Newton's method; for more than two
    classes the chances are then made to sum to one. Two classes share one $(a, b)$.

    - `smoothed`: fit to $(N_+ + 1) / (N_+ + 2)$ and $1 / (N_- + 2)$ in place of 1 and 0, as
      Platt does, where $N_\pm$ is the weight of what did and did not happen: then a finite
      optimum always exists. Without it, data that can be told apart are refused.

    Few log-odds far from all the others bend the whole sigmoid. The logarithm of a probability of
    zero is such: pass the probabilities themselves, with `probabilities=True`.

    >>> _ = torch.manual_seed(0)
    >>> scores, labels = torch.randn(500), torch.arange(500) % 2
    >>> platt = PlattScaling().fit(scores, labels, folds=0)
    >>> platt.slope_.shape, platt.predict_proba(scores).shape
    (torch.Size([1]), torch.Size([500]))

    Platt, "Probabilistic Outputs for Support Vector Machines", 1999.
    """

    learnt: ClassVar[tuple[str, ...]] = ("slope_", "shift_")
    needs_every_class: ClassVar[bool] = True

    slope_: Tensor
    shift_: Tensor

    def __init__(self, *, smoothed: bool = True) -> None:
        super().__init__()
        self.smoothed = smoothed

    def _fit(self, predictions: Predictions) -> Outcome:
        found, most = [], 0
        for event in events(predictions):
            fitted = fit_platt(*event, smoothed=self.smoothed)
            if fitted is None:
                refuse(predictions, "a slope", "smoothed=True")
            found.append(fitted[0])
            most = max(most, fitted[1])
        slope, shift = torch.from_numpy(np.array(found)).to(predictions.logits.device).T
        self._learn(slope_=slope, shift_=shift)
        return Outcome(iterations=most)

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        slope, shift = self.slope_.to(logits.dtype), self.shift_.to(logits.dtype)
        return logits_of_odds(slope * log_odds(logits) + shift)


def fit_platt(
    odds: Floats, happened: NDArray[np.bool_], weights: Floats | None, *, smoothed: bool
) -> tuple[Floats, int] | None:
    """Slope and shift of one event, and the steps it took; None where there is no optimum."""
    counts = np.ones(len(odds)) if weights is None else weights
    targets = happened.astype(np.float64)
    if smoothed:
        yes, no = counts[happened].sum(), counts[~happened].sum()
        targets = np.where(happened, (yes + 1) / (yes + 2), 1 / (no + 2))
    features = np.stack([odds.astype(np.float64), np.ones(len(odds))], axis=1)
    return fit_logistic(Logistic(features, targets, counts, 0.0, np.array([1.0, 0.0])))
