"""The difference between two estimates that are both biased upwards."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ._interval import crossing, middle
from ._resampled import AlongRay, without_rounding


@dataclass(frozen=True)
class Ray:
    """An estimate of one model, and its resamples under every truth along its ray.

    - `value`: the estimate. `moved`: its resamples, had the truth been each of `truth`.
    - `scale`: where along the ray the median resample is the estimate.
    """

    value: float
    moved: Float[Tensor, "draws scales"]
    truth: Float[Tensor, " scales"]
    scales: Float[Tensor, " scales"]
    scale: float

    @staticmethod
    def of(value: float, statistic: AlongRay, moved: Float[Tensor, "draws scales"]) -> "Ray":
        """From the resamples of one model, drawn with the weights of both."""
        scales = statistic.scales_like(moved)
        median = moved.nanmedian(dim=0).values.cummax(dim=0).values
        place = crossing(scales.tolist(), median.tolist(), value)
        truth = without_rounding(statistic.truth(scales))
        return Ray(value, moved, truth.cummax(dim=0).values, scales, place)

    def at(self, scale: float) -> tuple[Float[Tensor, " draws"], Tensor]:
        """Resamples and truth at any place of the ray, by a line between its neighbours."""
        above = int(torch.searchsorted(self.scales, scale).clamp(1, len(self.scales) - 1))
        low, high = self.scales[above - 1], self.scales[above]
        share = (scale - low) / (high - low)
        return (
            torch.lerp(self.moved[:, above - 1], self.moved[:, above], share),
            torch.lerp(self.truth[above - 1], self.truth[above], share),
        )


def paired_interval(first: Ray, second: Ray, level: float) -> tuple[float, float]:
    r"""The differences of truths under which the difference of estimates is no surprise.

    One truth moves along its ray while the other stays where its own estimate is the median,
    and then the other way round; the interval holds what either leaves possible. Both models
    are resampled with the same weights, so what they share cancels.
    """
    rising, falling = _along(first, second, level), _along(second, first, level)
    return min(rising[0], -falling[1]), max(rising[1], -falling[0])


def _along(moving: Ray, still: Ray, level: float) -> tuple[float, float]:
    resamples, truth = still.at(still.scale)
    ends = middle(moving.moved - resamples[:, None], level)
    least, most = (end.cummax(dim=0).values.tolist() for end in ends)
    ray, seen = (moving.truth - truth).tolist(), moving.value - still.value
    return crossing(ray, most, seen), crossing(ray, least, seen, last=True)
