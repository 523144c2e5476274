"""How much of a score is owed to miscalibration, and how much to knowing too little."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from .. import _html as html
from ..predictions import Predictions
from . import _table as table
from ._as_predictions import check_confidences
from ._events import Forecasts, events, of_one_argument

_PARTS = ("score", "calibration", "refinement", "uncertainty", "discrimination")
# In standard deviations, beside which whatever is finite is likely.
_RULED_OUT = -1e6
_HOW = "score = calibration + refinement; refinement = uncertainty - discrimination"


@dataclass(frozen=True, repr=False)
class Parts:
    r"""A score and what it is made of: score = calibration + refinement.

    - `score`: the mean score of the forecasts, low is good.
    - `refinement`: what would be left after the best recalibration.
    - `uncertainty`: the score of one forecast for all, the observed frequencies.
    """

    score: float
    refinement: float
    uncertainty: float

    @property
    def calibration(self) -> float:
        """What recalibration would gain: never negative."""
        return self.score - self.refinement

    @property
    def discrimination(self) -> float:
        """What forecasts that differ gain over one for all: uncertainty less refinement."""
        return self.uncertainty - self.refinement

    def to_dict(self) -> dict[str, float]:
        """Plain numbers, by part."""
        return {part: getattr(self, part) for part in _PARTS}

    def __repr__(self) -> str:
        return f"{table.plain(_PARTS, [_cells(self)])}\n{_HOW}"


@dataclass(frozen=True, repr=False)
class Decomposition:
    """The parts of the two proper scores; printed, a table of all of them."""

    brier: Parts
    nll: Parts

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Plain numbers, by score and part."""
        return {"brier": self.brier.to_dict(), "nll": self.nll.to_dict()}

    def __repr__(self) -> str:
        return f"{table.plain(*self._rows())}\n{_HOW}"

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        return html.table(*self._rows()) + html.paragraph(_HOW)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        named = {"brier": self.brier, "nll": self.nll}
        return ["", *_PARTS], [[name, *_cells(parts)] for name, parts in named.items()]


def _cells(parts: Parts) -> list[str]:
    return [table.number(x) for x in parts.to_dict().values()]


@of_one_argument
@torch.no_grad()
def decompose(forecasts: Forecasts, *, top_label: bool = False) -> Decomposition:
    r"""Split the Brier score and the negative log-likelihood into calibration and refinement.

    $$\underbrace{S(p)}_{\text{score}} = \underbrace{S(p) - S(\hat p)}_{\text{calibration}}
      + \underbrace{S(\hat p)}_{\text{refinement}}, \qquad
      S(\hat p) = \text{uncertainty} - \text{discrimination}$$

    with $\hat p$ the best recalibration of $p$ to these very labels, among:

    - for events, a pair `(confidence, outcome)` or predictions with `top_label=True`: all maps
      that never decrease. Isotonic regression finds the best, the same for every proper score
      (CORP). The Brier score of an event is $(c - y)^2$.
    - for classes, Brier: the score is a sum over classes, and each is split as events. The
      recalibrated chances of a sample need not sum to one.
    - for classes, likelihood: $\mathrm{softmax}(z / T + b)$ with a temperature $T$ and an offset
      $b$ for every class, by convex minimisation.

    Every family contains leaving $p$ alone and one forecast for all, so no part is negative.
    The map is fitted to the labels it is judged by: calibration is biased upwards, by about
    $C / 2n$ for the likelihood of $C$ classes. Weights count.

    >>> sure, right = torch.tensor([0.9, 0.9, 0.6, 0.6]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    >>> print(decompose((sure, right)))
            score  calibration  refinement  uncertainty  discrimination
    brier  0.3350       0.0850      0.2500       0.2500          0.0000
    nll    0.9588       0.2656      0.6931       0.6931          0.0000
    score = calibration + refinement; refinement = uncertainty - discrimination

    Dimitriadis, Gneiting & Jordan, "Stable reliability diagrams for probabilistic classifiers",
    PNAS 2021; Bröcker, "Reliability, sufficiency, and the decomposition of proper scores", 2009.
    """
    if isinstance(forecasts, Predictions):
        check_confidences(forecasts.confidence)
        weights = forecasts.weights
        counted = torch.ones(len(forecasts)) if weights is None else weights.detach().cpu()
        if not bool(counted.any()):
            raise ValueError("a decomposition needs a sample with weight above zero; got none.")
        if forecasts.labels_per_sample is not None and not top_label:
            raise ValueError(
                "predictions must have one label per sample; got "
                f"{forecasts.labels_per_sample}. Decompose each label's (chance, outcome)."
            )
        if top_label:
            pair = forecasts.confidence.detach().cpu(), forecasts.correct.detach().cpu()
            return _of_events(*events(pair), counted.double())
        counted = counted.double()
        return Decomposition(_brier_by_class(forecasts, counted), _nll_by_class(forecasts, counted))
    confidence, outcome = events(forecasts)
    return _of_events(confidence, outcome, torch.ones_like(outcome))


