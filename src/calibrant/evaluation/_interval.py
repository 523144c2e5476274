"""From resamples to an interval."""

from collections.abc import Callable
from math import ceil, isclose

import torch
from jaxtyping import Float
from torch import Tensor

# A p-value is sought until its place is known to a share of 2 ** -20.
_HALVINGS = 20
# And is given in so many digits: 1 - 0.95 is a little more than 0.05.
_DIGITS = 12
# Of the scores of a perfect model, how many are lucky: as many as lie more than one standard
# deviation below the mean of a normal one.
_LUCKY = 0.16
# A draw that repeats the value ties with it, though the measure rounded it otherwise.
_ROUNDED = 1e-6


def middle(
    draws: Float[Tensor, "draws *places"], level: float
) -> tuple[Float[Tensor, " *places"], Float[Tensor, " *places"]]:
    """The ends between which another draw lies with this chance; NaN counts as no draw.

    Of n draws another would lie below the k-th smallest with a chance of k / (n + 1), so that is
    the place of a quantile here (Weibull, 1939). The usual places, (k - 1) / (n - 1), are too far
    inside: of a hundred draws they leave out seven in a hundred where five were meant.

    >>> middle(torch.arange(1.0, 100.0), 0.9)
    (tensor(5.), tensor(95.))
    """
    ordered = draws.sort(dim=0).values  # NaN last
    count = (~draws.isnan()).sum(dim=0)

    def at(share: float) -> Tensor:
        last = (count - 1).clamp(min=0)
        place = (share * (count + 1) - 1).to(draws.dtype).clamp(min=0).minimum(last)
        below, above = (ordered.gather(0, k.long()[None])[0] for k in (place.floor(), place.ceil()))
        # Between two infinities there is nothing to interpolate.
        return torch.where(below == above, below, below + place.frac() * (above - below))

    return at((1 - level) / 2), at((1 + level) / 2)


def percentile(draws: Float[Tensor, " draws"], level: float) -> tuple[float, float]:
    """The middle of the resampled values: for statistics whose bias is small beside their spread.

    >>> percentile(torch.arange(1.0, 100.0), 0.9)
    (5.0, 95.0)
    """
    low, high = middle(draws, level)
    return low.item(), high.item()


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
    the one whose resamples fall short of it by chance only. A value below the 16%
    quantile of a perfect model says no more than that quantile would. The reasons are in
    docs/decisions/intervals.md.
    """
    moved = torch.where((moved - value).abs() <= _ROUNDED * abs(value), value, moved)
    least, most = (end.cummax(dim=0).values.tolist() for end in middle(moved, level))
    seen = max(value, moved[:, 0].nanquantile(_LUCKY).item())
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


def fewest_draws(level: float) -> int:
    """How many draws it takes until another lies beyond all of them as seldom as a level says.

    >>> fewest_draws(0.95), fewest_draws(0.999)
    (39, 1999)
    """
    return ceil(2 / (1 - level) * (1 - 1e-9)) - 1


def p_value_of(interval: Callable[[float], tuple[float, float]], level: float, draws: int) -> float:
    """The smallest share of errors, one less its level, at which an interval leaves out zero.

    So it is at most `1 - level` exactly where the interval of that level leaves out zero. No
    smaller than what `draws` resamples can tell, and 1 where no interval leaves it out.

    >>> p_value_of(lambda level: (0.1 - level, 1.0), 0.95, draws=1000)
    0.9000...
    """

    def leaves_out_zero(share: float) -> bool:
        low, high = interval(1 - share)
        return low > 0 or high < 0

    least = min(1.0, 2 / (draws + 1))
    if isclose(least, 1 - level):
        least = 1 - level
    if leaves_out_zero(least):
        return _rounded_down(least)
    held, left_out = least, 1.0
    tried = max(1 - level, least)
    for _ in range(_HALVINGS):
        if leaves_out_zero(tried):
            left_out = tried
        else:
            held = tried
        tried = (held + left_out) / 2
    return _rounded_down(left_out)


def _rounded_down(share: float) -> float:
    return min(share, round(share, _DIGITS))
