"""The temperature that minimises a criterion with several minima: scan, then refine."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ..criteria import Criterion, name_of
from ..criteria._lifts import _TopLabel, judge
from ..measures import MEASURES, soft_binned_ece, soft_label_binned_ece
from ..predictions import Predictions
from ..scores import SCORES
from ._inputs import rows, with_logits
from ._report import Outcome
from ._scaled import Scaled

# The scan, in the logarithm of the inverse temperature: how far to each side of the start, and
# how fine; and how many rows it looks at, since it only has to find the right valley.
_REACH, _GRID = 4.0, 0.2
_SCANNED_ROWS = 8192
# Ever finer grids, of this many points to each side, down to this step.
_POINTS, _FINEST = 5, 5e-4
# How precisely a slope of zero is found.
_PRECISE = 1e-9

_SOFT = (soft_binned_ece, soft_label_binned_ece)


def criterion_of(objective: str | Criterion) -> Criterion:
    """A criterion, or the one of that name."""
    if callable(objective):
        return objective
    named = SCORES | MEASURES | {"sb_ece": MEASURES["soft_label_binned_ece"]}
    if objective not in named:
        raise ValueError(
            f"objective must be a criterion or the name of one; got {objective!r}. "
            f"There are: {', '.join(sorted(named))}."
        )
    return named[objective]


def search(criterion: Criterion, predictions: Predictions, start: float) -> tuple[float, Outcome]:
    """The inverse temperature at which the criterion is least, and how it was found.

    `start`: logarithm of the inverse temperature in the middle of the scan.
    """
    every = -(-len(predictions) // _SCANNED_ROWS)
    kept = torch.arange(0, len(predictions), every, device=predictions.logits.device)
    sample = predictions if every == 1 else rows(predictions, kept)
    value = Curve(criterion, sample)
    best = _least(value, start, _GRID, round(_REACH / _GRID))
    if abs(best - start) > _REACH - _GRID / 2:
        raise ValueError(
            f"no finite temperature is best for {name_of(criterion)}: it keeps falling towards "
            f"{'T = 0' if best > start else 'T = infinity'}. Accuracy is "
            f"{predictions.correct.mean():.1%} on {len(predictions)} samples; "
            'use objective="nll", or more held-out data.'
        )
    scanned = 0
    if every > 1:
        scanned, value = value.asked, Curve(criterion, predictions)
        best = _least(value, best, _GRID, _POINTS)
    if value.is_soft:
        best = _descend(value, best)
    else:
        step = _GRID
        while step > _FINEST:
            step /= _POINTS
            best = _least(value, best, step, _POINTS)
    return math.exp(best), Outcome(converged=True, iterations=scanned + value.asked)


class Curve:
    """A criterion as a function of the logarithm of the inverse temperature.

    What judges the predicted class alone needs one number per row, which `Scaled` finds without
    a table of probabilities; anything else is given the scaled logits.
    """

    def __init__(self, criterion: Criterion, predictions: Predictions) -> None:
        self.criterion, self.predictions = criterion, predictions
        self.measure = criterion.inner if isinstance(criterion, _TopLabel) else None
        self.is_soft = self.measure in _SOFT
        self.asked = 0
        if self.measure is not None:
            self.scaled = Scaled(predictions)
            self.correct = predictions.correct.to(self.scaled.lag.dtype)

    def __call__(self, log_beta: float) -> float:
        """The value; infinite where it is not a number, so that it is never least."""
        self.asked += 1
        if self.measure is None:
            scaled = with_logits(self.predictions, self.predictions.scores * math.exp(log_beta))
            value = self.criterion(scaled).item()
        else:
            confidence = (-self.scaled.moments(math.exp(log_beta), order=0).log_sum).exp()
            value = self._judged(confidence).item()
        return math.inf if math.isnan(value) else value

    def slope(self, log_beta: float) -> float:
        r"""Derivative of the value: a confidence $c$ changes by $-\beta c\,\mathbb{E}[d]$."""
        self.asked += 1
        beta = math.exp(log_beta)
        moments = self.scaled.moments(beta, order=1)
        confidence = (-moments.log_sum).exp()
        with torch.enable_grad():
            leaf = confidence.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(self._judged(leaf), leaf)
        return -beta * float(gradient @ (confidence * moments.mean))

    def _judged(self, confidence: Tensor) -> Tensor:
        assert self.measure is not None
        return judge(self.measure, confidence, self.correct, self.predictions.weights)


def _least(value: Callable[[float], float], centre: float, step: float, points: int) -> float:
    """The best of a grid, the one nearest to its centre where several are."""
    offsets = sorted(range(-points, points + 1), key=abs)
    return min((centre + step * k for k in offsets), key=value)


def _descend(value: Curve, best: float) -> float:
    """Where the slope is zero, between the neighbours of the best point of the grid."""
    from scipy.optimize import brentq  # type: ignore[import-untyped]

    low, high = best - _GRID, best + _GRID
    if not value.slope(low) < 0 < value.slope(high):
        return best
    zero: float = brentq(value.slope, low, high, xtol=_PRECISE)
    return zero
