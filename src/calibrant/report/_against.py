"""Every model against the first, on the samples they share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import torch
from torch import Tensor

from ..evaluation._comparison import OF_GAPS, _difference, _of_rays
from ..evaluation._differences import Difference
from ..evaluation._interval import fewest_draws
from ..evaluation._paired import Ray
from ..evaluation._resampled import AlongRay, Mean
from ..evaluation._rows import rows_of_events
from ..evaluation._weights import multinomial_weights
from ._models import Told
from ._settings import Settings

# Samples times resamples that two cores judge in some seconds.
_AT_MOST = 20_000_000
# Above this an interval hardly changes; below it its ends are guesses.
_MOST_DRAWS, _FEWEST_DRAWS = 1000, 100

DIFFERENCES = ("accuracy", "nll", "brier", *OF_GAPS)
"""What `differences` can tell, also of mere events, by weight and in any number of bins."""

_SHOWN = ("accuracy", "nll", "brier", "ece")


def draws_for(n: int, draws: int | None = None, level: float = 0.95) -> int:
    """As many resamples as were asked for, or else as many as so many samples leave time for.

    Samples of two models are drawn one by one. But never fewer than can tell the level.

    >>> draws_for(1_000), draws_for(100_000), draws_for(10**6), draws_for(10**6, 500)
    (1000, 200, 100, 500)
    """
    if draws is not None:
        return draws
    in_time = min(_MOST_DRAWS, max(_FEWEST_DRAWS, _AT_MOST // n))
    return max(in_time, fewest_draws(level))


@dataclass(frozen=True)
class Against:
    """One model less the first, criterion by criterion, on the same samples."""

    name: str
    reference: str
    rows: dict[str, Difference]


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of a model for comparison: a few vectors, and not its table."""

    name: str
    told: Told

    @staticmethod
    def of(told: Told) -> "Kept":
        """Without the predictions, so that they can be let go."""
        return Kept(told.name, replace(told, predicted=None, predictions=None))

    def shares_samples_with(self, other: "Kept") -> bool:
        """Whether labels and weights are the same for both; of events nobody can tell."""
        one, two = self.told, other.told
        if one.labels is None or two.labels is None:
            return False
        return torch.equal(one.labels, two.labels) and torch.equal(one.mass, two.mass)


def against_first(kept: Sequence[Kept], settings: Settings) -> list[Against]:
    """Differences with intervals and p-values; only for models that share samples with the first.

    Both are resampled with the same weights, as `compare` does, so that what is hard for both
    cancels.
    """
    first, *others = kept
    return [
        Against(other.name, first.name, differences(other.told, first.told, settings, _SHOWN))
        for other in others
        if other.shares_samples_with(first)
    ]


@torch.no_grad()
def differences(
    one: Told, other: Told, settings: Settings, names: Sequence[str]
) -> dict[str, Difference]:
    """One model less another on the same samples, as `compare` finds them.

    - `names`: of rows, each one of `DIFFERENCES`.
    """
    judged = [_judged(told, names, settings.bins) for told in (one, other)]
    drawn: dict[str, list[Tensor]] = {name: [] for name in names}
    draws = draws_for(len(one), settings.draws, settings.level)
    for weights in multinomial_weights(one.mass, draws, settings.seed):
        for name, kept in drawn.items():
            kept.append(torch.stack([model[name].drawn(weights) for model in judged]))
    first, second = judged
    precision = max(torch.finfo(told.confidence.dtype).eps for told in (one, other))
    return {
        name: _less(first[name], second[name], torch.cat(kept, dim=1), settings.level)
        .within(first[name].furthest)
        .beyond_rounding(precision)
        for name, kept in drawn.items()
    }


@dataclass(frozen=True, eq=False)
class _Judged:
    """One row of a model: its value, how it is resampled, and how far two models can be apart."""

    value: float
    resampled: Mean | AlongRay
    furthest: float

    def drawn(self, weights: Tensor) -> Tensor:
        """One number for each row of weights; of an error one at each place of its ray."""
        if isinstance(self.resampled, Mean):
            return self.resampled.draw(weights)
        return self.resampled.moved(weights, self.resampled.scales_like(weights))


def _judged(told: Told, names: Sequence[str], bins: int) -> dict[str, _Judged]:
    of_events = told.labels is None  # whose squared gap is one at most
    scores = {
        "accuracy": (told.outcome.double(), 1.0),
        "nll": (told.nll, inf),
        "brier": (told.brier, 1.0 if of_events else 2.0),
    }
    errors = rows_of_events(told.confidence, told.outcome, told.mass, told.weights, bins)
    found = {}
    for name in names:
        if name in scores:
            values, furthest = scores[name]
            mean = Mean(values)
            found[name] = _Judged(mean.draw(told.mass[None]).item(), mean, furthest)
        else:
            along = errors[name].resampled
            assert isinstance(along, AlongRay)
            found[name] = _Judged(errors[name].value().item(), along, along.highest)
    return found


def _less(one: _Judged, other: _Judged, drawn: Tensor, level: float) -> Difference:
    """One row less another; `drawn` has the resamples of both."""
    if isinstance(one.resampled, AlongRay) and isinstance(other.resampled, AlongRay):
        first = Ray.of(one.value, one.resampled, drawn[0])
        return _of_rays(first, Ray.of(other.value, other.resampled, drawn[1]), level)
    # Two losses that are both infinite are no distance apart.
    apart = torch.where(drawn[0] == drawn[1], 0, drawn[0] - drawn[1])
    return _difference(one.value, other.value, apart, level)
