"""The price of miscalibration: a number, or something that sets it as training goes."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from ..predictions import Predictions


@dataclass(frozen=True)
class CalibrationStatistics:
    """What a step saw of calibration, for a weight that learns from it. Nothing is on a graph.

    - `calibration`: the calibration loss of the held-out batch, before the weight; of all
      processes' batches, where there are several.
    - `fit`: the fit of the training batch of the same step; `None` in a step that only
      calibrates.
    - `held_out`: this process's predictions on the held-out batch.
    - `step`: how many steps were taken before this one.
    """

    calibration: Tensor
    fit: Tensor | None
    held_out: Predictions
    step: int


@runtime_checkable
class Weight(Protocol):
    """A weight with a mind of its own. The training procedures ask for `value` at each step."""

    @property
    def value(self) -> float:
        """What calibration is multiplied by now."""

    def update(self, statistics: CalibrationStatistics, /) -> None:
        """Learn from a step that has just been taken."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep: tensors, numbers and strings."""

    def load_state_dict(self, state: dict[str, Any], /) -> Any:
        """Go on from what a checkpoint kept."""


@runtime_checkable
class WatchingWeight(Weight, Protocol):
    """A weight that looks at the held-out batch while its graph is still there."""

    def watch(self, calibration: Tensor, held_out: Predictions) -> None:
        """Learn from a calibration loss before it is descended."""


class FixedWeight:
    """A number."""

    def __init__(self, value: float) -> None:
        self.value = float(value)

    def update(self, statistics: CalibrationStatistics) -> None:
        """A number learns nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to go on from."""


def as_weight(weight: float | Weight) -> Weight:
    """A number made a weight; a weight as it is."""
    if isinstance(weight, type):
        raise TypeError(
            f"weight must be made before it is passed; got the class {weight.__name__}. "
            f"Pass {weight.__name__}()."
        )
    if isinstance(weight, Weight):
        return weight
    number: Any = weight  # NumPy's numbers are welcome too
    if isinstance(number, bool) or not isinstance(number, Real):
        raise TypeError(
            "weight must be a number, or have value, update, state_dict and load_state_dict; "
            f"got {type(number).__name__}."
        )
    price = float(number)
    if not 0 <= price < float("inf"):
        raise ValueError(
            f"weight must be finite and not negative; got {number!r}. "
            "The ESD paper searches 0.2 to 10."
        )
    return FixedWeight(price)
