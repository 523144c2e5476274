"""The linear map that mixes all classes, and what stands in for its Hessian."""

from collections.abc import Callable

import torch
from torch import Tensor

from ._linear_map import LinearMap
from ._softmax_fit import SoftmaxFit

# Coefficients up to which the whole Hessian is made and inverted.
_DENSE = 700


class Affine(LinearMap):
    """The matrix in all columns but the last, which holds the shifts."""

    def __init__(self) -> None:
        self._moments: tuple[Tensor, Tensor] | None = None

    def identity(self, classes: int) -> Tensor:
        """Ones on the diagonal."""
        return torch.eye(classes, classes + 1, dtype=torch.float64)

    def in_units(self, ones: Tensor, unit: float) -> Tensor:
        """The matrix."""
        return torch.cat([unit * ones[:, :-1], ones[:, -1:]], dim=1)

    def push(self, coefficients: Tensor, scores: Tensor) -> Tensor:
        """Each row of scores times the matrix, and shifted."""
        return torch.addmm(coefficients[:, -1], scores, coefficients[:, :-1].T)

    def pull(self, slopes: Tensor, scores: Tensor) -> Tensor:
        """Slopes times scores, summed over rows."""
        return torch.cat([slopes.T @ scores, slopes.sum(dim=0)[:, None]], dim=1).double()

    def observe(self, labels: Tensor, scores: Tensor, weights: Tensor | None) -> Tensor:
        """Sums over the rows of each class."""
        rows = torch.cat([scores, scores.new_ones(len(scores), 1)], dim=1).double()
        if weights is not None:
            rows *= weights.double()[:, None]
        return rows.new_zeros(scores.shape[1], rows.shape[1]).index_add_(0, labels, rows)

    def stand_in(self, problem: SoftmaxFit, point: Tensor) -> Callable[[Tensor], Tensor]:
        """The Hessian itself where it is small; else each class by itself, without the others."""
        if point.numel() <= _DENSE:
            return self._inverse(problem, point)
        return self._class_by_class(problem, point)

    def _inverse(self, problem: SoftmaxFit, point: Tensor) -> Callable[[Tensor], Tensor]:
        size = point.numel()
        hessian = point.new_zeros(size, size)
        blocks = hessian.view(*point.shape, *point.shape)
        for x, chances, w in problem.chances(point):
            rows = torch.cat([x, x.new_ones(len(x), 1)], dim=1).double()
            chances = chances.double()
            weight = (x.new_ones(len(x)) if w is None else w).double() / problem.total
            pairs = (chances[:, :, None] * rows[:, None, :]).flatten(1)
            hessian -= pairs.T @ (pairs * weight[:, None])
            own = torch.einsum("n,nc,nj,nk->cjk", weight, chances, rows, rows)
            blocks.diagonal(dim1=0, dim2=2).add_(own.permute(1, 2, 0))
        hessian.diagonal().add_(problem.penalty.flatten())
        # Shifting all classes alike changes nothing, so without a penalty there is no inverse.
        sizes, axes = torch.linalg.eigh(hessian)
        inverse = torch.where(sizes > 1e-13 * sizes[-1], 1 / sizes, 0)
        return lambda residual: (axes @ (inverse * (axes.T @ residual.flatten()))).view_as(residual)

    def _class_by_class(self, problem: SoftmaxFit, point: Tensor) -> Callable[[Tensor], Tensor]:
        """How much a class varies times how scores vary together, with the class's own penalty.

        The penalty is one number for all coefficients of a row but two, the diagonal's and the
        shift's, which Woodbury's identity puts right.
        """
        varies = point.new_zeros(len(point))
        for _, spread in problem.spread(point):
            varies += spread.sum(dim=0)
        sizes, axes = self._axes(problem)
        usual = float(problem.penalty[0, 1])
        scale = varies[:, None] * sizes + usual
        scale = scale.clamp(min=1e-12 * float(scale.amax()))
        index = torch.arange(len(point), device=point.device)
        odd = torch.stack([index, torch.full_like(index, len(point))], dim=1)
        inverse_odd = (axes[odd] / scale[:, None]) @ axes.T
        between = inverse_odd.gather(2, odd[:, None].expand(-1, 2, -1))
        excess = problem.penalty.gather(1, odd) - usual
        eye = torch.eye(2, dtype=torch.float64, device=point.device)
        # (A + U D U^T)^-1 = A^-1 - A^-1 U (I + D U^T A^-1 U)^-1 D U^T A^-1
        inner = torch.linalg.solve(eye + excess[:, :, None] * between, torch.diag_embed(excess))

        def solve(residual: Tensor) -> Tensor:
            plain = ((residual @ axes) / scale) @ axes.T
            felt = inner @ plain.gather(1, odd)[:, :, None]
            corrected: Tensor = plain - (felt.mT @ inverse_odd)[:, 0]
            return corrected

        return solve

    def _axes(self, problem: SoftmaxFit) -> tuple[Tensor, Tensor]:
        if self._moments is None:
            classes = problem.scores.shape[1]
            second = problem.scores.new_zeros(classes + 1, classes + 1, dtype=torch.float64)
            for x, w in problem.rows():
                extended = torch.cat([x, x.new_ones(len(x), 1)], dim=1)
                second += (extended.T @ (extended if w is None else extended * w[:, None])).double()
            sizes, axes = torch.linalg.eigh(second / problem.total)
            self._moments = sizes.clamp(min=0), axes
        return self._moments
