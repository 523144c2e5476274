"""A curve for every class by itself, from the odds it was given to the chance it has."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from ..predictions import Predictions
from ._odds import against_top, log_odds, logits_of_odds
from ._recalibrator import Recalibrator
from ._report import Outcome
from ._steps import Curve, Floats, looked_up, stacked

# Odds made at once.
_AT_ONCE = 2**20


class StepCurves(Recalibrator):
    """What methods share that learn a curve of steps for each class against the rest.

    A subclass gives `_curve`. Levels are kept away from 0 and 1 by what the samples behind them
    can speak for, and the chances of the classes are made to sum to one. Of two classes one
    curve, that of the second, settles both.
    """

    learnt: ClassVar[tuple[str, ...]] = ("steps_", "levels_")
    needs_every_class: ClassVar[bool] = True

    steps_: Tensor
    levels_: Tensor

    def _fit(self, predictions: Predictions) -> Outcome:
        curves = [self._curve(*event).tamed(predictions.classes) for event in events(predictions)]
        steps, levels = stacked([curve[:2] for curve in curves])
        device = predictions.logits.device
        self._learn(steps_=steps.to(device), levels_=levels.to(device))
        return Outcome()

    def _curve(self, odds: Floats, happened: NDArray[np.bool_], weights: Floats | None) -> Curve:
        """The curve of one event."""
        raise NotImplementedError

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        levels = self.levels_.logit().to(logits.dtype)
        (odds,) = looked_up(log_odds(logits), self.steps_, levels)
        return logits_of_odds(odds)


def events(
    predictions: Predictions,
) -> Iterator[tuple[Floats, NDArray[np.bool_], Floats | None]]:
    """For each event, the odds it was given, where it happened, and weights."""
    labels = predictions.labels.cpu().numpy()
    weights = None if predictions.weights is None else predictions.weights.double().cpu().numpy()
    first = 0 if predictions.classes > 2 else 1
    for event, odds in enumerate(odds_by_class(predictions.scores), first):
        yield odds, labels == event, weights


def odds_by_class(scores: Tensor) -> Iterator[Floats]:
    """What `log_odds` gives, column by column, a few columns made at a time."""
    if scores.shape[1] == 2:
        yield log_odds(scores)[:, 0].cpu().numpy()
        return
    parts = [against_top(part) for part in scores.split(max(1, _AT_ONCE // scores.shape[1]))]
    total, others, top = (torch.cat(columns)[:, 0] for columns in zip(*parts, strict=True))
    lead = scores.gather(1, top[:, None])[:, 0] - others
    for start in range(0, scores.shape[1], max(1, _AT_ONCE // len(scores))):
        odds = scores[:, start : start + max(1, _AT_ONCE // len(scores))].T.contiguous()
        odds -= total
        odds -= odds.exp().neg_().log1p_()
        here = ((top >= start) & (top < start + len(odds))).nonzero()[:, 0]
        odds[top[here] - start, here] = lead[here]
        yield from odds.cpu().numpy()
