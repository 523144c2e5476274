"""What depends on the order of confidences alone, of many resamples."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Float
from torch import Tensor

from ._ranking import Levels
from ._resampled import Events, OfWeights
from ._weights import Population


@dataclass(frozen=True)
class RankingDraws(OfWeights):
    """A statistic of the order of confidences, whose own function takes rows of weights."""

    statistic: Callable[..., Tensor]
    events: Events

    @property
    def crowds(self) -> Population | None:
        """Those of the events."""
        return self.events.crowds

    @cached_property
    def levels(self) -> Levels:
        """The order of the confidences."""
        return Levels.of(self.events.confidence)

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """All rows at once."""
        return self.statistic(
            self.events.confidence, self.events.outcome, weights=weights, levels=self.levels
        )
