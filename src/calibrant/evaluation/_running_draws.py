"""What resampled running sums of gaps have in common."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from ._resampled import AlongRay, Events
from ._shape import ShapeName


class OfRunningSums(AlongRay):
    """A statistic of running sums of gaps.

    They add up bins whose gaps have one sign and cancel those of another, so what matters is where
    the signs change. A truth that is even, but to the wrong side in some bins, would scatter too
    little: the upper end is sought along the expected one as well.
    """

    shapes: ClassVar[tuple[ShapeName, ...]] = ("sparse", "even", "expected")


def shifts_to(events: Events, scales: Tensor, shape: ShapeName) -> Float[Tensor, "scales n"]:
    """What moves the observed gaps to each truth, as shares of the whole."""
    return scales[:, None] * events.shares(events.gaps(shape)) - events.shares(events.gap)
