"""The numbers of a report, each with an interval."""

from collections.abc import Iterable

import torch
from torch import Tensor

from ..evaluation import Estimate
from ..evaluation._estimates import estimates
from ..evaluation._interval import fewest_draws
from ..evaluation._lots import Lots, mean_drawn
from ..evaluation._rows import Row, rows_of_events
from ._models import Told
from ._settings import Settings

# Above this an interval hardly changes.
_DRAWS = 1000

# The rows of events that are shown.
_SHOWN = ("ece", "debiased_ece", "ks_error", "auroc", "risk_coverage_area")


def draws_of(settings: Settings) -> int:
    """As many resamples as were asked for, or else as `evaluate` draws and the level takes.

    >>> draws_of(Settings()), draws_of(Settings(draws=50)), draws_of(Settings(level=0.999))
    (1000, 50, 1999)
    """
    if settings.draws is not None:
        return settings.draws
    return max(_DRAWS, fewest_draws(settings.level))


@torch.no_grad()
def rows_of(told: Told, settings: Settings) -> dict[str, Estimate]:
    """Every number of one model, with the name that `evaluate` gives it.

    `overconfidence` is the mean confidence less the accuracy.
    """
    return _estimated(told, _SHOWN, settings)


@torch.no_grad()
def few_rows_of(told: Told, settings: Settings) -> dict[str, Estimate]:
    """The same without what only order can tell; those that a comparison needs."""
    return _estimated(told, ["ece"], settings)


def _means(told: Told) -> dict[str, Tensor]:
    confidence, outcome = told.confidence.double(), told.outcome.double()
    return {
        "accuracy": outcome,
        "mean_confidence": confidence,
        "overconfidence": confidence - outcome,
        "nll": told.nll,
        "brier": told.brier,
    }


def _estimated(told: Told, shown: Iterable[str], settings: Settings) -> dict[str, Estimate]:
    counting = told.mass > 0
    told = told if bool(counting.all()) else told.some(counting)  # as `evaluate` does
    mass, lots = told.mass, Lots.of(told.mass)
    rows = {name: _mean(values, mass, lots) for name, values in _means(told).items()}
    events = rows_of_events(
        told.confidence, told.outcome, mass, told.weights, settings.bins, crowded=True
    )
    rows |= {name: events[name] for name in shown}
    draws = draws_of(settings)
    return estimates(rows, mass, draws=draws, level=settings.level, seed=settings.seed)


def _mean(values: Tensor, mass: Tensor, lots: Lots | None) -> Row:
    return Row(lambda: (mass * values).sum() / mass.sum(), mean_drawn(values, lots))
