"""The gap between what was said and what happened, smoothed by a spline."""

from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions
from ._isotonic import pooled
from ._odds import against_top
from ._recalibrator import Recalibrator
from ._report import Outcome
from ._steps import Floats, looked_up, stacked

# How near to 0 and 1 a confidence may come.
_LEAST = 1e-6
# The correction is smooth, so as many points of it are enough.
_POINTS = 1023


class SplineCalibration(Recalibrator):
    r"""Correct the confidence by the slope of a spline through the cumulative gap.

    With the samples in order of the confidence $c$ of their predicted class, and $t$ the share of
    samples up to each, the gap that the Kolmogorov–Smirnov error is the largest of,

    $$h(t) = \frac1n \sum_{i : t_i \le t} \bigl([\hat y_i = y_i] - c_i\bigr),$$

    is fitted by a natural cubic spline with least squares. Its slope is how far accuracy is above
    confidence there, so $c \mapsto c + h'(t(c))$.

    - `knots`: of the spline, equally far apart in $t$.

    The other classes share what is left in the proportions they had. The predicted class stays:
    where its new confidence would fall below the next class's it is held just above. Confidence
    is kept 1e-6 from 0 and 1 before its logarithm is taken. Between samples the correction is
    interpolated linearly in the log-odds; the authors' code interpolates the confidence, with
    its two weights exchanged.

    >>> _ = torch.manual_seed(0)
    >>> logits, labels = torch.randn(500, 3), torch.arange(500) % 3
    >>> spline = SplineCalibration().fit(3 * logits, labels, folds=0)
    >>> bool((spline.transform(logits).argmax(1) == logits.argmax(1)).all())
    True

    Gupta et al., "Calibration of Neural Networks using Splines", ICLR 2021.
    """

    learnt: ClassVar[tuple[str, ...]] = ("steps_", "values_", "slopes_")
    keeps_order: ClassVar[bool] = True
    fewest: ClassVar[int] = 10

    steps_: Tensor
    values_: Tensor
    slopes_: Tensor

    def __init__(self, *, knots: int = 6) -> None:
        super().__init__()
        self.knots = knots

    def _fit(self, predictions: Predictions) -> Outcome:
        if not isinstance(self.knots, int) or self.knots < 3:
            raise ValueError(f"knots must be a whole number, at least 3; got {self.knots!r}.")
        _, others, top = against_top(predictions.scores)
        odds = (predictions.scores.gather(1, top) - others)[:, 0].cpu().numpy()
        right = (top[:, 0] == predictions.labels).cpu().numpy()
        weights = predictions.weights
        x, hits, mass = pooled(
            odds, right, None if weights is None else weights.double().cpu().numpy()
        )
        correction = spline_correction(x.astype(np.float64), hits, mass, self.knots)
        steps, values, slopes = _lines(x.astype(np.float64), correction)
        device = predictions.logits.device
        self._learn(steps_=steps.to(device), values_=values.to(device), slopes_=slopes.to(device))
        return Outcome()

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        _, others, top = against_top(logits)
        dtype = logits.dtype
        odds = logits.gather(1, top) - others
        value, slope = looked_up(odds, self.steps_, self.values_.to(dtype), self.slopes_.to(dtype))
        wanted = (odds.sigmoid() + value + slope * odds).clamp(_LEAST, 1 - _LEAST).logit() + others
        next_best = logits.scatter(1, top, float("-inf")).amax(dim=1, keepdim=True)
        least = next_best + 16 * torch.finfo(dtype).eps * (1 + next_best.abs())
        return logits.scatter(1, top, torch.maximum(wanted, least))


def spline_correction(odds: Floats, hits: Floats, mass: Floats, knots: int) -> Floats:
    """How far accuracy is above confidence at each of the ascending odds."""
    from scipy.interpolate import CubicSpline  # type: ignore[import-untyped]

    total = mass.sum()
    confidence = 1 / (1 + np.exp(-odds))
    share = np.cumsum(mass) / total
    gap = np.cumsum(hits - mass * confidence) / total
    # A natural spline is linear in its values at the knots: one column for each.
    natural = CubicSpline(np.linspace(0, 1, knots), np.eye(knots), bc_type="natural")
    root = np.sqrt(mass)
    heights, *_ = np.linalg.lstsq(root[:, None] * natural(share), root * gap, rcond=None)
    slope: Floats = natural(share - mass / (2 * total), 1) @ heights
    return slope


def _lines(x: Floats, y: Floats) -> tuple[Tensor, Tensor, Tensor]:
    """Straight lines through points, level beyond them: `y = value + slope x` in each piece."""
    kept = np.unique(np.linspace(0, len(x) - 1, _POINTS).round().astype(int))
    x, y = x[kept], y[kept]
    slope = np.r_[0.0, np.diff(y) / np.diff(x), 0.0]
    value = np.r_[y[0], y[:-1] - slope[1:-1] * x[:-1], y[-1]]
    steps, values = stacked([(x, value)])
    return steps, values, stacked([(x, slope)])[1]
