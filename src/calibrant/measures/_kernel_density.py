"""Calibration error with kernel density estimates in place of bins."""

from math import log
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import check_norm, check_positive
from ..predictions import Predictions, is_class
from ._events import of_events
from ._precision import widened

# Pairs of samples looked at together: bounds the memory, and fits a processor's cache.
_PAIRS_AT_ONCE = 2**17

# The authors' canonical code divides by the density, or by this where the density is less.
_LEAST_DENSITY = 1e-10


@of_events
def kde_ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bandwidth: float = 0.02,
    norm: float = 1,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Calibration error with the accuracy at each confidence estimated by a beta kernel.

    How often events happen that are given a chance like $C_i$ is read off the other samples:

    $$\frac1n \sum_i \biggl|\frac{\sum_{j \ne i} k(C_i; C_j)\,Y_j}{\sum_{j \ne i} k(C_i; C_j)}
      - C_i\biggr|^p, \qquad k(\cdot\,; c) = \mathrm{Beta}\Bigl(\tfrac{c}{h} + 1,
      \tfrac{1 - c}{h} + 1\Bigr)$$

    - `confidence`: probability given to each event, $C$.
    - `outcome`: whether it happened, $Y$.
    - `bandwidth`: width of the kernel, $h$. `norm`: $p$. As in the authors' code no root is
      taken: with 2 the value is a mean square.
    - `weights`: how much each sample counts, in the estimate for the others and in the mean.
      A sample is left out of its own estimate with all its weight.

    At a confidence of exactly 0 or 1 the kernel sees only the nearest samples, where the
    authors' code gives NaN. Zero for fewer than two samples.

    Takes $O(n^2)$ time and $O(n)$ memory; a compiled graph keeps all pairs, $O(n^2)$.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> kde_ece(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.3152)

    Popordanoska, Sayer & Blaschko, "A Consistent and Differentiable Lp Canonical Calibration
    Error Estimator", NeurIPS 2022. <https://arxiv.org/abs/2210.07810>
    """
    check_positive(bandwidth=bandwidth)
    check_norm(norm)
    chance, happened = widened(confidence, outcome)
    both = torch.stack([chance, 1 - chance], dim=1)
    least = torch.finfo(confidence.dtype).tiny
    accuracy, _, share = _estimate(both, happened[:, None], bandwidth, weights, least)
    return (share * _power(accuracy[:, 0] - chance, norm)).sum().to(confidence.dtype)


def canonical_kde_ece(
    predictions: Predictions, *, bandwidth: float = 0.1, norm: float = 2
) -> Float[Tensor, ""]:
    r"""Calibration error of the whole probability vector, by a Dirichlet kernel.

    The strictest sense of calibrated: of all samples given the vector $P$, the labels are
    spread as $P$ says.

    $$\frac1n \sum_i \biggl\|\frac{\sum_{j \ne i} k(P_i; P_j)\,Y_j}{\sum_{j \ne i} k(P_i; P_j)}
      - P_i\biggr\|_p^p, \qquad k(\cdot\,; q) = \mathrm{Dirichlet}\Bigl(\tfrac{q}{h} + 1\Bigr)$$

    - `predictions`: probabilities $P$ and labels, as one-hot vectors $Y$; their weights count
      as in `kde_ece`.
    - `bandwidth`: width of the kernel, $h$. `norm`: $p$; no root is taken.

    As in the authors' code for up to 60 classes, a density (the lower sum) below $10^{-10}$
    counts as $10^{-10}$: a sample far from all others, such as a saturated one, is told that
    nothing happens there. Finite also where a probability is exactly zero, or a class has
    one sample. Zero for fewer than two samples.

    Takes $O(n^2 C)$ time for $C$ classes and $O(n C)$ memory.

    >>> predictions = Predictions(torch.eye(3), torch.tensor([0, 1, 1]))
    >>> canonical_kde_ece(predictions)
    tensor(0.5431)

    Popordanoska, Sayer & Blaschko, "A Consistent and Differentiable Lp Canonical Calibration
    Error Estimator", NeurIPS 2022. <https://arxiv.org/abs/2210.07810>
    """
    check_positive(bandwidth=bandwidth)
    check_norm(norm)
    (chances,) = widened(predictions.probs)
    happened = is_class(predictions.labels, chances.shape[1], chances.dtype)
    shares_of_class, log_density, share = _estimate(
        chances,
        happened,
        bandwidth,
        predictions.weights,
        torch.finfo(predictions.probs.dtype).tiny,
    )
    lonely = (log_density - log(_LEAST_DENSITY)).clamp(max=0).exp()
    errors = _power(lonely[:, None] * shares_of_class - chances, norm).sum(dim=1)
    return (share * errors).sum().to(predictions.probs.dtype)


def _power(x: Tensor, norm: float) -> Tensor:
    return x.abs() if norm == 1 else x.abs() ** norm


def _estimate(
    points: Float[Tensor, "n classes"],
    targets: Float[Tensor, "n targets"],
    bandwidth: float,
    weights: Tensor | None,
    least: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean target around each point, log-density there, and the point's share of the whole."""
    limits = torch.finfo(points.dtype)
    counted = points.new_ones(len(points)) if weights is None else weights.to(points.dtype)
    present, total = (counted > 0).sum(), counted.sum()
    # Of mean one over the samples present, so that only their proportions matter.
    counted = counted * present / torch.where(total > 0, total, 1)
    shapes = points / bandwidth
    scale = torch.lgamma(shapes.sum(dim=1) + shapes.shape[1]) - torch.lgamma(shapes + 1).sum(dim=1)
    absent = limits.min / 4
    offsets = torch.where(counted > 0, scale + counted.clamp(min=limits.tiny).log(), absent)
    # Below the least normal number of the type they came in, a slope would not fit into it.
    log_points = points.clamp(min=least).log()
    # A compiler takes no gradient written by hand, and keeps the pairs.
    apply = _leave_one_out if torch.compiler.is_compiling() else _LeaveOneOut.apply
    means, log_density = apply(log_points, shapes, offsets, targets)
    share = torch.where(present > 1, counted / present.clamp(min=1), 0)
    return means, log_density, share


