"""KS of many resamples: the largest of weighted running sums."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ._ranking import Levels
from ._resampled import Events
from ._running_draws import OfRunningSums
from ._shape import ShapeName


@dataclass(frozen=True)
class KsDraws(OfRunningSums):
    """The largest running sum of gaps.

    Of gaps of one sign it is the last, whose noise is that of all samples; in other truths the
    largest stands before it, where fewer have been added. So the even truth leans.
    """

    shapes: ClassVar[tuple[ShapeName, ...]] = ("sparse", "leaning", "expected")
    events: Events

    @cached_property
    def levels(self) -> Levels:
        """The order of the confidences."""
        return Levels.of(self.events.confidence)

    def _running(self, weights: Tensor) -> Tensor:
        total = weights.sum(dim=1)
        gap = weights * self.events.gap / torch.where(total > 0, total, 1)[:, None]
        return self.levels.running(gap)

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """One running sum for each row."""
        return _size(self._running(weights))

    def of_gaps(self, gaps: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """The same of rows of gaps."""
        return _size(self.levels.running(self.events.shares(gaps)))

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """Running sums less the observed ones, plus those of each truth."""
        observed, true = (
            self.levels.running(self.events.shares(x))
            for x in (self.events.gap, self.events.gaps(shape))
        )
        noise = self._running(weights) - observed
        room = torch.empty_like(noise)
        sizes = [_size(torch.add(noise, true, alpha=scale, out=room)) for scale in scales.tolist()]
        return torch.stack(sizes, dim=1)


def _size(running: Tensor) -> Tensor:
    low, high = running.aminmax(dim=1)
    return torch.maximum(high, -low)
