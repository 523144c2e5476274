"""Every model against the first, on the samples they share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import torch

from ..evaluation._differences import Difference
from ..evaluation._interval import fewest_draws
from ..evaluation._judged import OF_GAPS, Judged
from ..evaluation._lots import Lots, mean_drawn
from ..evaluation._resampled import AlongRay, Mean
from ..evaluation._rows import rows_of_events
from ..evaluation._together import differences as paired
from ._models import Told
from ._settings import Settings

# Samples times resamples that two cores judge in some seconds.
_AT_MOST = 20_000_000
# Above this an interval hardly changes; below it its ends are guesses.
_MOST_DRAWS, _FEWEST_DRAWS = 1000, 100


DIFFERENCES = ("accuracy", "nll", "brier", *OF_GAPS)
"""What `differences` can tell, also of mere events, by weight and in any number of bins."""

_SHOWN = ("accuracy", "nll", "brier", "ece")


def draws_for(
    n: int, names: Sequence[str] = DIFFERENCES, draws: int | None = None, level: float = 0.95
) -> int:
    """As many resamples as were asked for, or else as many as keep the ends of intervals steady.

    Of many samples some criteria are drawn one by one, and so as often as there is time for. But
    never less often than can tell the level.

    - `names`: of the criteria.

    >>> draws_for(10**6), draws_for(10**6, draws=500)
    (1000, 500)
    >>> [draws_for(n, ["dece"]) for n in (1_000, 100_000, 1_000_000)]
    [1000, 200, 100]
    """
    if draws is not None:
        return draws
    in_time = min(_MOST_DRAWS, max(_FEWEST_DRAWS, _AT_MOST // n))
    enough = _MOST_DRAWS if set(names) <= set(DIFFERENCES) else in_time
    return max(enough, fewest_draws(level))


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
    lots = Lots.of(one.mass)
    first, second = (_judged(told, names, settings.bins, lots) for told in (one, other))
    return paired(
        {name: (first[name], second[name]) for name in names},
        one.mass,
        lots,
        draws=draws_for(len(one), names, settings.draws, settings.level),
        level=settings.level,
        seed=settings.seed,
        precision=max(torch.finfo(told.confidence.dtype).eps for told in (one, other)),
    )


def _judged(told: Told, names: Sequence[str], bins: int, lots: Lots | None) -> dict[str, Judged]:
    """Rows of a model, each of single samples, or of lots and crowds of them."""
    of_events = told.labels is None  # whose squared gap is one at most
    scores = {
        "accuracy": (told.outcome.double(), 1.0),
        "nll": (told.nll, inf),
        "brier": (told.brier, 1.0 if of_events else 2.0),
    }
    given = told.confidence, told.outcome, told.mass, told.weights
    errors = rows_of_events(*given, bins, crowded=lots is not None)
    found = {}
    for name in names:
        if name in scores:
            values, furthest = scores[name]
            value = partial(Mean(values).draw, told.mass[None])
            found[name] = Judged(value, mean_drawn(values, lots), furthest)
        else:
            along = errors[name].resampled
            assert isinstance(along, AlongRay)
            found[name] = Judged(errors[name].value, along, along.highest)
    return found