def _leave_one_out(
    log_points: Tensor, shapes: Tensor, offsets: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean target of the others, weighted by kernel, and the logarithm of their kernels' sum.

    The kernel of i and j is exp(log_points[i] . shapes[j] + offsets[j]).
    """
    for rows in _blocks(len(targets)):
        log_kernel = _log_kernel(log_points, shapes, offsets, rows)
        mean, log_sum = log_kernel.softmax(dim=1) @ targets, log_kernel.logsumexp(dim=1)
        if rows.start == 0:
            # A list of small results between large blocks would leave holes in the heap.
            means, log_sums = mean.new_empty(targets.shape), log_sum.new_empty(offsets.shape)
        means[rows], log_sums[rows] = mean, log_sum
    return means, log_sums


class _LeaveOneOut(torch.autograd.Function):
    """The same, with kernels computed again for the gradient: no pair of samples is kept."""

    generate_vmap_rule = True
    forward = staticmethod(_leave_one_out)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs, output[0])

    @staticmethod
    def backward(ctx: Any, by_means: Tensor, by_sums: Tensor) -> tuple[Tensor, ...]:
        log_points, shapes, offsets, targets, means = ctx.saved_tensors
        constant = by_sums - (by_means * means).sum(dim=1)
        by_shapes, by_offsets, by_targets = 0 * shapes, 0 * offsets, 0 * targets
        for rows in _blocks(len(targets)):
            kernel = _log_kernel(log_points, shapes, offsets, rows).softmax(dim=1)
            by_kernel = kernel * (by_means[rows] @ targets.T + constant[rows, None])
            by_point = by_kernel @ shapes
            if rows.start == 0:
                by_points = by_point.new_empty(log_points.shape)
            by_points[rows] = by_point
            by_shapes = by_shapes + by_kernel.T @ log_points[rows]
            by_offsets = by_offsets + by_kernel.sum(dim=0)
            by_targets = by_targets + kernel.T @ by_means[rows]
        return by_points, by_shapes, by_offsets, by_targets


def _blocks(n: int) -> list[slice]:
    step = max(1, _PAIRS_AT_ONCE // max(n, 1))
    return [slice(start, min(start + step, n)) for start in range(0, max(n, 1), step)]


def _log_kernel(log_points: Tensor, shapes: Tensor, offsets: Tensor, rows: slice) -> Tensor:
    everyone = torch.arange(len(offsets), device=offsets.device)
    log_kernel = log_points[rows] @ shapes.T + offsets
    itself = everyone[rows, None] == everyone
    return log_kernel.masked_fill(itself, torch.finfo(offsets.dtype).min)
