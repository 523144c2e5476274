"""Forecasts in ascending order, and who is tied with whom."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from .._tables import in_numpy

# From here on a CPU sorts faster in NumPy, and finds ties faster by comparing neighbours than by
# bisection.
_MANY = 2**10


@dataclass(frozen=True)
class Ascending:
    """The order of a vector: where each place was filled from, and the ends of its ties."""

    values: Float[Tensor, " n"]
    source: Int[Tensor, " n"]

    @staticmethod
    def of(x: Float[Tensor, " n"]) -> "Ascending":
        """Sort, off the graph: an order has no gradient."""
        fixed = x.detach()
        if len(fixed) >= _MANY and in_numpy(fixed):
            numbers = fixed.numpy(force=True)
            source = np.argsort(numbers)
            return Ascending(torch.from_numpy(numbers[source]), torch.from_numpy(source))
        return Ascending(*fixed.sort())

    @property
    def first_tied(self) -> Int[Tensor, " n"]:
        """For each place, the first place that holds the same value."""
        if self._few:
            # A NaN sorts last and is found nowhere; it must not be looked up beyond the end.
            last = max(len(self.values) - 1, 0)
            return torch.searchsorted(self.values, self.values).clamp(max=last)
        starts = torch.cat([self._steps.new_ones(1), self._steps])
        return (self._places * starts).cummax(0).values

    @property
    def last_tied(self) -> Int[Tensor, " n"]:
        """For each place, the last place that holds the same value."""
        if self._few:
            return torch.searchsorted(self.values, self.values, right=True) - 1
        ends = torch.cat([self._steps, self._steps.new_ones(1)])
        last = torch.where(ends, self._places, len(self.values))
        return last.flip(0).cummin(0).values.flip(0)

    @property
    def _few(self) -> bool:
        return len(self.values) < _MANY or self.values.device.type != "cpu"

    @property
    def _steps(self) -> Bool[Tensor, " steps"]:
        return self.values[1:] != self.values[:-1]

    @property
    def _places(self) -> Int[Tensor, " n"]:
        return torch.arange(len(self.values), device=self.values.device)

    def unsort(self, x: Shaped[Tensor, " n"]) -> Shaped[Tensor, " n"]:
        """Put what stands in ascending order back where it came from."""
        return torch.empty_like(x).scatter(0, self.source, x)
