"""A mixture of the scaled, the given and the uniform probabilities."""

import math
from itertools import compress, product
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions
from ._recalibrator import Recalibrator
from ._report import Outcome
from ._scaled import Scaled
from ._temperature import likeliest

# The likelihood is within this of its best when the search ends.
_GAP = 1e-10
_MOST_STEPS = 2_000
# A weight of zero as a logarithm that stays finite in float32.
_NOTHING = -1e30


class EnsembleTemperatureScaling(Recalibrator):
    r"""Mix three answers: the temperature-scaled one, the given one and "I do not know".

    $$p = w_1 \operatorname{softmax}(z / T) + w_2 \operatorname{softmax}(z) + w_3 / C$$

    $T$ is the likeliest temperature; given it, the weights, which are not negative and sum to
    one, maximise the likelihood. That problem is convex, and the search ends when what is left
    to gain is below 1e-10. The order of the classes stays as it is.

    >>> rng = torch.Generator().manual_seed(0)
    >>> logits = torch.randn(2_000, 5, generator=rng)
    >>> labels = torch.multinomial((3 * logits).softmax(dim=1), 1, generator=rng)[:, 0]
    >>> labels[::5] = torch.randint(5, (400,), generator=rng)  # which no logit explains
    >>> ensemble = EnsembleTemperatureScaling().fit(3 * logits, labels)
    >>> [round(weight, 3) for weight in ensemble.weights_.tolist()]
    [0.0, 0.789, 0.21]

    Zhang, Kailkhura & Han, "Mix-n-Match: Ensemble and Compositional Methods for Uncertainty
    Calibration in Deep Learning", ICML 2020, section 3.2.
    """

    learnt: ClassVar[tuple[str, ...]] = ("temperature_", "weights_")
    keeps_order: ClassVar[bool] = True
    contains_identity: ClassVar[bool] = True

    temperature_: Tensor
    weights_: Tensor

    def _fit(self, predictions: Predictions) -> Outcome:
        beta, likely = likeliest(predictions)
        scaled = Scaled(predictions)
        chances = torch.stack([_true_chance(scaled, beta), _true_chance(scaled, 1.0)], dim=1)
        uniform = chances.new_full((len(chances), 1), 1 / predictions.classes)
        weights, steps, gap = mixture(torch.cat([chances, uniform], dim=1), scaled.share)
        self._learn(temperature_=1 / beta, weights_=weights)
        return Outcome(converged=gap <= _GAP, iterations=steps, message=likely.message)

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        temperature, weights = self.temperature_.to(logits.dtype), self.weights_.to(logits.dtype)
        share = torch.where(weights > 0, torch.where(weights > 0, weights, 1).log(), _NOTHING)
        scaled = (logits / temperature).log_softmax(dim=1) + share[0]
        given = logits.log_softmax(dim=1) + share[1]
        uniform = (share[2] - math.log(logits.shape[1])).expand_as(logits)
        return torch.stack([scaled, given, uniform]).logsumexp(dim=0)


def _true_chance(scaled: Scaled, beta: float) -> Float[Tensor, " n"]:
    return (beta * scaled.lag - scaled.moments(beta, order=0).log_sum).exp()


def mixture(
    chances: Float[Tensor, "n parts"], share: Float[Tensor, " n"]
) -> tuple[Float[Tensor, " parts"], int, float]:
    r"""Weights of the likeliest mixture, the steps it took, and what is left to gain at most.

    With $g_k$ the mean of part $k$'s chance over the mixture's, the log-likelihood is within
    $\max_k g_k - 1$ of its best. $w_k \leftarrow w_k g_k$ (expectation-maximisation) never makes
    it worse; Newton's step is taken where it is better still.
    """
    weights = chances.new_full((chances.shape[1],), 1 / chances.shape[1])
    steps, gap = 0, float("inf")
    while steps < _MOST_STEPS:
        ratios = chances / (chances @ weights)[:, None]
        gains = share @ ratios
        gap = gains.max().item() - 1
        if gap <= _GAP:
            break
        steps += 1
        cautious = weights * gains
        bold = _newton(weights, gains, (ratios * share[:, None]).T @ ratios)
        better = share @ (chances @ bold).log() > share @ (chances @ cautious).log()
        weights = bold if bool(better) else cautious
    return weights, steps, gap


def _newton(
    weights: Float[Tensor, " parts"],
    gains: Float[Tensor, " parts"],
    curvature: Float[Tensor, "parts parts"],
) -> Float[Tensor, " parts"]:
    """The best weights by the quadratic model, of all choices of which parts have any."""
    parts = len(weights)
    slope = -gains - curvature @ weights
    # Parts that say the same, as at T = 1, have no curvature between them.
    curvature = curvature + 1e-12 * curvature.trace() * torch.eye(parts).to(curvature)
    best, least = weights, math.inf
    for chosen in product([False, True], repeat=parts):
        own = list(compress(range(parts), chosen))
        if not own:
            continue
        inner = curvature[own][:, own]
        ones = inner.new_ones(len(own), 1)
        # Stationary among weights that sum to one: a multiplier for the sum.
        system = torch.cat(
            [torch.cat([inner, ones], dim=1), torch.cat([ones.T, ones.new_zeros(1, 1)], dim=1)]
        )
        found = torch.linalg.solve(system, torch.cat([-slope[own], ones[0]]))[:-1]
        value = (slope[own] @ found + found @ inner @ found / 2).item()
        if bool((found >= 0).all()) and value < least:
            best, least = torch.zeros_like(weights).index_put((torch.tensor(own),), found), value
    return best
