"""What a comparison knows of each of its models: criteria, and how they are resampled."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor

from ..criteria import Criterion
from ..measures import MEASURES
from ..measures._precision import widened
from ..predictions import Predictions
from ..scores import SCORES, Score
from ._lots import Lots, mean_drawn
from ._resampled import AlongRay, OfWeights
from ._rows import rows_of_events
from ._weights import Population

OF_GAPS = ("ece", "mce", "label_binned_ece", "debiased_ece", "ks_error", "esd")
"""Near calibration so biased, or so skewed, that resamples need a truth to scatter around."""

# Of other rows of events those that are the same of crowds.
_OF_NEIGHBOURS = ("mmce", "smooth_ece")
# How far two models can be apart; the errors of a ray say so themselves.
_FURTHEST = {"accuracy": 1.0, "brier": 2.0}


@dataclass(frozen=True, eq=False)
class Judged:
    """A criterion of one model.

    - `value`: of the predictions. `resampled`: how. `furthest`: how far apart two models can be.
    """

    value: Callable[[], Tensor]
    resampled: OfWeights
    furthest: float = inf

    def drawn(self, weights: Tensor) -> Tensor:
        """One number for each row of weights; of an error one at each place of its ray."""
        if isinstance(self.resampled, AlongRay):
            return self.resampled.moved(weights, self.resampled.scales_like(weights))
        return self.resampled.draw(weights)


def judged(
    predictions: Predictions,
    criteria: Mapping[str, Criterion],
    ones: Float[Tensor, " n"],
    lots: Lots | None,
) -> dict[str, Judged]:
    """Every criterion of one model: errors made of gaps along their rays, others as they are.

    - `ones`: how much each sample counts. `lots`: of the samples, where they are many.
    """
    events, crowded = (predictions.confidence, predictions.correct), lots is not None
    rows = rows_of_events(*events, ones, None, bins=15, crowded=crowded)
    known = (*OF_GAPS, *_OF_NEIGHBOURS)
    found = {}
    for name, criterion in criteria.items():
        value = partial(criterion, predictions)
        row = next((each for each in known if criterion == MEASURES[each]), None)
        of_row = None if row is None else rows[row].resampled
        if row in OF_GAPS and isinstance(of_row, AlongRay):
            found[name] = Judged(value, of_row, of_row.highest)
        elif crowded and isinstance(of_row, OfWeights):
            found[name] = Judged(value, Still(of_row))
        else:
            far = (far for score, far in _FURTHEST.items() if criterion == SCORES[score])
            found[name] = Judged(value, _resampled(criterion, predictions, lots), next(far, inf))
    return found


def _resampled(criterion: Criterion, predictions: Predictions, lots: Lots | None) -> OfWeights:
    """Lots only of means, if each of their numbers is that of a sample alone."""
    if lots is not None and isinstance(criterion, Score) and criterion.row_by_row:
        (values,) = widened(criterion.per_sample(predictions))
        return mean_drawn(values, lots)
    return ByCriterion(criterion, predictions)


@dataclass(frozen=True)
class Still(OfWeights):
    """A statistic as it is, and not along the rays that it may have."""

    statistic: OfWeights

    @property
    def crowds(self) -> Population | None:
        """Those of the statistic."""
        return self.statistic.crowds

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """The same."""
        return self.statistic.draw(weights)


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
