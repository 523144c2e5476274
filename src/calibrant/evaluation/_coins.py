"""Outcomes drawn anew from the confidences: what a calibrated model would have been told."""

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._precision import in_proportion, widened
from ._resampled import Events
from ._weights import alike


class Coins:
    """Gaps of outcomes that happen as often as their confidences say, block after block.

    Resampled rows scatter too little where bins hold a sample or two: an outcome that did not
    happen never happens in any resample. Coins scatter as a calibrated model does, by definition.

    - `confidence`: the chance of each. The same seed draws the same coins.
    """

    def __init__(self, confidence: Float[Tensor, " n"], seed: int) -> None:
        (self._chance,) = widened(confidence)
        # Rounded as the measure rounds them, so that a draw that repeats what was seen ties.
        self._hit, self._miss = widened(1 - confidence, 0 - confidence)
        self._random = torch.Generator(confidence.device).manual_seed(seed)

    def gaps(self, draws: int) -> Float[Tensor, "draws n"]:
        """The next so many.

        >>> Coins(torch.tensor([1.0, 0.0, 0.25]), seed=0).gaps(2)
        tensor([[ 0.0000,  0.0000, -0.2500],
                [ 0.0000,  0.0000, -0.2500]], dtype=torch.float64)
        """
        size = (draws, len(self._chance))
        kind, device = self._chance.dtype, self._chance.device
        point = torch.rand(size, generator=self._random, dtype=kind, device=device)
        return torch.where(point < self._chance, self._hit, self._miss)


class CoinsOfCrowds:
    """The same of crowds: mean gaps, the same for all that are tied."""

    def __init__(self, events: Events, seed: int) -> None:
        (chance,) = widened(events.confidence)
        self._chance, self._level = chance.unique(return_inverse=True)
        weights = in_proportion(events.weights)
        self._count = alike(self._level, len(self._chance), weights, events.squares(weights))
        self._random = torch.Generator(chance.device).manual_seed(seed)

    def gaps(self, draws: int) -> Float[Tensor, "draws n"]:
        """The next so many.

        Samples whose weights differ amount to no whole number of equal ones. So the one below or
        above is drawn, as often as makes the variance right, which is in proportion to one over it.
        """
        size = (draws, len(self._chance))
        count, chance = (x.expand(size) for x in (self._count, self._chance))
        below = count.floor()
        point = torch.rand(size, generator=self._random, dtype=chance.dtype, device=chance.device)
        whole = below + (point >= below * ((below + 1) / count - 1))
        hits = torch.binomial(whole, chance.contiguous(), self._random)
        gap: Tensor = hits / whole - chance
        return gap[:, self._level]


def coins_of(events: Events, seed: int) -> Coins | CoinsOfCrowds:
    """Those of single samples, or of crowds."""
    single = events.crowds is None
    return Coins(events.confidence, seed) if single else CoinsOfCrowds(events, seed)
