"""One scale and one shift for every class."""

from collections.abc import Callable
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions
from ._linear_map import LinearMap
from ._newton import minimise
from ._recalibrator import Recalibrator
from ._refusals import check_strength, refuse
from ._report import Outcome
from ._softmax_fit import SoftmaxFit
from ._start import scaled_identity


class VectorScaling(Recalibrator):
    r"""Scale and shift the logit of every class: $z_j \mapsto w_j z_j + b_j$.

    The negative log-likelihood is convex in $(w, b)$; Newton's method finds its least value, with
    a slight pull towards the identity,

    $$-\frac1n \sum_i \log \mathrm{softmax}(w \circ z_i + b)_{y_i}
      + \frac{\rho}{2} \bigl(\lVert w - 1 \rVert^2 + \lVert b \rVert^2\bigr)$$

    - `ridge`: $\rho$. The usual 1e-6 is too little to be seen, and keeps the optimum finite where
      a class is missing or can be told apart without a mistake. With 0 such data are refused.

    A constant added to all logits of a row changes the result, unlike that of a softmax: give the
    logits at `transform` as they were at `fit`. Of two classes given as one score, the first has
    logit zero, and the map is $s \mapsto w_1 s + b_1 - b_0$.

    >>> _ = torch.manual_seed(0)
    >>> logits, labels = torch.randn(500, 3), torch.arange(500) % 3
    >>> scaling = VectorScaling().fit(logits, labels, folds=0)
    >>> scaling.weight_.shape, scaling.bias_.shape
    (torch.Size([3]), torch.Size([3]))

    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, section 4.2.
    """

    learnt: ClassVar[tuple[str, ...]] = ("weight_", "bias_")
    contains_identity: ClassVar[bool] = True

    weight_: Tensor
    bias_: Tensor

    def __init__(self, *, ridge: float = 1e-6) -> None:
        super().__init__()
        self.ridge = ridge

    def _fit(self, predictions: Predictions) -> Outcome:
        check_strength(ridge=self.ridge)
        problem = SoftmaxFit.of(predictions, Diagonal(), self.ridge)
        best = minimise(problem, scaled_identity(problem))
        if best is None:
            refuse(predictions, "a scale or a shift", "ridge=1e-6")
        weight, bias = best.point / problem.units
        self._learn(weight_=weight, bias_=bias)
        return Outcome(best.converged, best.iterations)

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        return logits * self.weight_.to(logits.dtype) + self.bias_.to(logits.dtype)


class Diagonal(LinearMap):
    """Scales in the first row, shifts in the second."""

    def identity(self, classes: int) -> Tensor:
        """Scales of one, shifts of zero."""
        return torch.tensor([[1.0], [0.0]], dtype=torch.float64).repeat(1, classes)

    def in_units(self, ones: Tensor, unit: float) -> Tensor:
        """The scales."""
        return torch.stack([unit * ones[0], ones[1]])

    def push(self, coefficients: Tensor, scores: Tensor) -> Tensor:
        """Scaled and shifted scores."""
        return torch.addcmul(coefficients[1], scores, coefficients[0])

    def pull(self, slopes: Tensor, scores: Tensor) -> Tensor:
        """Sums over rows, in double precision from one block to the next."""
        shifts = slopes.sum(dim=0)
        return torch.stack([slopes.mul_(scores).sum(dim=0), shifts]).double()

    def observe(self, labels: Tensor, scores: Tensor, weights: Tensor | None) -> Tensor:
        """Sums over the rows of each class."""
        chosen = scores.gather(1, labels[:, None])[:, 0].double()
        count = torch.ones_like(chosen) if weights is None else weights.double()
        sums = chosen.new_zeros(2, scores.shape[1])
        sums[0].index_add_(0, labels, chosen * count)
        sums[1].index_add_(0, labels, count)
        return sums

    def stand_in(self, problem: SoftmaxFit, point: Tensor) -> Callable[[Tensor], Tensor]:
        """The Hessian between the scale and the shift of each class, other classes left out."""
        moments = point.new_zeros(3, point.shape[1])
        for scores, spread in problem.spread(point):
            for power in moments:
                power += spread.sum(dim=0)
                spread = spread.mul_(scores)
        # A little is added so that a class which never varies can be divided by.
        shift, cross, scale = moments
        tiny = 1e-12 * moments.amax(dim=1)
        shift = shift + problem.penalty[1] + tiny[0]
        scale = scale + problem.penalty[0] + tiny[2]
        area = (scale * shift - cross.square()).clamp(min=1e-12 * scale * shift)

        def solve(residual: Tensor) -> Tensor:
            of_scale, of_shift = residual
            return torch.stack(
                [
                    (shift * of_scale - cross * of_shift) / area,
                    (scale * of_shift - cross * of_scale) / area,
                ]
            )

        return solve
