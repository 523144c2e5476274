"""Logits as they are."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions
from ._recalibrator import Recalibrator
from ._report import Outcome


class Identity(Recalibrator):
    """Change nothing: what the others are compared with.

    Of probabilities, zeros alone change, as in any fit to them.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> logits, labels = torch.randn(20, 3), torch.arange(20) % 3
    >>> bool((Identity().fit(logits, labels).transform(logits) == logits).all())
    True
    """

    keeps_order: ClassVar[bool] = True
    contains_identity: ClassVar[bool] = True

    def _fit(self, predictions: Predictions) -> Outcome:
        return Outcome()

    def _transform(self, logits: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
        return logits
