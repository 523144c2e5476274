"""A statistic over many resamples at once, and along a ray of possible truths."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._precision import widened
from ._interval import inverted
from ._shape import shape_of

SCALES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)


@dataclass(frozen=True)
class Events:
    """Forecasts and outcomes as a resampled statistic needs them.

    - `confidence`: as the measure sees it, so that bins and ties are the measure's own.
    - `gap`: outcome less confidence, in double precision.
    - `weights`: how much each sample counts before any resampling.
    - `expected`, `shrunk`, `freedom`: the gap to expect at each confidence, as `Shape` has it.
    """

    confidence: Float[Tensor, " n"]
    outcome: Float[Tensor, " n"]
    gap: Float[Tensor, " n"]
    weights: Float[Tensor, " n"]
    expected: Float[Tensor, " n"]
    shrunk: Float[Tensor, " n"]
    freedom: Float[Tensor, ""]

    @staticmethod
    def of(confidence: Tensor, outcome: Tensor, weights: Tensor) -> "Events":
        """From what a measure takes."""
        gap, wide, happened = widened(outcome - confidence, confidence, outcome)
        shape = shape_of(wide, gap, weights)
        told = (shape.expected, shape.shrunk, shape.freedom)
        return Events(confidence.contiguous(), happened, gap, weights, *told)

    def shares(self, x: Tensor) -> Tensor:
        """Weighted samples as shares of the whole."""
        total = self.weights.sum()
        return self.weights * x / torch.where(total > 0, total, 1)


class Resampled(ABC):
    """One number for each row of weights.

    Resampling says how a statistic scatters around the *estimated* truth. Near calibration
    that truth is the wrong place to scatter around: most of it is noise. So a statistic of
    gaps also says how it scatters around other truths: the resampled gaps are moved from
    their observed mean to `scale` times the gap expected at their confidence.
    """

    most: int | None = None
    """No more draws than this, where a draw is slow."""

    @abstractmethod
    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """The measure's own weighted form, row by row."""


class AlongRay(Resampled):
    """A statistic of gaps, which can be moved along the ray of truths."""

    scales: tuple[float, ...] = SCALES

    @property
    def highest(self) -> float:
        """No truth lies above it, nor below zero: gaps lie between -1 and 1."""
        return 1.0

    def scales_like(self, other: Tensor) -> Float[Tensor, " scales"]:
        """The places of the ray, as a tensor beside another."""
        return torch.tensor(self.scales, dtype=other.dtype, device=other.device)

    @abstractmethod
    def moved(
        self, weights: Float[Tensor, "draws n"], scales: Float[Tensor, " scales"]
    ) -> Float[Tensor, "draws scales"]:
        """The statistic of each resample, had the truth been each multiple of the expected."""

    def truth(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, " scales"]:
        """What the statistic would be without noise, for each multiple of the expected gap."""
        return self.moved(self.events.weights[None], scales)[0]

    def rays(
        self, weights: Float[Tensor, "draws n"], scales: Float[Tensor, " scales"]
    ) -> Float[Tensor, "draws rays scales"]:
        """The same along every ray that the interval looks at: here one."""
        return self.moved(weights, scales)[:, None]

    def truths(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "rays scales"]:
        """The truths of these rays."""
        return self.truth(scales)[None]

    def ends(
        self,
        value: float,
        rays: Float[Tensor, "draws rays scales"],
        truths: Float[Tensor, "rays scales"],
        level: float,
    ) -> tuple[float, float]:
        """The interval of a value."""
        return inverted(value, rays[:, 0], truths[0], level)

    events: Events


@dataclass(frozen=True)
class Mean(Resampled):
    """The weighted mean of one number per sample."""

    values: Float[Tensor, " n"]

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """One matrix product."""
        total = weights.sum(dim=1)
        return weights @ self.values / torch.where(total > 0, total, 1)
