"""Expected squared difference between what was forecast and what happened."""

import torch
from jaxtyping import Float
from torch import Tensor

from ._events import of_events
from ._handwritten import hand_written
from ._order import Ascending
from ._precision import widened


@of_events
def esd(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Expected squared difference, without bias.

    For a threshold drawn from the confidences themselves, how far the forecasts at or
    below it are from what happened:

    $$\mathrm{ESD} = \mathbb{E}_{c}\Bigl[\bigl(\mathbb{E}[(Y - C)\,
      \mathbf{1}\{C \le c\}]\bigr)^2\Bigr]$$

    estimated by eq. 10 of the paper, in a closed form: with $P_i$ and $Q_i$ the sums of
    $Y - C$ and of its square over the *other* samples at or below $i$,
    $\sum_i (P_i^2 - Q_i) / (n (n-1) (n-2))$.

    - `confidence`: probability given to each event, $C$.
    - `outcome`: whether it happened, $Y \in \{0, 1\}$.
    - `weights`: importance of each sample; every triple of distinct samples counts by the
      product of its weights.

    Zero in expectation when calibrated, so a batch may score below zero. The gradient
    flows through $Y - C$ and not through the indicator, as in the authors' code, whose
    published weights belong to `rooted(esd)`.

    Takes $O(n \log n)$ time and $O(n)$ memory. Zero for fewer than three samples.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> esd(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(-0.0517)

    Yoon et al., "ESD: Expected Squared Difference as a Tuning-Free Trainable
    Calibration Measure", ICLR 2023. <https://openreview.net/forum?id=bHW9njOSON>
    """
    if weights is not None:
        return _weighted(confidence, outcome, weights, unbiased=True)
    if len(confidence) < 3:
        return 0 * (outcome - confidence).sum()
    return hand_written(confidence, outcome, _unbiased, _unbiased_with_gradient)


@of_events
def esd_naive(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Expected squared difference by the square of the mean, which is biased upwards.

    Eq. 9 of the paper: $\frac1n \sum_i \bigl(P_i / (n-1)\bigr)^2$ in the notation of `esd`. It
    is never negative, and above zero on average even for a calibrated model.

    Takes $O(n \log n)$ time and $O(n)$ memory. Zero for fewer than two samples.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> esd_naive(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.0072)

    Yoon et al., "ESD: Expected Squared Difference as a Tuning-Free Trainable
    Calibration Measure", ICLR 2023. <https://openreview.net/forum?id=bHW9njOSON>
    """
    if weights is not None:
        return _weighted(confidence, outcome, weights, unbiased=False)
    n = len(confidence)
    if n < 2:
        return 0 * (outcome - confidence).sum()
    below, _, _ = _sums_below(confidence, outcome)
    return (below.square().sum() / (float(n) * (n - 1) ** 2)).to(confidence.dtype)


def _sums_below(confidence: Tensor, outcome: Tensor) -> tuple[Tensor, Tensor, Ascending]:
    """For each sample in ascending order, the gaps of the others at or below it, and its own."""
    ascending = Ascending.of(confidence)
    (gap,) = widened((outcome - confidence)[ascending.source])
    return gap.cumsum(0)[ascending.last_tied] - gap, gap, ascending


def _triples(n: int) -> float:
    """Ordered triples of distinct samples: a float, since beyond 2 million no integer holds it."""
    return float(n) * (n - 1) * (n - 2)


def _unbiased(confidence: Tensor, outcome: Tensor) -> Tensor:
    n = len(confidence)
    below, gap, ascending = _sums_below(confidence, outcome)
    # A gap is among the squares of every other sample at or above it.
    at_or_above = n - 1 - ascending.first_tied
    total = below.square().sum() - (gap.square() * at_or_above).sum()
    return (total / _triples(n)).to(confidence.dtype)


def _unbiased_with_gradient(confidence: Tensor, outcome: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The derivation is in docs/derivations/sorting.md."""
    n = len(confidence)
    below, gap, ascending = _sums_below(confidence, outcome)
    at_or_above = n - 1 - ascending.first_tied
    own_squares = gap * at_or_above
    triples = _triples(n)
    value = (torch.dot(below, below) - torch.dot(gap, own_squares)) / triples
    from_here_up = below.flip(0).cumsum(0)[at_or_above]
    by_gap = ascending.unsort((from_here_up - below - own_squares) * (2 / triples))
    by_outcome = by_gap.to(confidence.dtype)
    return value.to(confidence.dtype), -by_outcome, by_outcome


def _weighted(confidence: Tensor, outcome: Tensor, weights: Tensor, *, unbiased: bool) -> Tensor:
    ascending = Ascending.of(confidence)
    gap, weight = widened((outcome - confidence)[ascending.source], weights[ascending.source])
    # Only proportions matter, and cubes of very large or small weights would not fit.
    weight = weight / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)
    weighed = weight * gap

    def below(x: Tensor) -> Tensor:
        return x.cumsum(0)[ascending.last_tied] - x

    def before(x: Tensor) -> Tensor:
        return x.cumsum(0) - x

    squares = below(weighed).square()
    if unbiased:
        squares = squares - below(weighed.square())
        # Six times the products of all triples, added up without taking anything away.
        count = 6 * (weight * before(weight * before(weight))).sum()
    else:
        count = (weight * (weight.sum() - weight).square()).sum()
    enough = (weight > 0).sum() >= (3 if unbiased else 2)
    value = (weight * squares).sum() / torch.where(enough & (count > 0), count, 1)
    return torch.where(enough, value, 0 * value).to(confidence.dtype)
