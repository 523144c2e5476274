"""The numbers of a report, each with an interval."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..evaluation import Estimate
from ..evaluation._estimates import estimates
from ..evaluation._interval import fewest_draws
from ..evaluation._resampled import Mean
from ..evaluation._rows import Row, rows_of_events
from ._models import Told
from ._settings import Settings

# Samples times resamples that two cores judge in some seconds.
_AT_MOST = 20_000_000
# Above this an interval hardly changes; below it its ends are guesses.
_MOST_DRAWS, _FEWEST_DRAWS = 1000, 100
# Beyond this many samples, rows whose resamples are slow are left out.
_MANY = 20_000

# The rows of events that are shown, and whether they are slow.
_SHOWN = {
    "ece": False,
    "debiased_ece": True,
    "ks_error": False,
    "auroc": False,
    "risk_coverage_area": False,
}


def draws_for(n: int, draws: int | None = None, level: float = 0.95) -> int:
    """As many resamples as were asked for, or else as many as so many samples leave time for.

    But never fewer than can tell the level.

    >>> draws_for(1_000), draws_for(100_000), draws_for(10**6), draws_for(10**6, 500)
    (1000, 200, 100, 500)
    """
    if draws is not None:
        return draws
    in_time = min(_MOST_DRAWS, max(_FEWEST_DRAWS, _AT_MOST // n))
    return max(in_time, fewest_draws(level))


@torch.no_grad()
def rows_of(told: Told, settings: Settings) -> dict[str, Estimate]:
    """Every number of one model, with the name that `evaluate` gives it.

    `overconfidence` is the mean confidence less the accuracy.
    """
    means = _means(told)
    shown = [name for name, slow in _SHOWN.items() if len(told) <= _MANY or not slow]
    return _estimated(told, means, shown, settings)


@torch.no_grad()
def few_rows_of(told: Told, settings: Settings) -> dict[str, Estimate]:
    """The same without what only order can tell; those that a comparison needs."""
    means = _means(told)
    return _estimated(told, means, ["ece"], settings)


def _means(told: Told) -> dict[str, Tensor]:
    confidence, outcome = told.confidence.double(), told.outcome.double()
    return {
        "accuracy": outcome,
        "mean_confidence": confidence,
        "overconfidence": confidence - outcome,
        "nll": told.nll,
        "brier": told.brier,
    }


def _estimated(
    told: Told, means: dict[str, Tensor], shown: Sequence[str], settings: Settings
) -> dict[str, Estimate]:
    rows = {name: _mean(values, told.mass) for name, values in means.items()}
    events = rows_of_events(told.confidence, told.outcome, told.mass, told.weights, settings.bins)
    rows |= {name: events[name] for name in shown}
    draws = draws_for(len(told), settings.draws, settings.level)
    return estimates(rows, told.mass, draws=draws, level=settings.level, seed=settings.seed)


def _mean(values: Tensor, mass: Tensor) -> Row:
    return Row(lambda: (mass * values).sum() / mass.sum(), Mean(values))
