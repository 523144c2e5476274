"""A statistic over many resamples at once, and along a ray of possible truths."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._precision import widened
from ._interval import inverted
from ._shape import Shape, ShapeName, shape_of
from ._weights import Population

# What rounding may leave of a truth of zero.
_ROUNDED = 1e-8

SCALES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)


def without_rounding(truth: Float[Tensor, "*places"]) -> Float[Tensor, "*places"]:
    """Truths of zero as zero, or an interval that ends at zero would miss it by a digit."""
    return torch.where(truth > _ROUNDED, truth, 0)


@dataclass(frozen=True)
class Events:
    """Forecasts and outcomes as a resampled statistic needs them.

    - `confidence`: as the measure sees it, so that bins and ties are the measure's own.
    - `gap`: outcome less confidence, in double precision.
    - `weights`: how much each sample counts before any resampling.
    - `shape`: the gaps that the truth may have.
    - `crowds`: of how many samples each stands for; nothing where each is one.
    """

    confidence: Float[Tensor, " n"]
    outcome: Float[Tensor, " n"]
    gap: Float[Tensor, " n"]
    weights: Float[Tensor, " n"]
    shape: Shape
    crowds: Population | None = None

    @staticmethod
    def of(confidence: Tensor, outcome: Tensor, weights: Tensor) -> "Events":
        """From what a measure takes."""
        gap, wide, happened = widened(outcome - confidence, confidence, outcome)
        return Events(confidence.contiguous(), happened, gap, weights, shape_of(wide, gap, weights))

    def gaps(self, shape: ShapeName) -> Float[Tensor, " n"]:
        """Those of the truth, by the name of its shape."""
        named: Tensor = getattr(self.shape, shape)
        return named

    def squares(self, own: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The sum of the squared weights of the samples behind each.

        - `own`: the weights of the events, in whatever proportion.
        """
        square = own.square()
        return square if self.crowds is None else square / self.crowds.count

    def shares(self, x: Tensor) -> Tensor:
        """Weighted samples as shares of the whole."""
        total = self.weights.sum()
        return self.weights * x / torch.where(total > 0, total, 1)


class Resampled:
    """A statistic whose scatter is known from draws."""

    most: int | None = None
    """No more draws than this, where a draw is slow."""


class OfWeights(Resampled, ABC):
    """One number for each row of weights."""

    @property
    def crowds(self) -> Population | None:
        """What is drawn, where that is not the samples one by one."""
        return None

    @abstractmethod
    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """The measure's own weighted form, row by row."""


class OnRays(Resampled, ABC):
    """A statistic of gaps, whose interval is sought along rays of truths.

    How far noise lifts it depends on how the truth is spread: most where that lies in a few bins,
    least where every bin is off alike. An interval begins where the first would still reach the
    value, and ends where none would still fall as low.
    """

    scales: tuple[float, ...] = SCALES
    lower: ClassVar[int] = 1
    """So many of the rays, from the first on, tell where the interval begins."""

    @property
    def highest(self) -> float:
        """No truth lies above it, nor below zero: gaps lie between -1 and 1."""
        return 1.0

    def scales_like(self, other: Tensor) -> Float[Tensor, " scales"]:
        """The places of a ray, as a tensor beside another."""
        return torch.tensor(self.scales, dtype=other.dtype, device=other.device)

    @abstractmethod
    def truths(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "rays scales"]:
        """The truths of the rays, the sparse one first."""

    def ends(
        self,
        value: float,
        rays: Float[Tensor, "draws rays scales"],
        truths: Float[Tensor, "rays scales"],
        level: float,
    ) -> tuple[float, float]:
        """The interval of a value: what any of the rays leaves possible."""
        each = [
            inverted(value, ray, truth, level)
            for ray, truth in zip(rays.unbind(1), truths, strict=True)
        ]
        telling = self.telling(value, rays, level)
        return min(each[ray][0] for ray in telling), max(high for _, high in each)

    def telling(
        self, value: float, rays: Float[Tensor, "draws rays scales"], level: float
    ) -> range:
        """The rays that tell where the interval of a value begins."""
        return range(self.lower)


class AlongRay(OnRays, OfWeights):
    """A statistic of gaps that is moved along rays of truths.

    Resampling says how a statistic scatters around the *estimated* truth. Near calibration
    that truth is the wrong place to scatter around: most of it is noise. So a statistic of
    gaps also says how it scatters around other truths: the resampled gaps are moved from
    their observed mean to multiples of the gaps that the truth may have.
    """

    events: Events
    shapes: ClassVar[tuple[ShapeName, ...]] = ("sparse", "even")
    """Those of the rays."""

    @property
    def crowds(self) -> Population | None:
        """Those of the events."""
        return self.events.crowds

    @abstractmethod
    def of_gaps(self, gaps: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """The measure itself, had the gaps of the sample been those of each row."""

    @abstractmethod
    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """The statistic of each resample, had the truth been each multiple of a shape."""

    def truth(
        self, scales: Float[Tensor, " scales"], shape: ShapeName = "expected"
    ) -> Float[Tensor, " scales"]:
        """What the statistic would be without noise, for each multiple of a shape."""
        return self.moved(self.events.weights[None], scales, shape)[0]

    def rays(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        gaps: Float[Tensor, "draws n"],
    ) -> Float[Tensor, "draws rays scales"]:
        """The resamples along the rays of an interval.

        - `gaps`: of outcomes drawn from the confidences. All rays begin at the calibrated model,
          whose law is known.
        """
        moved = [self.moved(weights, scales[1:], shape) for shape in self.shapes]
        calibrated = self.of_gaps(gaps)[:, None, None].expand(-1, len(moved), 1)
        return torch.cat([calibrated, torch.stack(moved, dim=1)], dim=2)

    def truths(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "rays scales"]:
        """The truths of these rays."""
        return torch.stack([self.truth(scales, shape) for shape in self.shapes])


@dataclass(frozen=True)
class Mean(OfWeights):
    """The weighted mean of one number per sample.

    - `population`: what is drawn, if not the samples one by one; then of one number for each.
    """

    values: Float[Tensor, " n"]
    population: Population | None = None

    @property
    def crowds(self) -> Population | None:
        """What was named."""
        return self.population

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """One matrix product; a sample that is not drawn adds nothing, however large it is."""
        total = weights.sum(dim=1)
        finite = self.values.isfinite()
        if finite.all():
            added = weights @ self.values
        else:
            drawn = weights[:, ~finite]
            rest = torch.where(drawn > 0, drawn * self.values[~finite], 0)
            added = weights @ torch.where(finite, self.values, 0) + rest.sum(dim=1)
        return added / torch.where(total > 0, total, 1)
