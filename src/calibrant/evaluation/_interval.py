"""From resamples to an interval."""

import torch
from jaxtyping import Float
from torch import Tensor


def percentile(draws: Float[Tensor, " draws"], level: float) -> tuple[float, float]:
    """The middle of the resampled values: for statistics whose bias is small beside their spread.

    >>> percentile(torch.arange(101.0), 0.9)
    (5.0, 95.0)
    """
    tails = torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=draws.dtype)
    low, high = draws.quantile(tails.to(draws.device)).tolist()
    return low, high


def inverted(
    value: float,
    moved: Float[Tensor, "draws scales"],
    truth: Float[Tensor, " scales"],
    level: float,
) -> tuple[float, float]:
    """The truths along the ray under which the value would not be surprising.

    - `value`: the estimate. `moved`: its resamples had the truth been each of `truth`, NaN where a
      resample says nothing.

    The lower end is the truth whose resamples reach the value by chance only, the upper end
    the one whose resamples fall short of it by chance only. A value luckier than the median
    of a perfect model says no more than that median would. The reasons are in
    docs/decisions/intervals.md.
    """
    tails = torch.tensor([(1 + level) / 2, (1 - level) / 2], dtype=moved.dtype)
    quantiles = moved.nanquantile(tails.to(moved.device), dim=0).cummax(dim=1).values
    most, least = quantiles.tolist()
    seen = max(value, moved[:, 0].nanmedian().item())
    ray = truth.tolist()
    return crossing(ray, most, value), crossing(ray, least, seen, last=True)


def crossing(ray: list[float], rising: list[float], value: float, *, last: bool = False) -> float:
    """The place on a ray where a rising curve reaches a value; beyond it, its last slope goes on.

    - `last`: where the curve stays at the value for a while, the last such place.

    >>> crossing([0.0, 1.0, 2.0], [5.0, 6.0, 10.0], 8.0)
    1.5
    """
    passed = (k for k, at in enumerate(rising) if at > value or (at == value and not last))
    k = next(passed, len(rising) - 1)
    if k == 0:
        return ray[0]
    step = rising[k] - rising[k - 1]
    share = (value - rising[k - 1]) / step if step > 0 else 1.0
    return ray[k - 1] + share * (ray[k] - ray[k - 1])
