"""Maximum mean calibration error: gaps that agree with their neighbours' gaps."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import check_positive
from ..criteria import root
from ._events import of_events
from ._handwritten import hand_written
from ._order import Ascending
from ._precision import widened

# The largest exponent whose exponential, times a million terms, still fits.
_STEEPEST = {torch.float64: 600.0, torch.float32: 60.0}


@of_events
def mmce(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bandwidth: float = 0.4,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Maximum mean calibration error with a Laplacian kernel.

    The norm of the mean gap, embedded so that gaps at nearby confidences add up and
    chance ones cancel:

    $$\mathrm{MMCE}^2 = \frac{1}{n^2} \sum_{i,j} (Y_i - C_i)(Y_j - C_j)\,
      e^{-|C_i - C_j| / \phi}$$

    - `confidence`, `outcome`: $C$ and $Y$.
    - `bandwidth`: of the kernel, $\phi$.
    - `weights`: how much each sample counts; weight two is the sample twice.

    The root is taken and pairs of a sample with itself are counted, as in the paper; the
    released codes return the square. Biased upwards: a calibrated batch scores above zero.

    In ascending order the kernel is a product of steps, so prefix sums replace the
    double sum: $O(n \log n)$ time and $O(n)$ memory, exactly, at any bandwidth.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> mmce(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.0891)

    Kumar, Sarawagi & Jain, "Trainable Calibration Measures for Neural Networks from Kernel
    Mean Embeddings", ICML 2018, eq. 5.
    """
    check_positive(bandwidth=bandwidth)
    gap = outcome - confidence
    charge = gap / max(len(gap), 1) if weights is None else _shares(weights) * gap
    return root(_kernel_form(confidence, charge, bandwidth))


@of_events
def weighted_mmce(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bandwidth: float = 0.4,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""MMCE with right and wrong answers on an equal footing.

    A network that is nearly always right on its training set would hardly feel its
    mistakes, so the two kinds are averaged apart:

    $$\mathrm{MMCE}_w^2 = v^\top K v, \qquad v_i = \frac{1 - C_i}{m} \text{ where right},
      \quad v_i = -\frac{C_i}{n - m} \text{ where wrong}$$

    - `confidence`, `outcome`: $C$ and $Y$; $m$ of the outcomes are 1.
    - `bandwidth`: $\phi$ in $K_{ij} = e^{-|C_i - C_j| / \phi}$.
    - `weights`: how much each sample counts; weight two is the sample twice.

    A kind that does not occur contributes nothing. The released codes normalise twice, so
    their values are tens of times smaller, and weights tuned for them do not carry over.

    Takes $O(n \log n)$ time and $O(n)$ memory.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> weighted_mmce(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.5342)

    Kumar, Sarawagi & Jain, "Trainable Calibration Measures for Neural Networks from Kernel
    Mean Embeddings", ICML 2018.
    """
    check_positive(bandwidth=bandwidth)
    right, wrong = outcome, 1 - outcome
    if weights is not None:
        right, wrong = weights * right, weights * wrong
    right, wrong = _shares(right), _shares(wrong)
    charge = right * (1 - confidence) - wrong * confidence
    return root(_kernel_form(confidence, charge, bandwidth))


def _shares(counted: Tensor) -> Tensor:
    total = counted.sum()
    return counted / torch.where(total > 0, total, 1)


def _kernel_form(place: Tensor, charge: Tensor, bandwidth: float) -> Tensor:
    r"""The quadratic form $v^\top K v$ of a Laplacian kernel between places."""
    return hand_written(
        place,
        charge,
        partial(_by_prefix_sums, bandwidth=bandwidth),
        partial(_by_prefix_sums_with_gradient, bandwidth=bandwidth),
    )


def _by_prefix_sums(place: Tensor, charge: Tensor, *, bandwidth: float) -> Tensor:
    ascending = Ascending.of(place)
    placed, charged = widened(place[ascending.source], charge[ascending.source])
    first, last = ascending.first_tied, ascending.last_tied
    before, _ = _decayed_sums(placed, charged, bandwidth)
    # A factor of one that carries the gradient from the first of tied places to each of them.
    lower = (before - charged)[first] * ((placed[first] - placed) / bandwidth).exp()
    running = charged.cumsum(0)
    tied = running[last] - running[first] + charged[first]
    return (charged * (2 * lower + tied)).sum().to(place.dtype)


def _by_prefix_sums_with_gradient(
    place: Tensor, charge: Tensor, *, bandwidth: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The derivation is in docs/derivations/sorting.md."""
    ascending = Ascending.of(place)
    placed, charged = widened(ascending.values, charge[ascending.source])
    before, after = _decayed_sums(placed, charged, bandwidth)
    field = before + after - charged
    lower = (before - charged)[ascending.first_tied]
    higher = (after - charged)[ascending.last_tied]
    by_place = charged * (higher - lower) * (2 / bandwidth)
    return (
        torch.dot(charged, field).to(place.dtype),
        ascending.unsort(by_place).to(place.dtype),
        ascending.unsort(2 * field).to(charge.dtype),
    )


def _decayed_sums(place: Tensor, charge: Tensor, bandwidth: float) -> tuple[Tensor, Tensor]:
    r"""At each place, all charges up to it, and all from it on, each decayed by distance.

    A charge at distance $x$ counts $e^{-x/\phi}$; places ascend within an interval of length
    one. The second is a running sum of its own, not the total less the first: that would lose
    as many digits as the kernel has decades.
    """
    if 1 / bandwidth <= _STEEPEST[place.dtype]:
        growth = (place / bandwidth).exp()
        before = (charge * growth).cumsum(0) / growth
        after = (charge / growth).flip(0).cumsum(0).flip(0) * growth
        return before, after
    # Too steep for one exponential: add over spans of 1, 2, 4, ... places, no factor above 1.
    before, after, span = charge, charge, 1
    while span < len(place):
        decay = ((place[:-span] - place[span:]) / bandwidth).exp()
        before = torch.cat([before[:span], before[span:] + decay * before[:-span]])
        after = torch.cat([after[:-span] + decay * after[span:], after[-span:]])
        span *= 2
    return before, after
