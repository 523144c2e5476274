"""The rows of an evaluation: for each a criterion, and how it is resampled."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from ..criteria import Criterion, class_wise, per_class
from ..measures import (
    debiased_ece,
    ece,
    esd,
    ks_error,
    label_binned_ece,
    mce,
    mmce,
    smooth_ece,
    sweep_ece,
)
from ..measures._precision import widened
from ..predictions import Predictions
from ..scores import Score, accuracy, brier, nll
from ._bin_totals import by_mass, by_width
from ._binned_draws import BinnedDraws, debiased_gap, l2_gap, total_gap
from ._class_cells import Cut
from ._class_draws import LabelDraws, OverClasses
from ._crowd_esd import CrowdEsdDraws
from ._crowds import Drawn, events_drawn
from ._esd_draws import EsdDraws
from ._ks_draws import KsDraws
from ._label_binned_draws import LabelBinnedDraws
from ._largest_draws import LargestGapDraws
from ._lots import Lots, mean_drawn
from ._mmce_draws import MmceDraws
from ._ranking import auroc, risk_coverage_area
from ._ranking_draws import RankingDraws
from ._resampled import Events, Resampled
from ._smooth_draws import SmoothDraws
from ._sweep_draws import SweepDraws
from ._uncertainty import avu, mean_entropy


@dataclass(frozen=True)
class Row:
    """A statistic's value, and how it is resampled."""

    value: Callable[[], Tensor]
    resampled: Resampled


def rows_of_events(
    confidence: Tensor,
    outcome: Tensor,
    weights: Tensor,
    counted: Tensor | None,
    bins: int,
    *,
    crowded: bool = False,
    seed: int = 0,
) -> dict[str, Row]:
    """What needs only how sure and whether it was right.

    - `weights`: one number per sample, `counted`: the same, or nothing where all count once.
    - `crowded`: draw neighbours together where samples are many.
    - `seed`: of what a row draws by itself.
    """
    given = confidence, outcome, weights
    events, sweep = events_drawn(*given, bins) if crowded else Drawn(Events.of(*given))
    esd_draws = EsdDraws if events.crowds is None else CrowdEsdDraws
    width, mass = by_width(events, bins), by_mass(events, bins)
    settings = {} if counted is None else {"weights": counted}

    def row(measure: Callable[..., Tensor], resampled: Resampled, **more: object) -> Row:
        return Row(partial(measure, confidence, outcome, **more, **settings), resampled)

    by = partial(BinnedDraws, events)
    return {
        "ece": row(ece, by(width, total_gap), bins=bins),
        "ece_l2": row(ece, by(width, l2_gap), bins=bins, norm=2),
        "mce": row(mce, LargestGapDraws(events, width, bins, seed), bins=bins),
        "ece_mass": row(ece, by(mass, total_gap), bins=bins, binning="mass"),
        "ece_mass_l2": row(ece, by(mass, l2_gap), bins=bins, norm=2, binning="mass"),
        "label_binned_ece": row(label_binned_ece, LabelBinnedDraws(events, bins), bins=bins),
        "debiased_ece": row(debiased_ece, by(mass, debiased_gap, l2_gap), bins=bins),
        "sweep_ece": row(sweep_ece, SweepDraws(events, sweep)),
        "smooth_ece": row(smooth_ece, SmoothDraws(events)),
        "ks_error": row(ks_error, KsDraws(events)),
        "esd": row(esd, esd_draws(events)),
        "mmce": row(mmce, MmceDraws(events)),
        "auroc": row(auroc, RankingDraws(auroc, events)),
        "risk_coverage_area": row(risk_coverage_area, RankingDraws(risk_coverage_area, events)),
    }


def rows_of_predictions(predictions: Predictions, weights: Tensor, bins: int) -> dict[str, Row]:
    """Every row: the scores, what is measured class by class, and the rows of events."""
    scores = {"accuracy": accuracy, "nll": nll, "brier": brier}
    uncertainty = {"avu": avu, "mean_entropy": mean_entropy}
    confidence, correct = predictions.confidence, predictions.correct
    events = rows_of_events(confidence, correct, weights, predictions.weights, bins, crowded=True)
    lots = Lots.of(weights)
    return (
        {name: _score(score, predictions, lots) for name, score in scores.items()}
        | events
        | by_class(predictions, weights, bins)
        | {name: _score(score, predictions, lots) for name, score in uncertainty.items()}
    )


def _score(score: Score[[]], predictions: Predictions, lots: Lots | None) -> Row:
    (values,) = widened(score.per_sample(predictions))
    return Row(partial(score, predictions), mean_drawn(values, lots))


def by_class(predictions: Predictions, weights: Tensor, bins: int) -> dict[str, Row]:
    """What is measured class by class."""
    labels = LabelDraws(predictions, weights, bins)
    criteria: dict[str, tuple[Criterion, Cut]] = {
        "class_wise_ece": (class_wise(partial(ece, bins=bins)), "width"),
        "marginal_ece": (
            class_wise(partial(ece, bins=bins, norm=2, binning="mass"), norm=2),
            "mass",
        ),
        "per_class_ece": (per_class(partial(ece, bins=bins)), "predicted"),
    }
    return {
        name: Row(partial(criterion, predictions), OverClasses(labels, cut))
        for name, (criterion, cut) in criteria.items()
    }
