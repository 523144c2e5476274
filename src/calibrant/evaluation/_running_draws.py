"""KS, ESD and MMCE of many resamples: weighted running sums over one order."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..criteria import root
from ..measures._mmce import _decayed_sums
from ..measures._order import Ascending
from ..measures._precision import in_proportion
from ._ranking import Levels
from ._resampled import AlongRay, Events, OfWeights
from ._shape import ShapeName
from ._weights import Population


class OfRunningSums(AlongRay):
    """A statistic of running sums of gaps.

    They add up bins whose gaps have one sign and cancel those of another, so what matters is where
    the signs change. A truth that is even, but to the wrong side in some bins, would scatter too
    little: the upper end is sought along the expected one as well.
    """

    shapes: ClassVar[tuple[ShapeName, ...]] = ("sparse", "even", "expected")


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


@dataclass(frozen=True)
class MmceDraws(OfRunningSums):
    """The root of a quadratic form in the gaps, by decayed running sums."""

    events: Events
    bandwidth: float = 0.4

    @cached_property
    def ascending(self) -> Ascending:
        """The order of the confidences."""
        return Ascending.of(self.events.confidence)

    def _field(self, charge: Tensor) -> Tensor:
        """The kernel applied to each row of charges, in ascending order."""
        place = self.ascending.values.to(charge.dtype)[:, None]
        before, after = _decayed_sums(place, charge.T, self.bandwidth)
        return (before + after).T - charge

    def _charges(self, weights: Tensor) -> Tensor:
        total = weights.sum(dim=1)
        charge = weights * self.events.gap / torch.where(total > 0, total, 1)[:, None]
        return charge[:, self.ascending.source]

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """One form for each row."""
        charge = self._charges(weights)
        return root((charge * self._field(charge)).sum(dim=1))

    def of_gaps(self, gaps: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """The same of rows of gaps."""
        charge = self.events.shares(gaps)[:, self.ascending.source]
        return root((charge * self._field(charge)).sum(dim=1))

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """The form is expanded, so that all scales share one matrix product."""
        charge = self._charges(weights)
        shift = shifts_to(self.events, scales, shape)[:, self.ascending.source]
        field = self._field(shift)
        own = (charge * self._field(charge)).sum(dim=1)
        return root(own[:, None] + 2 * charge @ field.T + (shift * field).sum(dim=1))


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


def _triples(weight: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
    """The products of the weights of three distinct samples, in any order; of fewer, none."""
    square = weight * weight
    size, squares, cubes = weight.sum(dim=1), square.sum(dim=1), (square * weight).sum(dim=1)
    enough = (weight > 0).sum(dim=1) >= 3
    return torch.where(enough, size**3 - 3 * size * squares + 2 * cubes, 0)


def shifts_to(events: Events, scales: Tensor, shape: ShapeName) -> Float[Tensor, "scales n"]:
    """What moves the observed gaps to each truth, as shares of the whole."""
    return scales[:, None] * events.shares(events.gaps(shape)) - events.shares(events.gap)


def _size(running: Tensor) -> Tensor:
    low, high = running.aminmax(dim=1)
    return torch.maximum(high, -low)
