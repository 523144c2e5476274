"""What must hold before the first step, and the sentence a person reads when it does not."""

from operator import index

import torch
from torch import nn
from torch.optim import LBFGS, Optimizer


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
    if isinstance(optimiser, LBFGS):
        raise TypeError(
            "optimiser must step by the gradient of one batch; got LBFGS, which computes the loss "
            "again as it steps. Take SGD or AdamW."
        )
    if not model.training:
        raise ValueError(
            "model must be in training mode; got evaluation mode, in which dropout is off and "
            "BatchNorm learns nothing. Call model.train()."
        )


def check_count(name: str, count: int | None) -> None:
    """A whole number, one at least."""
    if count is None:
        return
    try:
        wrong = isinstance(count, bool) or index(count) < 1
    except TypeError:
        wrong = True
    if wrong:
        raise ValueError(f"{name} must be a whole number, at least 1; got {count!r}.")


def device_of(model: nn.Module) -> torch.device:
    """Where the model's parameters are."""
    return next(model.parameters()).device
