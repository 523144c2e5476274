"""The chance that never falls as the odds rise, class by class or one curve for all."""

from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from ..predictions import Predictions
from ._one_vs_rest import StepCurves
from ._recalibrator import Recalibrator
from ._report import Outcome
from ._steps import Curve, Floats, looked_up, stacked


class IsotonicCalibration(StepCurves):
    r"""For every class, the rising curve that fits what happened best.

    $$\min_f \sum_i \omega_i \bigl([y_i = j] - f(s_{ij})\bigr)^2, \qquad f \text{ never falling}$$

    where $s_{ij}$ are the odds of class $j$ against the rest. The pool-adjacent-violators
    algorithm finds it; samples with tied odds are one. Between two levels the curve steps half-way
    between the odds on either side, so that rounding does not move a sample to another level.

    For more than two classes each curve is fitted by itself, and the chances are made to sum to
    one: the predicted class may change. `SharedIsotonicCalibration` keeps it. A level is kept
    $1 / (C (N + 2))$ from 0 and 1, for $N$ samples behind it, since its logarithm is taken.

    >>> _ = torch.manual_seed(0)
    >>> logits, labels = torch.randn(500, 3), torch.arange(500) % 3
    >>> IsotonicCalibration().fit(logits, labels, folds=0).predict_proba(logits).shape
    torch.Size([500, 3])

    Zadrozny & Elkan, "Transforming Classifier Scores into Accurate Multiclass Probability
    Estimates", KDD 2002.
    """

    def _curve(self, odds: Floats, happened: NDArray[np.bool_], weights: Floats | None) -> Curve:
        return isotonic_curve(odds, happened, weights)


class SharedIsotonicCalibration(Recalibrator):
    r"""One rising curve for all classes, which keeps the order of the classes in every row.

    All $n C$ pairs of a chance and whether it came true are fitted by one isotonic curve $f$, and
    the chances become

    $$p_j \propto f(p_j) + \epsilon\, p_j$$

    whose second part breaks the ties that levels make, so that the predicted class stays.

    - `epsilon`: how much of the given chance is mixed in.

    The curve steps as that of `IsotonicCalibration` does, and its levels are kept as far from 0.

    >>> _ = torch.manual_seed(0)
    >>> logits, labels = torch.randn(500, 3), torch.arange(500) % 3
    >>> fitted = SharedIsotonicCalibration().fit(logits, labels, folds=0)
    >>> bool((fitted.transform(logits).argmax(1) == logits.argmax(1)).all())
    True

    Zhang, Kailkhura & Han, "Mix-n-Match: Ensemble and Compositional Methods for Uncertainty
    Calibration in Deep Learning", ICML 2020, where it is called IRM.
    """

    learnt: ClassVar[tuple[str, ...]] = ("steps_", "levels_")
    keeps_order: ClassVar[bool] = True

    steps_: Tensor
    levels_: Tensor

    def __init__(self, *, epsilon: float = 1e-3) -> None:
        super().__init__()
        self.epsilon = epsilon

    def _fit(self, predictions: Predictions) -> Outcome:
        if not 0 < self.epsilon <= 1:
            raise ValueError(f"epsilon must lie above 0 and not above 1; got {self.epsilon!r}.")
        chances = predictions.scores.log_softmax(dim=1)
        hits = torch.zeros_like(chances, dtype=torch.bool)
        hits[torch.arange(len(hits)), predictions.labels] = True
        weights = predictions.weights
        if weights is not None:
            weights = weights.double()[:, None].expand_as(chances).reshape(-1).cpu()
        curve = isotonic_curve(
            chances.reshape(-1).cpu().numpy(),
            hits.reshape(-1).cpu().numpy(),
            None if weights is None else weights.numpy(),
        )
        tables = stacked([curve.tamed(predictions.classes)[:2]])
        steps, levels = (table.to(chances.device) for table in tables)
        self._learn(steps_=steps, levels_=levels)
        return Outcome()

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        chances = logits.log_softmax(dim=1)
        (levels,) = looked_up(chances, self.steps_, self.levels_.to(logits.dtype))
        mapped = (levels + self.epsilon * chances.exp()).log()
        # Two chances may round to one number; the nudge is about what rounding takes.
        nudge = torch.full_like(mapped[:, :1], 16 * torch.finfo(mapped.dtype).eps)
        return mapped.scatter_add(1, logits.argmax(dim=1, keepdim=True), nudge)


def isotonic_curve(
    odds: Floats, happened: NDArray[np.bool_], weights: Floats | None = None
) -> Curve:
    """The rising curve of steps with the least squared error."""
    from scipy.optimize import isotonic_regression  # type: ignore[import-untyped]

    if weights is None:
        first, last, hits, mass = runs(odds, happened)
    else:
        first, hits, mass = pooled(odds, happened, weights)
        last = first
    fit = isotonic_regression(hits / mass, weights=mass)
    starts, ends = fit.blocks[:-1], fit.blocks[1:]
    return Curve(half_way(last[ends - 1][:-1], first[starts][1:]), fit.x[starts], fit.weights)


def runs(odds: Floats, happened: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats, Floats]:
    """Lowest and highest odds of runs of samples, ascending, the hits in each, and its size.

    A run is all samples at odds where something happened, or all between two such odds. The best
    curve is level on each: were there a step among samples of one outcome, that outcome would be
    at least the level above it and at most the level below. So only odds are sorted, without the
    order they came in, which takes a tenth of the time.
    """
    at = np.sort(odds[happened])
    # Below the first hit order does not matter.
    below = odds < (at[0] if len(at) else np.inf)
    low = np.count_nonzero(below)
    rest = np.sort(odds[~below])
    at, hits = np.unique(at, return_counts=True)
    edges = np.stack([rest.searchsorted(at, "left"), rest.searchsorted(at, "right")], axis=1)
    starts = np.r_[0, edges.flatten()]
    ends = np.r_[edges.flatten(), len(rest)]
    count = np.zeros(len(starts))
    count[1::2] = hits
    some = ends > starts
    starts, ends, count = starts[some], ends[some], count[some]
    first, last, mass = rest[starts], rest[ends - 1], (ends - starts).astype(np.float64)
    if low:
        highest = np.where(below, odds, -np.inf).max()
        first, last = np.r_[-np.inf, first], np.r_[highest, last]
        count, mass = np.r_[0.0, count], np.r_[float(low), mass]
    return first, last, count, mass


def pooled(
    odds: Floats, happened: NDArray[np.bool_], weights: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Distinct odds, ascending, with the weight of what happened there and the whole weight."""
    order = np.argsort(odds)
    x = odds[order]
    mass = np.ones(len(x)) if weights is None else weights[order]
    hits = mass * happened[order]
    starts = np.flatnonzero(np.r_[True, x[1:] != x[:-1]])
    if len(starts) < len(x):
        return x[starts], np.add.reduceat(hits, starts), np.add.reduceat(mass, starts)
    return x, hits, mass


def half_way(low: Floats, high: Floats) -> Floats:
    """The middle between neighbours, in double precision."""
    return 0.5 * np.asarray(low, np.float64) + 0.5 * np.asarray(high, np.float64)
