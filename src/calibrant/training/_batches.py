"""From a batch of a loader to predictions."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from ..predictions import Predictions

Forward = Callable[[nn.Module, Any], tuple[Tensor, Tensor]]
"""A model and a batch in, logits and labels out."""


def forward_pair(model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
    """Logits and labels of a batch that is a pair of inputs and labels."""
    inputs, labels = pair_of(batch)
    return model(inputs), labels


def pair_of(batch: Any) -> tuple[Any, Tensor]:
    """Inputs and labels, or a sentence about what the batch is instead."""
    if isinstance(batch, list | tuple) and len(batch) == 2 and isinstance(batch[1], Tensor):
        return batch[0], batch[1]
    got = f"{type(batch).__name__} of {len(batch)}" if hasattr(batch, "__len__") else repr(batch)
    raise TypeError(
        f"a batch must be a pair of inputs and labels; got {got}. For other batches say how one "
        "becomes logits and labels: forward=lambda model, batch: (logits, labels)."
    )


def predicted(forward: Forward, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
    """Logits and labels of a batch, or a sentence about what came out instead."""
    made: Any = forward(model, batch)
    if not isinstance(made, tuple | list) or len(made) != 2:
        raise TypeError(
            f"forward must give a pair of logits and labels; got {type(made).__name__}. Write "
            "forward=lambda model, batch: (logits, labels)."
        )
    logits, labels = made
    if not isinstance(logits, Tensor):
        raise TypeError(
            f"logits must be a tensor; got {type(logits).__name__} from the model. Say where in it "
            "they are: forward=lambda model, batch: (model(batch[0]).logits, batch[1])."
        )
    return logits, labels


def labels_of(batch: Any) -> Tensor | None:
    """The labels of a batch, where they can be told without running the model."""
    if isinstance(batch, list | tuple) and len(batch) == 2 and isinstance(batch[1], Tensor):
        return batch[1]
    labels = batch.get("labels") if isinstance(batch, Mapping) else None
    return labels if isinstance(labels, Tensor) else None


def to_device(batch: Any, device: torch.device) -> Any:
    """The batch with every tensor in it on the device."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(part, device) for part in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(to_device(part, device) for part in batch)
    if isinstance(batch, Mapping):
        return {name: to_device(part, device) for name, part in batch.items()}
    return batch


def precision(device: torch.device, autocast: torch.dtype | None) -> AbstractContextManager[Any]:
    """Mixed precision inside, or whatever holds outside."""
    return nullcontext() if autocast is None else torch.autocast(device.type, autocast)


def as_predictions(
    logits: Tensor, labels: Tensor, class_dim: int | None, ignore_index: int | None
) -> Predictions:
    """Predictions, flattened where there are positions or labels to ignore."""
    if class_dim is None and ignore_index is None:
        return Predictions(logits, labels)
    dim = 1 if class_dim is None else class_dim
    return Predictions.flatten(logits, labels, class_dim=dim, ignore_index=ignore_index)
