"""Calibration of a held-out batch group by group, where only the batch knows the groups."""

from typing import Any

from torch import Tensor, nn

from ..criteria import Criterion, by_group
from ..predictions import Predictions


class ByGroup:
    """A criterion averaged over the groups of the batch that `forward` saw last.

    Training hands a criterion predictions, which know no groups. Held-out batches of three parts
    carry them past, and those of two parts, to fit or to validate, leave them as they were.

    - `inner`: the criterion of each group.
    """

    def __init__(self, inner: Criterion) -> None:
        self.inner = inner
        self._lifted: Criterion | None = None

    def forward(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        """Logits and labels of a batch; what `fit_interleaved` takes as `forward`."""
        inputs, labels, *groups = batch
        if groups:
            self._lifted = by_group(groups[0])(self.inner)
        return model(inputs), labels

    def __call__(self, predictions: Predictions) -> Tensor:
        """The mean over groups."""
        assert self._lifted is not None  # a held-out batch has gone forward
        return self._lifted(predictions)
