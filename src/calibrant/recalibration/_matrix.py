"""Every class's logit made of all classes' logits."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions
from ._odir import Odir, apply_affine, choose_strength, fit_affine
from ._recalibrator import Recalibrator
from ._refusals import check_strength, refuse
from ._report import Outcome


class MatrixScaling(Recalibrator):
    r"""Mix the logits of all classes: $z \mapsto W z + b$.

    Fits the negative log-likelihood, convex in $(W, b)$, by Newton's method, with off-diagonal
    and intercept regularisation (ODIR), since $C^2 + C$ numbers fit the noise of few samples:

    $$-\frac1n \sum_i \log \mathrm{softmax}(W z_i + b)_{y_i}
      + \frac{\lambda}{C (C - 1)} \sum_{j \ne k} w_{jk}^2 + \frac{\mu}{C} \sum_j b_j^2
      + \frac{\rho}{2} \bigl(\lVert W - I \rVert^2 + \lVert b \rVert^2\bigr)$$

    - `strength`: $\lambda$; None chooses it among powers of ten by the held-out likelihood, going
      from strong, 1e3 or about $10\,C^2$ where that is more, to weak until that gets worse.
    - `intercept`: $\mu$; None for $\lambda / (C - 1)$, which pulls a shift as hard as any weight
      off the diagonal. (The paper searches both.)
    - `ridge`: $\rho$. The usual 1e-6 is too little to be seen, and keeps the optimum finite where
      a class is missing or can be told apart without a mistake. With 0 such data are refused.
    - `strength_folds`: parts of the samples that take turns to judge a strength, until 5,000
      samples have judged.

    Takes $O(n C^2)$ time a pass, so 1,000 classes take minutes. A constant added to all logits of
    a row changes the result; `DirichletCalibration` is free of that.

    >>> _ = torch.manual_seed(0)
    >>> logits, labels = torch.randn(500, 3), torch.arange(500) % 3
    >>> scaling = MatrixScaling(strength=1.0).fit(logits, labels, folds=0)
    >>> scaling.weight_.shape, scaling.strength_.item()
    (torch.Size([3, 3]), 1.0)

    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, section 4.2; for ODIR,
    Kull et al., "Beyond Temperature Scaling: Obtaining Well-Calibrated Multiclass Probabilities
    with Dirichlet Calibration", NeurIPS 2019.
    """

    learnt: ClassVar[tuple[str, ...]] = ("weight_", "bias_", "strength_")
    contains_identity: ClassVar[bool] = True

    weight_: Tensor
    bias_: Tensor
    strength_: Tensor

    def __init__(
        self,
        *,
        strength: float | None = None,
        intercept: float | None = None,
        ridge: float = 1e-6,
        strength_folds: int = 3,
    ) -> None:
        super().__init__()
        self.strength = strength
        self.intercept = intercept
        self.ridge = ridge
        self.strength_folds = strength_folds

    def _fit(self, predictions: Predictions) -> Outcome:
        check_strength(strength=self.strength or 0, intercept=self.intercept or 0, ridge=self.ridge)
        if not isinstance(self.strength_folds, int) or self.strength_folds < 2:
            raise ValueError(
                "strength_folds must be a whole number, at least 2; "
                f"got {self.strength_folds!r}. Usual is 3."
            )
        scores = self._scores(predictions.scores)
        strength, start = self.strength, None
        if strength is None:
            strength, start = choose_strength(
                predictions, scores, self.intercept, self.ridge, self.strength_folds
            )
        best = fit_affine(predictions, scores, Odir(strength, self.intercept, self.ridge), start)
        if best is None:
            refuse(predictions, "a coefficient", "ridge=1e-6")
        self._learn(weight_=best.point[:, :-1], bias_=best.point[:, -1], strength_=strength)
        return Outcome(best.converged, best.iterations)

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        point = torch.cat([self.weight_, self.bias_[:, None]], dim=1)
        return apply_affine(point, self._scores(logits))

    def _scores(self, logits: Tensor) -> Tensor:
        """What the matrix is applied to."""
        return logits
