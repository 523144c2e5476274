"""Off-diagonal and intercept regularisation, its strength chosen by cross-validation."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..predictions import Predictions
from ..scores import nll
from ._affine import Affine
from ._folds import folds_of
from ._newton import Optimum, minimise
from ._softmax_fit import SoftmaxFit
from ._start import scaled_identity

# From a map that is all but diagonal to one that is all but free.
STRENGTHS = (1e3, 1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4)


@dataclass(frozen=True)
class Odir:
    r"""The penalty that holds an affine map near the diagonal.

    $$\frac{\lambda}{C (C - 1)} \sum_{j \ne k} w_{jk}^2 + \frac{\mu}{C} \sum_j b_j^2$$

    - `strength`: $\lambda$.
    - `intercept`: $\mu$; None for as much as $\lambda$.
    - `ridge`: a pull towards the identity for every coefficient, the diagonal's too.
    """

    strength: float
    intercept: float | None
    ridge: float

    def of(self, classes: int) -> Tensor:
        """One number per coefficient: half of it times the square is the penalty."""
        penalty = torch.full(
            (classes, classes + 1),
            2 * self.strength / (classes * (classes - 1)),
            dtype=torch.float64,
        )
        penalty.fill_diagonal_(0)
        penalty[:, -1] = 2 * (self.strength if self.intercept is None else self.intercept) / classes
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
    """Of `STRENGTHS`, from strong to weak, the last before the held-out likelihood falls.

    Each fold starts at its own optimum for the strength before, which is near the next one. With
    the strength comes the mean of the folds' optima, near to that of all samples.
    """
    judged = Predictions._unchecked(scores, predictions.labels, predictions.weights)
    parts = [part for part in folds_of(judged, folds) if len(part[0])]
    if not parts:  # all samples alike: nothing to judge by
        return STRENGTHS[0], None
    points: list[Tensor | None] = [None] * len(parts)
    best, chosen = float("inf"), STRENGTHS[0]
    start: Tensor | None = None
    for strength in STRENGTHS:
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
