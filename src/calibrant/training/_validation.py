"""How good the model is on validation data."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import torch
from torch import nn

from ..predictions import Predictions
from ..scores import accuracy
from ._batch_norm import evaluating
from ._batches import Forward, as_predictions, precision, predicted, to_device
from ._loaders import check_loader
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

    def check(self, together: bool) -> None:
        """Refuse a loader on which no epoch could be judged."""
        check_loader(
            "validation_loader",
            self.loader,
            together=together,
            ignore_index=self.ignore_index,
            classes=1,
        )

    @torch.no_grad()
    def measure(self, model: nn.Module, epoch: int) -> tuple[float, float]:
        """Accuracy and calibration error after an epoch."""
        device, together = device_of(model), is_parallel(model)
        parts: list[Predictions] = []
        with undisturbed(self.loader), evaluating(model):
            for batch in self.loader:
                with precision(device, self.autocast):
                    logits, labels = predicted(self.forward, model, to_device(batch, device))
                parts.append(as_predictions(logits, labels, self.class_dim, self.ignore_index))
        if not parts:
            raise ValueError(
                "validation_loader must yield batches after every epoch; got none after epoch "
                f"{epoch}. Its data must begin anew: pass a list, or a data set whose __iter__ "
                "makes a new iterator."
            )
        everything = Predictions(
            torch.cat([part.scores for part in parts]), torch.cat([part.labels for part in parts])
        )
        criteria = (accuracy, self.selection.measure)
        right, error = (of_all_ranks(each, together)(everything) for each in criteria)
        return _checked(float(right), float(error), epoch)


def _checked(right: float, error: float, epoch: int) -> tuple[float, float]:
    """Both, if they are numbers to judge an epoch by."""
    if not (isfinite(right) and isfinite(error)):
        raise FloatingPointError(
            "accuracy and calibration error on validation data must be finite; got "
            f"{right} and {error} after epoch {epoch}. The model is as this epoch left it, and the "
            "checkpoint as it was written last. Check validation_loader for missing values, or "
            "lower the learning rate."
        )
    return right, error


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
