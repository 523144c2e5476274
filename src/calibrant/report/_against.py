"""Every model against the first, on the samples they share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..evaluation._comparison import _difference, _of_rays
from ..evaluation._differences import Difference
from ..evaluation._paired import Ray
from ..evaluation._resampled import AlongRay
from ..evaluation._rows import rows_of_events
from ..evaluation._weights import multinomial_weights
from ._models import Told
from ._rows import draws_for
from ._settings import Settings


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
    labels: Tensor | None

    @staticmethod
    def of(told: Told) -> "Kept":
        """Without the predictions, so that they can be let go."""
        bare = replace(told, predicted=None, labels=None, predictions=None)
        return Kept(told.name, bare, told.labels)

    def shares_samples_with(self, other: "Kept") -> bool:
        """Whether labels and weights are the same for both; of events nobody can tell."""
        if self.labels is None or other.labels is None:
            return False
        return torch.equal(self.labels, other.labels) and torch.equal(
            self.told.mass, other.told.mass
        )


def against_first(kept: Sequence[Kept], settings: Settings) -> list[Against]:
    """Differences with intervals and p-values; only for models that share samples with the first.

    Both are resampled with the same weights, as `compare` does, so that what is hard for both
    cancels.
    """
    first, *others = kept
    return [
        Against(other.name, first.name, _differences(other.told, first.told, settings))
        for other in others
        if other.shares_samples_with(first)
    ]


@torch.no_grad()
def _differences(one: Told, other: Told, settings: Settings) -> dict[str, Difference]:
    mass = one.mass
    gains = {
        "accuracy": (one.outcome.double(), other.outcome.double()),
        "nll": (one.nll, other.nll),
        "brier": (one.brier, other.brier),
    }
    paired = torch.stack([a - b for a, b in gains.values()], dim=1)
    errors = [_error(told, settings.bins) for told in (one, other)]
    drawn: list[Tensor] = []
    moved: list[list[Tensor]] = [[], []]
    draws = draws_for(len(one), settings.draws, settings.level)
    for weights in multinomial_weights(mass, draws, settings.seed):
        drawn.append(weights @ paired / weights.sum(dim=1, keepdim=True))
        for kept, (_, error) in zip(moved, errors, strict=True):
            kept.append(error.moved(weights, error.scales_like(weights)))
    resamples = torch.cat(drawn)
    rows = {
        name: _difference(_mean(a, mass), _mean(b, mass), resamples[:, k], settings.level)
        for k, (name, (a, b)) in enumerate(gains.items())
    }
    rays = [
        Ray.of(value, error, torch.cat(kept))
        for (value, error), kept in zip(errors, moved, strict=True)
    ]
    rows["ece"] = _of_rays(rays[0], rays[1], settings.level)
    precision = max(torch.finfo(told.confidence.dtype).eps for told in (one, other))
    return {name: row.beyond_rounding(precision) for name, row in rows.items()}


def _mean(values: Tensor, mass: Tensor) -> float:
    return ((mass * values).sum() / mass.sum()).item()


def _error(told: Told, bins: int) -> tuple[float, AlongRay]:
    row = rows_of_events(told.confidence, told.outcome, told.mass, told.weights, bins)["ece"]
    assert isinstance(row.resampled, AlongRay)
    return row.value().item(), row.resampled
