"""Outcomes drawn anew from the confidences: what a calibrated model would have been told."""

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._precision import widened


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
