"""ESD of many resamples: running sums of weighted gaps and of their squares."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._order import Ascending
from ..measures._precision import in_proportion
from ._resampled import Events
from ._running_draws import OfRunningSums, shifts_to
from ._shape import ShapeName


@dataclass(frozen=True)
class EsdDraws(OfRunningSums):
    """Expected squared difference, every triple of distinct samples by the product of its weights.

    The estimate takes off the noise of one sample. A resample has that noise twice, once
    from the sample and once from resampling, and its weighted form takes off both; moved to
    another truth it has it once, and `_noise` gives the second back.
    """

    events: Events

    @cached_property
    def ascending(self) -> Ascending:
        """The order of the confidences."""
        return Ascending.of(self.events.confidence)

    @cached_property
    def last_tied(self) -> Tensor | None:
        """The last place tied with each; nothing where all places differ."""
        last = self.ascending.last_tied
        return None if bool((last.diff() > 0).all()) else last

    def _below(self, x: Tensor) -> Tensor:
        running = x.cumsum(-1)
        return (running if self.last_tied is None else running[..., self.last_tied]) - x

    def _forms(self, weights: Tensor, shifts: Tensor) -> Tensor:
        """The estimate after a shift has been added to the gaps of each resample."""
        source = self.ascending.source
        weight = in_proportion(weights[:, source])
        weighed = weight * self.events.gap[source]
        below, shift = self._below(weighed), self._below(shifts[:, source])
        size, count = weight.sum(dim=1), _triples(weight)
        own = (weight * (below.square() - self._below(weighed.square()))).sum(dim=1)
        cross, moved = (weight * below) @ shift.T, weight @ shift.square().T
        forms = own[:, None] + 2 * size[:, None] * cross + size.square()[:, None] * moved
        return torch.where(count > 0, 1 / torch.where(count > 0, count, 1), 0)[:, None] * forms

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Two running sums for each row."""
        return self._forms(weights, torch.zeros_like(self.events.gap)[None])[:, 0]

    def of_gaps(self, gaps: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Two running sums for each row; how much samples count is the same for all."""
        source = self.ascending.source
        weight = in_proportion(self.events.weights[source])
        weighed, count = weight * gaps[:, source], _triples(weight[None])
        below = self._below(weighed).square() - self._below(weighed.square())
        return below @ weight / torch.where(count > 0, count, 1) * (count > 0)

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """The square is expanded, so that all scales share two matrix products."""
        return self._forms(weights, shifts_to(self.events, scales, shape)) + self._noise

    @cached_property
    def _noise(self) -> Tensor:
        source = self.ascending.source
        squares = self.events.shares(self.events.gap).square()[source]
        share = self.events.shares(torch.ones_like(self.events.gap))[source]
        return (share * self._below(squares)).sum()


def _triples(weight: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
    """The products of the weights of three distinct samples, in any order; of fewer, none."""
    square = weight * weight
    size, squares, cubes = weight.sum(dim=1), square.sum(dim=1), (square * weight).sum(dim=1)
    enough = (weight > 0).sum(dim=1) >= 3
    return torch.where(enough, size**3 - 3 * size * squares + 2 * cubes, 0)
