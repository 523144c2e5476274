"""The difference between two estimates of which each has an interval of its own."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ._class_draws import OverClasses
from ._differences import Difference
from ._interval import fewest_draws, p_value_of
from ._resampled import without_rounding


@dataclass(frozen=True, eq=False)
class Alone:
    """An estimate of one model, and its draws along the rays of its own interval."""

    value: float
    statistic: OverClasses
    drawn: Float[Tensor, "draws rays scales"]
    truths: Float[Tensor, "rays scales"]

    @staticmethod
    def of(value: float, statistic: OverClasses, draws: int, level: float, seed: int) -> "Alone":
        """As many draws as were asked for or as it has time for, and enough for half the errors."""
        often = max(min(draws, statistic.most), fewest_draws(half_the_errors(level)))
        scales = statistic.scales_like(statistic.labels.weights)
        return Alone(
            value,
            statistic,
            statistic.rays(often, seed, scales),
            without_rounding(statistic.truths(scales)),
        )

    def interval(self, level: float) -> tuple[float, float]:
        """As `evaluate` has it."""
        low, high = self.statistic.ends(self.value, self.drawn, self.truths, level)
        return low, min(high, self.statistic.highest)


def half_the_errors(level: float) -> float:
    """The level of which two intervals fail as often as one.

    >>> half_the_errors(0.95)
    0.975
    """
    return (1 + level) / 2


def apart(first: Alone, second: Alone, level: float) -> Difference:
    """The interval holds every difference of what both intervals hold.

    Labels drawn anew from the chances of one model say nothing of the other, so what is hard for
    both does not cancel. Each interval fails half as often as is allowed to both, so whatever
    the two have in common, this one fails no more often than it says (Bonferroni): it is wide.
    """
    difference = first.value - second.value
    if difference == 0 and torch.equal(first.drawn, second.drawn):
        return Difference(first.value, second.value, 0.0, 0.0, 0.0, 1.0)

    def interval(level: float) -> tuple[float, float]:
        (low, high), (other_low, other_high) = (
            each.interval(half_the_errors(level)) for each in (first, second)
        )
        return low - other_high, high - other_low

    # So many draws of each tell half as small a share of errors.
    p_value = p_value_of(interval, level, (len(first.drawn) - 1) // 2)
    return Difference(first.value, second.value, difference, *interval(level), p_value)
