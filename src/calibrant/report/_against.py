"""Every model against the first, on the samples they share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import torch

from ..evaluation._differences import Difference
from ..evaluation._how_often import draws_for
from ..evaluation._judged import Judged, judged_events
from ..evaluation._lots import Lots
from ..evaluation._together import differences as paired
from ._models import Told
from ._settings import Settings

_SHOWN = ("accuracy", "nll", "brier", "ece")


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
        Against(other.name, first.name, differences(other.told, first.told, settings))
        for other in others
        if other.shares_samples_with(first)
    ]


@torch.no_grad()
def differences(one: Told, other: Told, settings: Settings) -> dict[str, Difference]:
    """One model less another on the same samples, as `compare` finds them."""
    of_events = one.labels is None
    counting = one.mass > 0
    if not bool(counting.all()):  # drawn, those that do not count could be all that is
        one, other = one.some(counting), other.some(counting)
    lots = Lots.of(one.mass)
    first, second = (_judged(told, settings, lots, of_events) for told in (one, other))
    return paired(
        {name: (first[name], second[name]) for name in _SHOWN},
        one.mass,
        lots,
        draws=draws_for(len(one), _SHOWN, settings.draws, settings.level),
        level=settings.level,
        seed=settings.seed,
        precision=max(torch.finfo(told.confidence.dtype).eps for told in (one, other)),
    )


def _judged(
    told: Told, settings: Settings, lots: Lots | None, of_events: bool
) -> dict[str, Judged]:
    """Rows of a model, each of single samples, or of lots and crowds of them.

    - `of_events`: whose squared gap is one at most.
    """
    scores = {
        "accuracy": (told.outcome.double(), 1.0),
        "nll": (told.nll, inf),
        "brier": (told.brier, 1.0 if of_events else 2.0),
    }
    return judged_events(
        told.confidence,
        told.outcome,
        scores,
        told.mass,
        told.weights,
        lots,
        _SHOWN,
        bins=settings.bins,
        seed=settings.seed,
    )
