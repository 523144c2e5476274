"""Samples dealt at random into lots, which are drawn whole."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._crowds import SINGLY_UP_TO
from ._resampled import Mean
from ._weights import Population

_LOTS = 2**12


@dataclass(frozen=True)
class Lots:
    """A mean of lots scatters as the mean of their samples does, since nothing but chance sorted
    them; and a draw of a few thousand lots takes no longer for many samples.

    - `lot`: of each sample. `weights`: how much samples count. `population`: of lots.
    """

    lot: Int[Tensor, " n"]
    weights: Float[Tensor, " n"]
    population: Population

    @staticmethod
    def of(weights: Float[Tensor, " n"]) -> "Lots | None":
        """Nothing where samples are so few that each is drawn by itself."""
        if len(weights) <= SINGLY_UP_TO:
            return None
        generator = torch.Generator(weights.device).manual_seed(0)
        lot = torch.randperm(len(weights), generator=generator, device=weights.device) % _LOTS
        mass = weights.new_zeros(_LOTS).index_add(0, lot, weights)
        return Lots(lot, weights, Population(mass, torch.ones_like(mass)))

    def means(self, values: Float[Tensor, " n"]) -> Float[Tensor, " lots"]:
        """Of each lot; a sample that does not count adds nothing, however large it is."""
        mass = self.population.weights
        added = torch.where(self.weights > 0, self.weights * values, 0)
        return torch.zeros_like(mass).index_add(0, self.lot, added) / torch.where(mass > 0, mass, 1)


def mean_drawn(values: Float[Tensor, " n"], lots: Lots | None) -> Mean:
    """The mean of one number per sample, or of lots of them."""
    return Mean(values) if lots is None else Mean(lots.means(values), lots.population)
