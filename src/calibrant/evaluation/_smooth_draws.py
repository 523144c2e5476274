"""The smooth error of many resamples."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from .._tables import in_numpy
from ..measures._smooth import (
    _deposit,
    _integral_of_size,
    _smoothed,
    _Waves,
    remaining_of_rows,
)
from ._resampled import AlongRay, Events
from ._shape import ShapeName

# Steps of the secant rule after which the width is known to the last digits.
_STEPS = 8


@dataclass(frozen=True)
class SmoothDraws(AlongRay):
    """The fixed point of every resample by the secant rule, all at once."""

    events: Events
    most: int | None = 100
    scales: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)

    @cached_property
    def waves(self) -> _Waves:
        """The same for every resample."""
        return _Waves(self.events.gap)

    def _strength(self, charge: Tensor) -> Tensor:
        """Waves in each row of charges."""
        place = self.events.confidence.to(charge.dtype)
        grid = torch.vmap(_deposit, in_dims=(None, 0))(place, charge)
        return torch.vmap(self.waves.of)(grid)

    def _charges(self, weights: Tensor) -> Tensor:
        total = weights.sum(dim=1)
        return weights * self.events.gap / torch.where(total > 0, total, 1)[:, None]

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Each row's own fixed point."""
        return self._fixed_point(self._strength(self._charges(weights)))

    def of_gaps(self, gaps: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """Each row's own fixed point."""
        return self._fixed_point(self._strength(self.events.shares(gaps)))

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """Strengths add up as gaps do."""
        both = (self.events.gap, self.events.gaps(shape))
        observed, true = self._strength(torch.stack([self.events.shares(x) for x in both]))
        noise = self._strength(self._charges(weights)) - observed
        return torch.stack([self._fixed_point(noise + s * true) for s in scales.tolist()], dim=1)

    def _fixed_point(self, strength: Tensor) -> Tensor:
        def by_definition(width: Tensor) -> Tensor:
            return torch.vmap(
                lambda each, at: _integral_of_size(self.waves.seen(_smoothed(each, at)))
            )(strength, width)

        remaining = remaining_of_rows(strength) if in_numpy(strength) else by_definition

        def excess(width: Tensor) -> Tensor:
            return remaining(width) - width

        before = torch.zeros(len(strength), dtype=strength.dtype, device=strength.device)
        above = excess(before)
        width = above / 2
        for _ in range(_STEPS):
            excess_here = excess(width)
            change = excess_here - above
            # What remains falls as the width grows: the slope of the excess is -1 at least.
            slope = torch.where(change == 0, -1.0, change / (width - before)).clamp(max=-1)
            slope = slope.nan_to_num(-1.0, -1.0, -1.0)
            before, above = width, excess_here
            width = (width - excess_here / slope).clamp(min=0)
        return width
