"""What a comparison knows of each of its models: criteria, and how they are resampled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor

from ..criteria import Criterion
from ..measures._precision import widened
from ..predictions import Predictions
from ..scores import SCORES, Score
from ._class_draws import OverClasses
from ._lots import Lots, mean_drawn
from ._named import BY_CLASS, known
from ._resampled import AlongRay, Mean, OfWeights
from ._rows import Row, by_class, rows_of_events
from ._weights import Population

# How far two models can be apart; errors say so themselves.
_FURTHEST = {"accuracy": 1.0, "brier": 2.0}

Scores = Mapping[str, tuple[Float[Tensor, " n"], float]]
"""By name one number for each sample, and how far apart two means of them can be."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A criterion of one model.

    - `value`: of the predictions. `resampled`: how. `furthest`: how far apart two models can be.
    """

    value: Callable[[], Tensor]
    resampled: OfWeights | OverClasses
    furthest: float = inf

    @property
    def crowds(self) -> Population | None:
        """What is drawn of it, where that is not the samples one by one."""
        return self.resampled.crowds if isinstance(self.resampled, OfWeights) else None

    def drawn(self, weights: Tensor) -> Tensor:
        """One number for each row of weights; of an error one at each place of its ray."""
        assert isinstance(self.resampled, OfWeights)
        if isinstance(self.resampled, AlongRay):
            return self.resampled.moved(weights, self.resampled.scales_like(weights))
        return self.resampled.draw(weights)


def judged(
    predictions: Predictions,
    criteria: Mapping[str, Criterion],
    mass: Float[Tensor, " n"],
    lots: Lots | None,
    seed: int,
) -> dict[str, Judged]:
    """Every criterion of one model: rows of errors along their rays, others as they are.

    - `mass`: how much each sample counts. `lots`: of the samples, where they are many.
    """
    confidence, correct, counted = predictions.confidence, predictions.correct, predictions.weights

    @cache
    def errors(bins: int) -> dict[str, Row]:
        crowded = lots is not None
        return rows_of_events(confidence, correct, mass, counted, bins, crowded=crowded, seed=seed)

    @cache
    def classes(bins: int) -> dict[str, Row]:
        return by_class(predictions, mass, bins)

    found = {}
    for name, criterion in criteria.items():
        value, row = partial(criterion, predictions), known(criterion)
        if row is not None:
            rows = classes if row.row in BY_CLASS else errors
            found[name] = _along(value, rows(row.bins)[row.row])
        else:
            far = (far for score, far in _FURTHEST.items() if criterion == SCORES[score])
            found[name] = Judged(value, _resampled(criterion, predictions, lots), next(far, inf))
    return found


def judged_events(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    scores: Scores,
    mass: Float[Tensor, " n"],
    counted: Float[Tensor, " n"] | None,
    lots: Lots | None,
    names: Sequence[str],
    *,
    bins: int,
    seed: int,
) -> dict[str, Judged]:
    """Rows of a model of which only how sure it was, whether it was right, and its scores are kept.

    - `names`: of the rows. `mass`: how much each sample counts; `counted`: the same, or nothing
      where all count once. `lots`: of the samples, where they are many.
    """
    crowded = lots is not None
    errors = rows_of_events(confidence, outcome, mass, counted, bins, crowded=crowded, seed=seed)
    found = {}
    for name in names:
        if name in scores:
            values, furthest = scores[name]
            value = partial(Mean(values).draw, mass[None])
            found[name] = Judged(value, mean_drawn(values, lots), furthest)
        else:
            found[name] = _along(errors[name].value, errors[name])
    return found


def _along(value: Callable[[], Tensor], row: Row) -> Judged:
    assert isinstance(row.resampled, AlongRay | OverClasses)
    return Judged(value, row.resampled, row.resampled.highest)


def _resampled(criterion: Criterion, predictions: Predictions, lots: Lots | None) -> OfWeights:
    """Lots only of means, if each of their numbers is that of a sample alone."""
    if lots is not None and isinstance(criterion, Score) and criterion.row_by_row:
        (values,) = widened(criterion.per_sample(predictions))
        return mean_drawn(values, lots)
    # What is drawn has the weights of the samples in it.
    return ByCriterion(criterion, predictions._some(slice(None), None))


@dataclass(frozen=True)
class ByCriterion(OfWeights):
    """A criterion of single samples, whatever it is."""

    criterion: Criterion
    predictions: Predictions

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Under each row of weights: order and ties are found once for all rows."""
        counts = weights.to(self.predictions.confidence.dtype)
        try:
            return torch.vmap(self._judge)(counts).double()
        except RuntimeError:  # a criterion that looks at its values cannot be mapped
            return torch.stack([self._judge(row) for row in counts]).double()

    def _judge(self, row: Float[Tensor, " n"]) -> Tensor:
        return self.criterion(self.predictions.reweighted(row))
