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
    """The order of a vector, or of each of many: whence places were filled, and ends of ties."""

    values: Float[Tensor, "*many n"]
    source: Int[Tensor, "*many n"]

    @staticmethod
    def of(x: Float[Tensor, "*many n"]) -> "Ascending":
        """Sort, off the graph: an order has no gradient."""
        fixed = x.detach()
        if fixed.shape[-1] >= _MANY and in_numpy(fixed):
            numbers = fixed.numpy(force=True)
            source = torch.from_numpy(np.argsort(numbers))
            return Ascending(fixed.gather(-1, source), source)
        return Ascending(*fixed.sort())

    @property
    def first_tied(self) -> Int[Tensor, "*many n"]:
        """For each place, the first place that holds the same value."""
        if self._few:
            # A NaN sorts last and is found nowhere; it must not be looked up beyond the end.
            last = max(self.values.shape[-1] - 1, 0)
            return torch.searchsorted(self.values, self.values).clamp(max=last)
        starts = torch.nn.functional.pad(self._steps, (1, 0), value=True)
        return (self._places * starts).cummax(-1).values

    @property
    def last_tied(self) -> Int[Tensor, "*many n"]:
        """For each place, the last place that holds the same value."""
        if self._few:
            return torch.searchsorted(self.values, self.values, right=True) - 1
        ends = torch.nn.functional.pad(self._steps, (0, 1), value=True)
        last = torch.where(ends, self._places, self.values.shape[-1])
        return last.flip(-1).cummin(-1).values.flip(-1)

    @property
    def _few(self) -> bool:
        return self.values.shape[-1] < _MANY or self.values.device.type != "cpu"

    @property
    def _steps(self) -> Bool[Tensor, "*many steps"]:
        return self.values[..., 1:] != self.values[..., :-1]

    @property
    def _places(self) -> Int[Tensor, " n"]:
        return torch.arange(self.values.shape[-1], device=self.values.device)

    def unsort(self, x: Shaped[Tensor, "*many n"]) -> Shaped[Tensor, "*many n"]:
        """Put what stands in ascending order back where it came from."""
        return torch.empty_like(x).scatter(-1, self.source, x)
