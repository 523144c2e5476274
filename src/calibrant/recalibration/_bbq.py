"""An average of histograms with every number of bins, by how well each explains the data."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..predictions import Predictions
from ._histogram import equal_mass_starts, steps_before
from ._isotonic import pooled
from ._one_vs_rest import StepCurves
from ._report import Outcome
from ._steps import Curve, Floats


class BBQ(StepCurves):
    r"""Bayesian binning into quantiles: histograms of many sizes, averaged by their evidence.

    A histogram of $B$ bins that hold equally many samples is a model $M$; each bin has a share
    with a beta prior of weight $N' / B$ around the middle $\bar p_b$ of the bin. The evidence is

    $$P(D \mid M) = \prod_b \frac{\Gamma(N'/B)}{\Gamma(N_b + N'/B)}
      \frac{\Gamma(m_b + \alpha_b)}{\Gamma(\alpha_b)}
      \frac{\Gamma(n_b + \beta_b)}{\Gamma(\beta_b)}, \quad
      \alpha_b = \tfrac{N'}{B} \bar p_b,\; \beta_b = \tfrac{N'}{B} (1 - \bar p_b)$$

    with $m_b$ of the $N_b = m_b + n_b$ samples true, and the chance is the mean of
    $(m_b + \alpha_b) / (N_b + N'/B)$ over the models, by evidence. From $n^{1/3} / 10$ to
    $10\, n^{1/3}$ bins are tried, each with the same prior chance.

    - `prior_weight`: $N'$.

    For more than two classes each is averaged against the rest, and the chances are made to sum
    to one. Takes $O(n^{4/3})$ time a class, and keeps a number or two per sample.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> scores, labels = torch.randn(500), torch.arange(500) % 2
    >>> BBQ().fit(scores, labels, folds=0).predict_proba(scores).shape
    torch.Size([500])

    Pakdaman Naeini, Cooper & Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
    Binning", AAAI 2015.
    """

    fewest: ClassVar[int] = 5

    def __init__(self, *, prior_weight: float = 2.0) -> None:
        super().__init__()
        self.prior_weight = prior_weight

    def _fit(self, predictions: Predictions) -> Outcome:
        if not 0 < self.prior_weight < float("inf"):
            raise ValueError(
                f"prior_weight must be positive and finite; got {self.prior_weight!r}. Usual is 2."
            )
        return super()._fit(predictions)

    def _curve(self, odds: Floats, happened: NDArray[np.bool_], weights: Floats | None) -> Curve:
        x, hits, mass = pooled(odds, happened, weights)
        tried = numbers_of_bins(mass.sum(), len(x))
        models = [self._model(x, hits, mass, bins) for bins in tried]
        evidence = np.array([score for score, _, _ in models])
        belief = np.exp(evidence - evidence.max())
        belief /= belief.sum()
        # A mean of curves of steps has a step wherever one of them has.
        jumps = np.zeros(len(x))
        for share, (_, starts, levels) in zip(belief, models, strict=True):
            jumps[starts] += share * np.diff(levels, prepend=0.0)
        starts = np.unique(np.concatenate([starts for _, starts, _ in models]))
        return Curve(
            steps_before(x, starts), np.cumsum(jumps[starts]), np.full(len(starts), mass.sum())
        )

    def _model(
        self, x: Floats, hits: Floats, mass: Floats, bins: int
    ) -> tuple[float, NDArray[np.intp], Floats]:
        """Logarithm of the evidence, the first sample of each bin, and the level of each bin."""
        from scipy.special import gammaln  # type: ignore[import-untyped]

        starts = equal_mass_starts(mass, bins)
        m, total = np.add.reduceat(hits, starts), np.add.reduceat(mass, starts)
        edges = 1 / (1 + np.exp(-steps_before(x, starts)))
        middle = (np.r_[0.0, edges] + np.r_[edges, 1.0]) / 2
        # Odds beyond what a chance can hold would make a prior of zero.
        middle = middle.clip(1e-12, 1 - 1e-12)
        weight = self.prior_weight / len(starts)
        alpha, beta = weight * middle, weight * (1 - middle)
        score = (
            gammaln(weight)
            - gammaln(total + weight)
            + gammaln(m + alpha)
            - gammaln(alpha)
            + gammaln(total - m + beta)
            - gammaln(beta)
        ).sum()
        return float(score), starts, (m + alpha) / (total + weight)


def numbers_of_bins(samples: float, places: int) -> range:
    """How many bins are tried for a number of samples, which lie at so many places."""
    root = float(np.cbrt(samples))
    fewest, most = max(1.0, root // 10), np.ceil(10 * root)
    # More bins than places would be the same bins again, however much each sample counts.
    return range(int(min(fewest, places)), int(min(most, places)) + 1)
