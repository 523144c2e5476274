"""Samples dealt at random into lots, which are drawn whole."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ._crowds import SINGLY_UP_TO
from ._resampled import Mean
from ._weights import Population, multinomial_weights

_LOTS = 2**12
# Rows of counts, and columns of crowds, held at once: 32 MiB of either.
_ROWS, _COLUMNS = 2**9, 2**10


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

    def counts(self, draws: int, seed: int) -> Iterator[Float[Tensor, "block lots"]]:
        """How often each lot was drawn, block by block: as many in all as there are."""
        for block in multinomial_weights(torch.ones_like(self.population.weights), draws, seed):
            yield from block.split(_ROWS)

    def drawn(
        self, counts: Float[Tensor, "block lots"], crowds: Population
    ) -> Float[Tensor, "block crowds"]:
        """What of each crowd lies in the lots that were drawn.

        Crowds of any two orders are so drawn together, each sample as often in the one as in the
        other.
        """
        if crowds is self.population:
            return counts * crowds.weights
        assert crowds.crowd is not None
        counted, lots = self.weights > 0, counts.shape[1]
        lot, weights = self.lot[counted], self.weights[counted]
        parts = []
        for start in range(0, len(crowds.weights), _COLUMNS):
            size = min(_COLUMNS, len(crowds.weights) - start)
            own = (start <= crowds.crowd) & (crowds.crowd < start + size)
            place = (crowds.crowd[own] - start) * lots + lot[own]
            shared = counts.new_zeros(size * lots).index_add(0, place, weights[own])
            parts.append(counts @ shared.reshape(size, lots).T)
        return torch.cat(parts, dim=1)


def mean_drawn(values: Float[Tensor, " n"], lots: Lots | None) -> Mean:
    """The mean of one number per sample, or of lots of them."""
    return Mean(values) if lots is None else Mean(lots.means(values), lots.population)
