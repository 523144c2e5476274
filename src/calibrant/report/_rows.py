"""The numbers of a report, each with an interval."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..evaluation import Estimate
from ..evaluation._estimates import estimates
from ..evaluation._resampled import Mean
from ..evaluation._rows import Row, rows_of_events
from ._models import Told
from ._settings import Settings

# Samples times resamples that two cores judge in a few seconds.
_AT_MOST = 10_000_000
# Below this the ends of an interval are guesses.
_FEWEST_DRAWS = 100
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


def draws_for(n: int, draws: int) -> int:
    """As many resamples as were asked for, or as many as so many samples leave time for.

    >>> draws_for(1_000, 1000), draws_for(100_000, 1000), draws_for(10**6, 1000)
    (1000, 100, 100)
    """
    return min(draws, max(_FEWEST_DRAWS, _AT_MOST // n))


@torch.no_grad()
def rows_of(told: Told, settings: Settings) -> dict[str, Estimate]:
    """Every number of one model, with the name that `evaluate` gives it.

    `overconfidence` is the mean confidence less the accuracy.
    """
    confidence, outcome = told.confidence.double(), told.outcome.double()
    means = {
        "accuracy": outcome,
        "mean_confidence": confidence,
        "overconfidence": confidence - outcome,
        "nll": told.nll,
        "brier": told.brier,
    }
    shown = [name for name, slow in _SHOWN.items() if len(told) <= _MANY or not slow]
    return _estimated(told.confidence, told.outcome, means, shown, settings)


@torch.no_grad()
def few_rows_of(confidence: Tensor, outcome: Tensor, settings: Settings) -> dict[str, Estimate]:
    """Accuracy, mean confidence, their difference and the calibration error of some samples."""
    wide, right = confidence.double(), outcome.double()
    means = {"accuracy": right, "mean_confidence": wide, "overconfidence": wide - right}
    return _estimated(confidence, outcome, means, ["ece"], settings)


def _estimated(
    confidence: Tensor,
    outcome: Tensor,
    means: dict[str, Tensor],
    shown: Sequence[str],
    settings: Settings,
) -> dict[str, Estimate]:
    ones = torch.ones(len(confidence), dtype=torch.float64)
    rows = {name: _mean(values) for name, values in means.items()}
    events = rows_of_events(confidence, outcome, ones, None, settings.bins)
    rows |= {name: events[name] for name in shown}
    draws = draws_for(len(ones), settings.draws)
    return estimates(rows, ones, draws=draws, level=settings.level, seed=settings.seed)


def _mean(values: Tensor) -> Row:
    return Row(values.mean, Mean(values))
