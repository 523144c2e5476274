"""What a map of scores to logits must offer for its coefficients to be fitted."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from ._softmax_fit import SoftmaxFit


class LinearMap(ABC):
    """How coefficients make logits out of scores, linearly in both."""

    @abstractmethod
    def identity(self, classes: int) -> Tensor:
        """Coefficients that change nothing."""

    @abstractmethod
    def in_units(self, ones: Tensor, unit: float) -> Tensor:
        """Coefficients of one, with those that multiply scores made `unit`."""

    @abstractmethod
    def push(self, coefficients: Tensor, scores: Tensor) -> Tensor:
        """Logits, for a block of rows."""

    @abstractmethod
    def pull(self, slopes: Tensor, scores: Tensor) -> Tensor:
        """The transpose of `push`: slopes by logit made into slopes by coefficient."""

    @abstractmethod
    def observe(self, labels: Tensor, scores: Tensor, weights: Tensor | None) -> Tensor:
        """What `pull` makes of slopes that are each row's weight at its label, in float64."""

    @abstractmethod
    def stand_in(self, problem: "SoftmaxFit", point: Tensor) -> Callable[[Tensor], Tensor]:
        """Something near the inverse of the Hessian, and cheap."""