def _of_events(confidence: Tensor, outcome: Tensor, weights: Tensor) -> Decomposition:
    kept = weights > 0
    c, y, w = (part[kept].double().numpy() for part in (confidence, outcome, weights))
    best, base = isotonic(c, y, w), np.full_like(y, np.average(y, weights=w))

    def mean_square(p: ndarray) -> float:
        return float(np.average((p - y) ** 2, weights=w))

    # What was ruled out and happened is as bad as the smallest number of its type.
    least = torch.finfo(torch.promote_types(confidence.dtype, torch.float32)).tiny

    def surprise(p: ndarray) -> float:
        said = np.maximum(np.where(y == 1, p, 1 - p), least)
        return float(np.average(-np.log(said), weights=w))

    return Decomposition(
        Parts(mean_square(c), mean_square(best), mean_square(base)),
        Parts(surprise(c), surprise(best), surprise(base)),
    )


def isotonic(confidence: ndarray, outcome: ndarray, weights: ndarray) -> ndarray:
    """The best forecasts that never decrease with `confidence`, equal where it is tied."""
    from scipy.optimize import isotonic_regression  # type: ignore[import-untyped]

    # Outcomes descending inside a tie: the fit must pool what it may not raise.
    order = np.lexsort((-outcome, confidence))
    fitted = np.empty_like(outcome)
    fitted[order] = isotonic_regression(outcome[order], weights=weights[order]).x
    # Pooled means may miss 0 and 1 by a rounding.
    return fitted.clip(0, 1)


def _brier_by_class(predictions: Predictions, weights: Tensor) -> Parts:
    chances, happened = (table.detach().cpu().T for table in predictions.marginals)
    parts = [
        _of_events(chance, outcome, weights).brier
        for chance, outcome in zip(chances, happened, strict=True)
    ]
    return Parts(
        sum(part.score for part in parts),
        sum(part.refinement for part in parts),
        sum(part.uncertainty for part in parts),
    )


def _nll_by_class(predictions: Predictions, weights: Tensor) -> Parts:
    from scipy.optimize import minimize

    share = weights / weights.sum()
    score = float((share * -predictions.true_log_prob.detach().cpu().double()).sum())
    frequency = torch.zeros(predictions.classes, dtype=torch.float64)
    frequency = frequency.index_add(0, predictions.labels.cpu(), share)
    # The best offset of a class never seen is minus infinity: it may as well be absent.
    seen = frequency > 0
    labels = (seen.cumsum(0) - 1)[predictions.labels.cpu()]
    z = _in_one_scale(predictions.log_probs.detach().cpu().double()[:, seen])
    observed = torch.cat(
        [(share * z.gather(1, labels[:, None])[:, 0]).sum()[None], frequency[seen]]
    )

    def objective(point: ndarray) -> tuple[float, ndarray]:
        inverse, offset = point[0], torch.from_numpy(point[1:])
        log_probs = (inverse * z + offset).log_softmax(dim=1)
        probs = share[:, None] * log_probs.exp()
        expected = torch.cat([(probs * z).sum()[None], probs.sum(dim=0)])
        loss = -(share * log_probs.gather(1, labels[:, None])[:, 0]).sum()
        return float(loss), (expected - observed).numpy()

    start = np.concatenate([[1.0], np.zeros(int(seen.sum()))])
    bounds = [(0.0, None)] + [(None, None)] * int(seen.sum())
    options = {"maxiter": 1_000, "ftol": 1e-14, "gtol": 1e-9}
    best = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).fun
    uncertainty = -float(torch.special.xlogy(frequency, frequency).sum())
    return Parts(score, min(float(best), score, uncertainty), uncertainty)


def _in_one_scale(z: Tensor) -> Tensor:
    """Divided by their spread, which no temperature remembers, so that it is found as easily.

    A class ruled out by minus infinity stays ruled out, and zero times it stays a number.
    """
    finite = z.isfinite()
    spread = z[finite].std(correction=0)
    return torch.where(finite, z / torch.where(spread > 0, spread, 1), _RULED_OUT)
