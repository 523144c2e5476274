"""Off-diagonal and intercept regularisation, its strength chosen by cross-validation."""

from dataclasses import dataclass, replace
from math import ceil, log10

import torch
from torch import Tensor

from ..predictions import Predictions
from ..scores import nll
from ._affine import Affine
from ._folds import folds_of
from ._newton import Optimum, minimise
from ._softmax_fit import SoftmaxFit
from ._start import scaled_identity

_STRONGEST, _WEAKEST = 3, -4
# So many held-out samples tell powers of ten apart; turns beyond them would only cost time.
_JUDGES = 5_000


def strengths(classes: int) -> list[float]:
    """Powers of ten from a map that is all but diagonal to one that is all but free.

    The penalty is a mean over coefficients, so that each of many is pulled less: the strongest is
    ten for a coefficient at least, whatever their number.

    >>> strengths(3)
    [1000.0, 100.0, 10.0, 1.0, 0.1, 0.01, 0.001, 0.0001]
    >>> strengths(1000)[0]
    10000000.0
    """
    strongest = max(_STRONGEST, ceil(log10(5 * classes * (classes - 1))))
    return [float(f"1e{power}") for power in range(strongest, _WEAKEST - 1, -1)]


@dataclass(frozen=True)
class Odir:
    r"""The penalty that holds an affine map near the diagonal.

    $$\frac{\lambda}{C (C - 1)} \sum_{j \ne k} w_{jk}^2 + \frac{\mu}{C} \sum_j b_j^2$$

    - `strength`: $\lambda$.
    - `intercept`: $\mu$; None for $\lambda / (C - 1)$, which pulls a shift as hard as a weight.
    - `ridge`: a pull towards the identity for every coefficient, the diagonal's too.
    """

    strength: float
    intercept: float | None
    ridge: float

    def of(self, classes: int) -> Tensor:
        """One number per coefficient: half of it times the square is the penalty."""
        usual = 2 * self.strength / (classes * (classes - 1))
        penalty = torch.full((classes, classes + 1), usual, dtype=torch.float64)
        penalty.fill_diagonal_(0)
        if self.intercept is not None:
            penalty[:, -1] = 2 * self.intercept / classes
        return penalty + self.ridge


def fit_affine(
    predictions: Predictions,
    scores: Tensor,
    odir: Odir,
    start: Tensor | None = None,
    tolerance: float | None = None,
) -> Optimum | None:
    """The best affine map of `scores`; None where no finite one is best."""
    penalty = odir.of(predictions.classes).to(scores.device)
    problem = SoftmaxFit.of(predictions, Affine(), penalty, scores)
    problem.tolerance = tolerance or problem.tolerance
    begin = scaled_identity(problem) if start is None else start * problem.units
    found = minimise(problem, begin)
    return None if found is None else replace(found, point=found.point / problem.units)


def apply_affine(point: Tensor, scores: Tensor) -> Tensor:
    """The scores after the map."""
    return Affine().push(point.to(scores.dtype), scores)


def choose_strength(
    predictions: Predictions, scores: Tensor, intercept: float | None, ridge: float, folds: int
) -> tuple[float, Tensor | None]:
    """Of `strengths`, from strong to weak, the last before the held-out likelihood falls.

    Parts take turns to judge until they have been many samples. Each fold starts at its own
    optimum for the strength before, which is near the next one. With the strength comes the mean
    of the folds' optima, near to that of all samples.
    """
    judged = Predictions._unchecked(scores, predictions.labels, predictions.weights)
    candidates = strengths(predictions.classes)
    parts = [part for part in folds_of(judged, folds, _JUDGES) if len(part[0])]
    if not parts:  # all samples alike: nothing to judge by
        return candidates[0], None
    points: list[Tensor | None] = [None] * len(parts)
    best, chosen = float("inf"), candidates[0]
    start: Tensor | None = None
    for strength in candidates:
        total = 0.0
        for k, (rest, held) in enumerate(parts):
            odir = Odir(strength, intercept, ridge)
            # Strengths differ by far more than what is left of the way to an optimum.
            found = fit_affine(rest, rest.scores, odir, points[k], tolerance=1e-3)
            if found is None:
                return chosen, start
            points[k] = found.point
            mapped = apply_affine(found.point, held.scores)
            loss = nll(Predictions._unchecked(mapped, held.labels, held.weights)).item()
            total += loss * (len(held) if held.weights is None else float(held.weights.sum()))
        if total > best:
            return chosen, start
        best, chosen = total, strength
        start = torch.stack([point for point in points if point is not None]).mean(dim=0)
    return chosen, start
