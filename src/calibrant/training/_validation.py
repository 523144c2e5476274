"""How good the model is on validation data."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..predictions import Predictions
from ..scores import accuracy
from ._batch_norm import evaluating
from ._batches import Forward, as_predictions, precision, to_device
from ._parallel import is_parallel, of_all_ranks
from ._preconditions import device_of
from ._random import undisturbed
from ._selection import Selection


@dataclass
class Validation:
    """Judges the model after each epoch.

    It draws no random number that training would have drawn, and leaves every layer in the mode
    it was in.
    """

    loader: Iterable[Any]
    selection: Selection
    forward: Forward
    class_dim: int | None = None
    ignore_index: int | None = None
    autocast: torch.dtype | None = None

    @torch.no_grad()
    def measure(self, model: nn.Module) -> tuple[float, float]:
        """Accuracy and calibration error."""
        device, together = device_of(model), is_parallel(model)
        parts: list[Predictions] = []
        with undisturbed(self.loader), evaluating(model):
            for batch in self.loader:
                with precision(device, self.autocast):
                    logits, labels = self.forward(model, to_device(batch, device))
                parts.append(as_predictions(logits, labels, self.class_dim, self.ignore_index))
        everything = Predictions(
            torch.cat([part.scores for part in parts]), torch.cat([part.labels for part in parts])
        )
        criteria = (accuracy, self.selection.measure)
        right, error = (of_all_ranks(each, together)(everything) for each in criteria)
        return float(right), float(error)


def make_validation(
    loader: Iterable[Any] | None, selection: Selection | None, forward: Forward, **settings: Any
) -> Validation | None:
    """A validation where there is a loader for it."""
    if loader is not None:
        return Validation(loader, selection or Selection(), forward, **settings)
    if selection is not None:
        raise ValueError(
            "selection must come with a validation_loader, on which epochs are judged; got none."
        )
    return None
