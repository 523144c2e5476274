"""What a model says of held-out batches."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..predictions import Predictions
from ._form import Form
from ._inputs import to_predictions


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards every part is in the mode it was in."""
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in modes:
            part.training = mode


def predictions_of(
    model: nn.Module,
    loader: Iterable[Any],
    device: torch.device | str | None,
    layout: tuple[int, int | None, bool],
) -> tuple[Predictions, Form, bool]:
    """All batches as one batch of rows, ignored positions left out on the way.

    With it their layout, and whether each was one score, the log-odds of an event.

    `layout` is `class_dim`, `ignore_index` and `multilabel`, as in `Recalibrator.fit`.
    """
    class_dim, ignore_index, multilabel = layout
    place = torch.device(device) if device is not None else _device_of(model)
    logits, labels = [], []
    with evaluating(model):
        for batch in loader:
            inputs, truth = _pair(batch)
            said = _logits(model(inputs.to(place) if isinstance(inputs, Tensor) else inputs))
            truth = truth.to(said.device)
            if ignore_index is not None and said.ndim > 1 and not multilabel:
                flat = Predictions.flatten(
                    said, truth, class_dim=class_dim, ignore_index=ignore_index
                )
                said, truth = flat.logits, flat.labels
            logits.append(said)
            labels.append(truth)
    if not logits:
        raise ValueError("loader must give at least one batch; got none. Is it used up already?")
    flattened = ignore_index is not None and logits[0].ndim == 2 and not multilabel
    told = torch.cat(logits)
    predictions, form = to_predictions(
        told,
        torch.cat(labels),
        None,
        1 if flattened else class_dim,
        None if flattened else ignore_index,
        multilabel,
    )
    return predictions, Form(form.classes, class_dim, multilabel), told.ndim == 1


def _pair(batch: Any) -> tuple[Any, Tensor]:
    if isinstance(batch, tuple | list) and len(batch) == 2 and isinstance(batch[1], Tensor):
        return batch[0], batch[1]
    raise TypeError(
        "loader must give batches of (inputs, labels), labels a tensor; got "
        f"{type(batch).__name__}. Pass ((b['x'], b['y']) for b in loader), say."
    )


def _logits(said: Any) -> Tensor:
    if not isinstance(said, Tensor):
        raise TypeError(
            f"model must give a tensor of logits; got {type(said).__name__}. "
            "Wrap it in a module that returns the logits alone."
        )
    return said


def _device_of(model: nn.Module) -> torch.device:
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device
