"""What the chances would be, were the model as a whole less sure of them, or surer."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..measures._precision import widened
from ..predictions import Predictions
from ._chance_blocks import row_blocks

# Steps that find a power within these, and how far from one it is at least: of no power at all
# there would be no gaps.
_STEPS, _LEAST, _MOST, _AWAY = 4, 0.25, 4.0, 0.1


@dataclass(frozen=True)
class Tempered:
    r"""The chances to a power, $p_k^\beta / \sum_j p_j^\beta$, which is a temperature of $1/\beta$.

    The power is the likeliest, found by a few steps of Newton's from 1. All samples and classes
    have a part in it, so it is known where the gaps of a single class are mostly noise.

    - `power`: $\beta$. `norm`: the logarithm of each row's sum.
    """

    power: float
    norm: Float[Tensor, " n"]

    @staticmethod
    def of(predictions: Predictions, shares: Float[Tensor, " n"]) -> "Tempered":
        """A pass over the chances for each step, by blocks of rows."""
        power = 1.0
        for _ in range(_STEPS):
            power = min(max(power + _step(predictions, shares, power), _LEAST), _MOST)
        away = math.copysign(max(abs(power - 1), _AWAY), power - 1)
        return Tempered(1 + away, _norms(predictions, 1 + away))

    def gap(
        self, chance: Float[Tensor, "*many n"], row: Int[Tensor, "*many n"]
    ) -> Float[Tensor, "*many n"]:
        """How far each chance moves, by the row that it stands in."""
        return (self.power * _log(chance) - self.norm[row]).exp() - chance


def _step(predictions: Predictions, shares: Float[Tensor, " n"], power: float) -> float:
    """From a power to where the likelihood would be greatest, were it a parabola there."""
    slope = curve = 0.0
    for rows in row_blocks(predictions):
        surprise = _log(*widened(predictions.probs[rows]))
        chance = (power * surprise).softmax(dim=1)
        mean = (chance * surprise).sum(dim=1)
        variance = (chance * surprise.square()).sum(dim=1) - mean.square()
        seen = surprise.gather(1, predictions.labels[rows, None])[:, 0]
        slope += (shares[rows] * (seen - mean)).sum().item()
        curve += (shares[rows] * variance).sum().item()
    return slope / curve if curve > 0 else 0.0


def _norms(predictions: Predictions, power: float) -> Float[Tensor, " n"]:
    blocks = (widened(predictions.probs[rows])[0] for rows in row_blocks(predictions))
    return torch.cat([(power * _log(chance)).logsumexp(dim=1) for chance in blocks])


def _log(chance: Tensor) -> Tensor:
    return chance.clamp(min=torch.finfo(chance.dtype).tiny).log()
