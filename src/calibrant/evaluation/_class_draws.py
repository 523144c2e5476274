"""Errors measured class by class, over many resamples."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ._binned_draws import BinnedDraws
from ._resampled import AlongRay
from ._shape import ShapeName


@dataclass(frozen=True)
class OverClasses(AlongRay):
    """The mean over classes of binned errors, or the root of their mean square.

    - `each`: the statistic of one class; classes are built one at a time, to save memory.
    """

    classes: int
    each: Callable[[int], BinnedDraws]
    norm: float
    most: int | None = None

    @property
    def highest(self) -> float:
        """The gaps of a sample, over all classes, come to two at most, and so do their squares."""
        return float((2 / self.classes) ** (1 / self.norm))

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Class by class."""
        return self._combine(lambda one: one.draw(weights))

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """Class by class."""
        return self._combine(lambda one: one.moved(weights, scales, shape))

    def truth(
        self, scales: Float[Tensor, " scales"], shape: ShapeName = "expected"
    ) -> Float[Tensor, " scales"]:
        """Class by class."""
        return self._combine(lambda one: one.truth(scales, shape))

    def rays(
        self, weights: Float[Tensor, "draws n"], scales: Float[Tensor, " scales"]
    ) -> Float[Tensor, "draws rays scales"]:
        """All rays of a class while it is built."""
        return self._combine(lambda one: one.rays(weights, scales))

    def truths(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "rays scales"]:
        """All rays of a class while it is built."""
        return self._combine(lambda one: one.truths(scales))

    def _combine(self, of: Callable[[BinnedDraws], Tensor]) -> Tensor:
        total = sum(of(self.each(j)) ** self.norm for j in range(self.classes))
        return (torch.as_tensor(total) / self.classes) ** (1 / self.norm)
