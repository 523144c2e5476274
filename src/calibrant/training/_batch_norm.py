"""What BatchNorm sees of the batches that calibration is judged on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

BatchNorm = Literal["update", "frozen"]


def training_batch_norms(model: nn.Module) -> list[nn.Module]:
    """The BatchNorm layers that normalise by the batch they see."""
    return [each for each in model.modules() if isinstance(each, _BatchNorm) and each.training]


def check_batch_norm(setting: str) -> None:
    """One of the two names."""
    if setting not in get_args(BatchNorm):
        raise ValueError(
            f"batch_norm must be 'update' or 'frozen'; got {setting!r}. The first treats held-out "
            "batches as training batches, as the authors do; the second leaves them out of the "
            "running statistics and normalises by those."
        )


@contextmanager
def frozen_batch_norm(model: nn.Module) -> Iterator[None]:
    """BatchNorm layers normalise by their running statistics inside, and leave them alone."""
    layers = training_batch_norms(model)
    try:
        for layer in layers:
            layer.training = False
        yield
    finally:
        for layer in layers:
            layer.training = True


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Every layer in evaluation mode inside; afterwards each in the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for module, training in modes:
            module.training = training


class Buffers:
    """A copy of what a forward pass may change: running statistics."""

    def __init__(self, model: nn.Module) -> None:
        self._live: list[Tensor] = list(model.buffers())
        self._kept = [buffer.detach().clone() for buffer in self._live]

    def keep(self) -> None:
        """Copy them as they are."""
        if self._live:
            torch._foreach_copy_(self._kept, self._live)

    @torch.no_grad()
    def restore(self) -> None:
        """Put back what was kept last."""
        for buffer, kept in zip(self._live, self._kept, strict=True):
            buffer.copy_(kept)
