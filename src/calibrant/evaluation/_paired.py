"""The difference between two estimates that are both biased upwards."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ._interval import crossing, middle
from ._resampled import AlongRay

# By how much, relatively, a truth may be missed on the way to its place on the ray and back.
_ROUNDED = 1e-6


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
        median = moved.median(dim=0).values.cummax(dim=0).values
        place = crossing(scales.tolist(), median.tolist(), value)
        return Ray(value, moved, statistic.truth(scales).cummax(dim=0).values, scales, place)

    def at(self, scale: float) -> tuple[Float[Tensor, " draws"], Tensor]:
        """Resamples and truth at any place of the ray, by a line between its neighbours."""
        above = int(torch.searchsorted(self.scales, scale).clamp(1, len(self.scales) - 1))
        low, high = self.scales[above - 1], self.scales[above]
        share = (scale - low) / (high - low)
        return (
            torch.lerp(self.moved[:, above - 1], self.moved[:, above], share),
            torch.lerp(self.truth[above - 1], self.truth[above], share),
        )

    def scale_of(self, truth: float) -> float:
        """Where along the ray the truth is this one."""
        return crossing(self.scales.tolist(), self.truth.tolist(), truth)


def paired_interval(first: Ray, second: Ray, level: float) -> tuple[float, float]:
    r"""The differences of truths under which the difference of estimates is no surprise.

    One truth moves along its ray while the other stays where its own estimate is the median,
    and then the other way round; the interval holds what either leaves possible. Both models
    are resampled with the same weights, so what they share cancels.
    """
    rising, falling = _along(first, second, level), _along(second, first, level)
    return min(rising[0], -falling[1]), max(rising[1], -falling[0])


def paired_p_value(first: Ray, second: Ray) -> float:
    """How surprising the difference of estimates is if the truths do not differ.

    Two-sided: the truth of one model is put where the other's is, and the other way round;
    the larger of the two answers. A model that is always sure and right cannot be as far off as
    another, so that it is asked nothing.
    """
    return max(_surprise(first, second), _surprise(second, first))


def _along(moving: Ray, still: Ray, level: float) -> tuple[float, float]:
    resamples, truth = still.at(still.scale)
    ends = middle(moving.moved - resamples[:, None], level)
    least, most = (end.cummax(dim=0).values.tolist() for end in ends)
    ray, seen = (moving.truth - truth).tolist(), moving.value - still.value
    return crossing(ray, most, seen), crossing(ray, least, seen, last=True)


def _surprise(moving: Ray, still: Ray) -> float:
    resamples, truth = still.at(still.scale)
    equal, reached = moving.at(moving.scale_of(truth.item()))
    if reached < truth - _ROUNDED * torch.maximum(truth.abs(), moving.truth.abs().max()):
        return 0.0
    drawn, seen = equal - resamples, moving.value - still.value
    rounding = 1e-12 * max(abs(moving.value), abs(still.value))
    beyond = min(int((drawn >= seen - rounding).sum()), int((drawn <= seen + rounding).sum()))
    return min(1.0, 2 * (1 + beyond) / (1 + len(drawn)))
