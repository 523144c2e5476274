"""A curve with a bend of its own at either end of the scale."""

from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions
from ._logistic import Logistic, fit_logistic
from ._odds import log_chances, logits_of_odds
from ._one_vs_rest import events
from ._recalibrator import Recalibrator
from ._refusals import check_strength, refuse
from ._report import Outcome
from ._steps import Floats


class BetaCalibration(Recalibrator):
    r"""Log-odds that weigh the chance for and the chance against each by itself.

    $$p_j \mapsto \sigma\bigl(a_j \log p_j - b_j \log(1 - p_j) + c_j\bigr), \qquad a_j, b_j \ge 0$$

    What Bayes' rule gives where the scores of each class follow a beta law. The log-loss is convex
    in $(a, b, c)$ and its optimum within the bounds is exact: Newton's method on every face of
    the bounds, of which the best that keeps them is taken. $(1, 1, 0)$ changes nothing.

    - `ridge`: a pull $\frac{\rho}{2}((a-1)^2 + (b-1)^2 + c^2)$ towards that, which keeps the
      optimum finite. With 0, data that can be told apart without a mistake are refused.

    For more than two classes each is fitted against the rest, and the chances are made to sum to
    one. Two classes share one curve.

    >>> _ = torch.manual_seed(0)
    >>> scores, labels = torch.randn(500), torch.arange(500) % 2
    >>> BetaCalibration().fit(scores, labels, folds=0).coefficients_.shape
    torch.Size([1, 3])

    Kull, Silva Filho & Flach, "Beta calibration: a well-founded and easily implemented
    improvement on logistic calibration for binary classifiers", AISTATS 2017.
    """

    learnt: ClassVar[tuple[str, ...]] = ("coefficients_",)
    needs_every_class: ClassVar[bool] = True

    coefficients_: Tensor

    def __init__(self, *, ridge: float = 1e-6) -> None:
        super().__init__()
        self.ridge = ridge

    def _fit(self, predictions: Predictions) -> Outcome:
        check_strength(ridge=self.ridge)
        found, most = [], 0
        for odds, happened, weights in events(predictions):
            counts = np.ones(len(odds)) if weights is None else weights
            wide = odds.astype(np.float64)
            features = np.stack(
                [-np.logaddexp(0, -wide), np.logaddexp(0, wide), np.ones(len(wide))], axis=1
            )
            targets = happened.astype(np.float64)
            problem = Logistic(features, targets, counts, self.ridge, np.array([1.0, 1.0, 0.0]))
            fitted = _within_bounds(problem)
            if fitted is None:
                refuse(predictions, "a coefficient", "ridge=1e-6")
            found.append(fitted[0])
            most = max(most, fitted[1])
        self._learn(coefficients_=torch.from_numpy(np.array(found)).to(predictions.logits.device))
        return Outcome(iterations=most)

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        a, b, c = self.coefficients_.to(logits.dtype).T
        log_chance, log_miss = log_chances(logits)
        return logits_of_odds(a * log_chance - b * log_miss + c)


def _within_bounds(problem: Logistic) -> tuple[Floats, int] | None:
    """The optimum with the first two coefficients not negative; None where it is infinite."""
    best: tuple[float, Floats, int] | None = None
    for dropped in ([], [0], [1], [0, 1]):
        fitted = fit_logistic(problem.without(dropped))
        if fitted is None:
            return None
        theta = np.insert(fitted[0], [k - i for i, k in enumerate(dropped)], 0.0)
        if theta[0] < 0 or theta[1] < 0:
            continue
        if not dropped:
            return theta, fitted[1]
        if best is None or problem.value(theta) < best[0]:
            best = problem.value(theta), theta, fitted[1]
    return None if best is None else best[1:]
