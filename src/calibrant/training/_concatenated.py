"""One forward pass over the two batches of a step."""

from typing import Any

import torch
from torch import Tensor, nn

from ._batch_norm import training_batch_norms
from ._batches import Forward, forward_pair, pair_of, predicted


def concatenated(model: nn.Module, batch: Any, held_out: Any) -> list[tuple[Tensor, Tensor]]:
    """Logits and labels of each of two batches that the model is given as one."""
    inputs, labels = zip(pair_of(batch), pair_of(held_out), strict=True)
    first, second = inputs
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)) or (
        first.shape[1:] != second.shape[1:]
    ):
        kinds = " and ".join(
            str(tuple(each.shape)) if isinstance(each, Tensor) else type(each).__name__
            for each in inputs
        )
        raise TypeError(
            "concatenate must be False unless the inputs of both batches are tensors that can be "
            f"joined along the first dimension; got {kinds}. Use two passes."
        )
    logits, _ = predicted(forward_pair, model, (torch.cat(inputs), torch.cat(labels)))
    sizes = [len(own) for own in labels]
    return list(zip(logits.split(sizes), labels, strict=True))


def check_concatenation(
    concatenate: bool, model: nn.Module, forward: Forward, schedule: str
) -> None:
    """Only where two passes would give the same."""
    if not concatenate:
        return
    if schedule == "two_phase":
        raise ValueError(
            "concatenate must be False when schedule is 'two_phase', whose steps have one batch "
            "each; got True."
        )
    if forward is not forward_pair:
        raise ValueError(
            "concatenate must be False with a forward of your own, whose batches cannot be joined "
            "from outside; got True."
        )
    if training_batch_norms(model):
        raise ValueError(
            "concatenate must be False where BatchNorm is in training mode, since it would "
            "normalise the two batches as one; got True. Use two passes, or put those layers in "
            "evaluation mode."
        )
