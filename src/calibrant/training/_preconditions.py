"""What must hold before the first step, and the sentence a person reads when it does not."""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ._batches import labels_of
from ._parallel import gathered
from ._random import undisturbed


def check_model(model: nn.Module, optimiser: Optimizer) -> None:
    """A model that can be trained, and an optimiser that trains it."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch module; got {type(model).__name__}.")
    trained = {id(each) for each in model.parameters() if each.requires_grad}
    if not trained:
        raise ValueError(
            "model must have parameters that require a gradient; got none. "
            "Unfreeze some: model.requires_grad_(True)."
        )
    if not any(id(each) in trained for group in optimiser.param_groups for each in group["params"]):
        raise ValueError(
            "optimiser must hold parameters of model; got those of another. "
            "Make it after the model is built and moved: AdamW(model.parameters())."
        )
    if not model.training:
        raise ValueError(
            "model must be in training mode; got evaluation mode, in which dropout is off and "
            "BatchNorm learns nothing. Call model.train()."
        )


def check_loader(name: str, loader: Iterable[Any], *, together: bool, fewest: int = 1) -> None:
    """A loader that can be gone through again, is not empty, and knows more than one class.

    - `fewest`: samples that the first batch must have, those of all processes together.

    Reads one batch, and more only while every label is the same. Processes that train
    `together` come to one verdict, since one that stops alone leaves the others waiting.
    """
    if not isinstance(loader, Iterable):
        raise TypeError(
            f"{name} must yield batches; got {type(loader).__name__}. Wrap a data set in a "
            "DataLoader."
        )
    if isinstance(loader, Iterator):
        raise TypeError(
            f"{name} must begin anew at each epoch; got {type(loader).__name__}, which runs out. "
            "Pass a DataLoader or a list of batches."
        )
    low, high, batches, told, first = float("inf"), -float("inf"), 0, True, fewest
    with undisturbed(loader):
        for batch in loader:
            batches += 1
            labels = labels_of(batch)
            if labels is None or labels.is_floating_point():
                told = False
                break
            kept = labels[labels >= 0]
            first = kept.numel() if batches == 1 else first
            if kept.numel():
                low, high = min(low, kept.min().item()), max(high, kept.max().item())
            if low < high:
                break
    seen = gathered((batches, low, high, told, first), together)
    counts, lows, highs, tolds, firsts = zip(*seen, strict=True)
    low, high = min(lows), max(highs)
    if min(counts) == 0:
        raise ValueError(
            f"{name} must yield at least one batch; got none. With drop_last=True it needs a whole "
            "batch of samples: lower batch_size, or hold out more of them."
        )
    if sum(firsts) < fewest:
        raise ValueError(
            f"batches of {name} must hold at least {fewest} samples, for calibration belongs to "
            f"many of them; got {sum(firsts)} in the first. Raise batch_size."
        )
    if all(tolds) and low >= high:
        raise ValueError(
            f"labels of {name} must name two classes or more; "
            + ("got none at all. " if low > high else f"got {low:g} for every sample. ")
            + "Check how the data set is read."
        )


def check_count(name: str, count: int | None) -> None:
    """A whole number, one at least."""
    if count is not None and (isinstance(count, bool) or count < 1):
        raise ValueError(f"{name} must be a whole number, at least 1; got {count!r}.")


def device_of(model: nn.Module) -> torch.device:
    """Where the model's parameters are."""
    return next(model.parameters()).device
