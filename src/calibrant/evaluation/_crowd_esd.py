"""ESD of many resamples, where many samples are drawn together."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._precision import in_proportion
from ._esd_draws import EsdDraws
from ._running_draws import shifts_to
from ._shape import ShapeName


class _Drawn(NamedTuple):
    """Of each crowd the sum over its samples of the weights they are drawn with, and of powers."""

    weight: Float[Tensor, "draws crowds"]
    square: Float[Tensor, "draws crowds"]
    cube: Float[Tensor, "draws crowds"]

    def triples(self) -> Float[Tensor, "draws 1"]:
        """One over the products of the weights of three distinct samples, in any order."""
        size, squares, cubes = (x.sum(dim=1, keepdim=True) for x in self)
        count = size**3 - 3 * size * squares + 2 * cubes
        return torch.where(count > 0, 1 / torch.where(count > 0, count, 1), 0)


@dataclass(frozen=True)
class CrowdEsdDraws(EsdDraws):
    r"""The same triples of distinct samples, added up by crowds.

    Of a crowd of $m$ samples of weight $a$, of which $K$ were drawn in all, the weights have the
    sum $aK$; which sample was drawn how often is not known, but squares and cubes of the weights
    have the expected sums $a^2 [K + K (K - 1) / m]$ and
    $a^3 [K + 3 K (K - 1) / m + K (K - 1) (K - 2) / m^2]$. Of a single sample those are its square
    and its cube.
    """

    @cached_property
    def _own(self) -> _Drawn:
        weight = in_proportion(self.events.weights[self.ascending.source])
        each = weight / self._count
        return _Drawn(*(x[None] for x in (weight, weight * each, weight * each.square())))

    @cached_property
    def _count(self) -> Float[Tensor, " crowds"]:
        assert self.crowds is not None
        return self.crowds.count[self.ascending.source]

    @cached_property
    def _gap(self) -> Float[Tensor, " crowds"]:
        return self.events.gap[self.ascending.source]

    def _drawn(self, weights: Float[Tensor, "draws crowds"]) -> _Drawn:
        source, own, count = self.ascending.source, self._own.weight, self._count
        # In the same proportion as the own ones.
        weight = weights[:, source] * (own[0, 0] / self.events.weights[source[0]])
        times, each = weight / own * count, own / count
        pairs = times * (times - 1) / count
        threes = pairs * (times - 2) / count
        return _Drawn(weight, each**2 * (times + pairs), each**3 * (times + 3 * pairs + threes))

    def _up_to(self, x: Tensor) -> Tensor:
        running = x.cumsum(-1)
        return running if self.last_tied is None else running[..., self.last_tied]

    def _squared(self, drawn: _Drawn) -> Float[Tensor, "draws 1"]:
        """Twice the sum over pairs below each sample, neither of them itself."""
        weight, square, cube = drawn
        gap, gaps = self._gap, self._gap.square()
        below, squares = self._up_to(weight * gap), self._up_to(square * gaps)
        total = weight * (below.square() - squares) - 2 * square * gap * below + 2 * cube * gaps
        return total.sum(dim=1, keepdim=True)

    def _moved(self, drawn: _Drawn, shifts: Tensor) -> Float[Tensor, "draws scales"]:
        weight, square, _ = drawn
        shift = shifts[:, self.ascending.source]
        shifted = self._up_to(shift) - shift / self._count
        below = weight * self._up_to(weight * self._gap) - square * self._gap
        size = weight.sum(dim=1, keepdim=True)
        moved = size.square() * (weight @ shifted.square().T)
        return drawn.triples() * (self._squared(drawn) + 2 * size * (below @ shifted.T) + moved)

    def draw(self, weights: Float[Tensor, "draws crowds"]) -> Float[Tensor, " draws"]:
        """Two running sums for each row."""
        drawn = self._drawn(weights)
        return (drawn.triples() * self._squared(drawn))[:, 0]

    def moved(
        self,
        weights: Float[Tensor, "draws crowds"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """The square is expanded, so that all scales share two matrix products."""
        shifts = shifts_to(self.events, scales, shape)
        return self._moved(self._drawn(weights), shifts) + self._noise

    def truth(
        self, scales: Float[Tensor, " scales"], shape: ShapeName = "expected"
    ) -> Float[Tensor, " scales"]:
        """Of the samples themselves, each as often as it is."""
        return (self._moved(self._own, shifts_to(self.events, scales, shape)) + self._noise)[0]

    def of_gaps(self, gaps: Float[Tensor, "draws crowds"]) -> Float[Tensor, " draws"]:
        r"""Of mean gaps of outcomes: those have $\sum g^2 = (1 - 2c) \sum g + m c (1 - c)$."""
        weight, square, cube = self._own
        chance, gap = (x[..., self.ascending.source] for x in (self.events.confidence, gaps))
        chance = chance.to(gap.dtype)
        squares = gap * (1 - 2 * chance) + chance * (1 - chance)
        below, noise = self._up_to(weight * gap), self._up_to(square * squares)
        total = weight * (below.square() - noise) - 2 * square * gap * below + 2 * cube * squares
        return (self._own.triples() * total.sum(dim=1, keepdim=True))[:, 0]

    @cached_property
    def _noise(self) -> Tensor:
        share = self.events.shares(torch.ones_like(self.events.gap))[self.ascending.source]
        squares = share.square() / self._count * self._gap.square()
        return (share * (self._up_to(squares) - squares / self._count)).sum()
