"""Before and after recalibration, each sample judged by a map that was fitted without it."""

from dataclasses import dataclass
from math import erfc, sqrt

import torch
from torch import Tensor

from ..evaluation import Estimate
from ..predictions import Predictions
from ..predictions._of_probabilities import OfProbabilities
from ..recalibration import (
    BestOf,
    BetaCalibration,
    EnsembleTemperatureScaling,
    TemperatureScaling,
)
from ..scores import brier, nll
from ._bins import Bin, reliability_bins
from ._models import Told
from ._rows import few_rows_of
from ._settings import Settings

FOLDS = 5
# Numbers that each map is fitted to at most: a few parameters need no more.
_FITTED_TO, _FEWEST_ROWS = 1_000_000, 500
# Numbers mapped at once.
_AT_ONCE = 2**21


@dataclass(frozen=True)
class Repair:
    """What the recommended recalibration makes of a model, on samples it was not fitted to.

    - `method`: the map chosen for all samples. `said`: why, in a sentence.
    - `learnt`: its numbers, where they are few.
    - `folds`, `fitted_to`: how many parts took turns, and how many samples each fit saw.
    - `before`, `after`: rows by name. `bins`: of the reliability diagram afterwards.
    - `gain`: of the negative log-likelihood, with its interval; `p_value`: of no gain.
    - `changes_nothing`: whether the map chosen for all samples is the identity.
    """

    method: str
    said: str
    learnt: dict[str, float]
    folds: int
    fitted_to: int
    before: dict[str, Estimate]
    after: dict[str, Estimate]
    bins: list[Bin]
    gain: Estimate
    p_value: float
    changes_nothing: bool

    @property
    def is_worth_it(self) -> bool:
        """Whether there is a map that clearly gains on samples it has not seen."""
        return not self.changes_nothing and self.gain.low > 0


@torch.no_grad()
def repair(told: Told, before: dict[str, Estimate], settings: Settings) -> Repair | str:
    """Cross-fit `BestOf`; where it cannot be fitted, the sentence that says why.

    - `before`: the rows of the model as it is.
    """
    try:
        parts = _parts(len(told), settings.seed)
        after = _cross_fitted(told, parts)
        final = _fitted(told, _fitting_rows(parts >= 0, told, settings.seed))
    except ValueError as refusal:
        return str(refusal)
    gain, p = _gain(told.nll - after.nll, told.mass, settings.level)
    return Repair(
        method=repr(final.best_),
        said=final.report_.message,
        learnt={
            name.rstrip("_"): value.item()
            for name, value in final.best_.named_buffers()
            if value.numel() == 1 and value.is_floating_point()
        },
        folds=FOLDS,
        fitted_to=len(_fitting_rows(parts != 0, told, settings.seed)),
        before=before,
        after=few_rows_of(after, settings),
        bins=reliability_bins(
            after.confidence,
            after.outcome,
            bins=settings.bins,
            level=settings.level,
            weights=told.weights,
        ),
        gain=gain,
        p_value=p,
        changes_nothing=type(final.best_).__name__ == "Identity",
    )


def _parts(n: int, seed: int) -> Tensor:
    if n < 10 * FOLDS:
        raise ValueError(
            f"recalibration is judged on {10 * FOLDS} samples or more; got {n}. Gather more."
        )
    shuffled = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return torch.empty(n, dtype=torch.int64).index_copy(0, shuffled, torch.arange(n) % FOLDS)


def _fitting_rows(allowed: Tensor, told: Told, seed: int) -> Tensor:
    """Where to fit: all that is allowed, or some of it drawn at random."""
    places = allowed.nonzero()[:, 0]
    most = max(_FEWEST_ROWS, _FITTED_TO // (told.classes or 2))
    if len(places) <= most:
        return places
    drawn = torch.randperm(len(places), generator=torch.Generator().manual_seed(seed))[:most]
    return places[drawn.sort().values]


def _fitted(told: Told, rows: Tensor) -> BestOf:
    weights = None if told.weights is None else told.weights[rows]
    if told.predictions is None:
        return BestOf([TemperatureScaling(), BetaCalibration()]).fit(
            told.confidence[rows],
            told.outcome[rows].long(),
            weights=weights,
            probabilities=True,
            folds=0,
        )
    some = told.predictions._some(rows.to(told.predictions.labels.device), None)
    table, chances = _said(some)
    candidates = [TemperatureScaling(), EnsembleTemperatureScaling()]
    return BestOf(candidates).fit(
        table, some.labels, weights=weights, probabilities=chances, folds=0
    )


def _said(predictions: Predictions) -> tuple[Tensor, bool]:
    """What the model said, and whether these are probabilities."""
    given = isinstance(predictions, OfProbabilities)
    return (predictions.probs if given else predictions.logits), given


def _cross_fitted(told: Told, parts: Tensor) -> Told:
    """What the maps say of the samples they have not seen."""
    columns = {name: torch.empty_like(getattr(told, name)) for name in _VECTORS}
    for k in range(FOLDS):
        fitted = _fitted(told, _fitting_rows(parts != k, told, k))
        held = (parts == k).nonzero()[:, 0]
        for rows in held.split(max(1, _AT_ONCE // (told.classes or 2))):
            for name, values in _mapped(told, fitted, rows).items():
                columns[name][rows] = values.to(columns[name])
    return Told(
        told.name,
        columns["confidence"],
        columns["outcome"],
        columns["nll"],
        columns["brier"],
        weights=told.weights,
    )


_VECTORS = ("confidence", "outcome", "nll", "brier")


def _mapped(told: Told, fitted: BestOf, rows: Tensor) -> dict[str, Tensor]:
    if told.predictions is None:
        right = told.outcome[rows]
        chance = fitted.predict_proba(told.confidence[rows], probabilities=True)
        said = Predictions.from_probabilities(chance.clamp(0, 1), right.long())
        score = (chance - right).double().square()
        return {
            "confidence": chance, "outcome": right, "nll": nll.per_sample(said), "brier": score,
        }  # fmt: skip
    some = told.predictions._some(rows.to(told.predictions.labels.device), None)
    table, chances = _said(some)
    after = Predictions(fitted.transform(table, probabilities=chances), some.labels)
    return {
        "confidence": after.confidence,
        "outcome": after.correct,
        "nll": nll.per_sample(after),
        "brier": brier.per_sample(after),
    }


def _gain(values: Tensor, mass: Tensor, level: float) -> tuple[Estimate, float]:
    """A weighted mean with its interval, and the p-value of zero, both by the normal law."""
    from scipy.special import ndtri  # type: ignore[import-untyped]

    n, middle = len(values), ((mass * values).sum() / mass.sum()).item()
    scatter = (mass * (values - middle)).square().sum().sqrt() / mass.sum()
    error = scatter.item() * sqrt(n / (n - 1))
    half = float(ndtri((1 + level) / 2)) * error
    z = middle / error if error > 0 else 0.0
    return Estimate(middle, middle - half, middle + half, 0), erfc(abs(z) / sqrt(2))
