"""MMCE of many resamples: running sums that decay."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from ..criteria import root
from ..measures._mmce import _decayed_sums
from ..measures._order import Ascending
from ._resampled import Events
from ._running_draws import OfRunningSums, shifts_to
from ._shape import ShapeName


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
