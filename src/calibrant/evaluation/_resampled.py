"""A statistic over many resamples at once, and along a ray of possible truths."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._precision import widened
from ._shape import expected_gap

SCALES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)


@dataclass(frozen=True)
class Events:
    """Forecasts and outcomes as a resampled statistic needs them.

    - `confidence`: as the measure sees it, so that bins and ties are the measure's own.
    - `gap`: outcome less confidence, in double precision.
    - `weights`: how much each sample counts before any resampling.
    - `expected`: the gap to expect at each confidence.
    """

    confidence: Float[Tensor, " n"]
    outcome: Float[Tensor, " n"]
    gap: Float[Tensor, " n"]
    weights: Float[Tensor, " n"]
    expected: Float[Tensor, " n"]

    @staticmethod
    def of(confidence: Tensor, outcome: Tensor, weights: Tensor) -> "Events":
        """From what a measure takes."""
        gap, wide, happened = widened(outcome - confidence, confidence, outcome)
        expected = expected_gap(wide, gap, weights)
        return Events(confidence.contiguous(), happened, gap, weights, expected)

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

    events: Events


@dataclass(frozen=True)
class Mean(Resampled):
    """The weighted mean of one number per sample."""

    values: Float[Tensor, " n"]

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """One matrix product."""
        total = weights.sum(dim=1)
        return weights @ self.values / torch.where(total > 0, total, 1)
