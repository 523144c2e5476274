"""The gradient of a batch too large for memory, exact also where the loss belongs to the batch."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ._batch_norm import Buffers
from ._batches import Forward, forward_pair, precision, predicted, to_device
from ._parallel import is_parallel, objective_of_all_ranks, unsynchronised
from ._preconditions import device_of
from ._random import State, random_state, restore_random_state


def accumulate(
    model: nn.Module,
    micro_batches: Sequence[Any],
    objective: Callable[[Tensor, Tensor], Tensor],
    *,
    forward: Forward = forward_pair,
    autocast: torch.dtype | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> Tensor:
    """Add to every parameter the gradient of the objective of all micro-batches together.

    Summing the gradients of micro-batches is exact for a mean over samples, such as the
    likelihood. Calibration belongs to a batch: the mean of ESD over eight batches of 64 is not
    the ESD of 512. Two passes give the exact gradient in the memory of one micro-batch: the
    first, without a graph, collects the logits of all, from which the gradient by each logit
    follows; the second goes through each micro-batch again and sends its share backwards.

    - `micro_batches`: all of one step, pairs of inputs and labels.
    - `objective`: a loss called `(logits, labels)` with those of all micro-batches, such as
      `Penalised`.
    - `forward`, `autocast`: as in `fit`. Logits of all micro-batches are joined along the first
      dimension, so flatten tokens or pixels.
    - `scaler`: of gradients in float16; unscale before clipping, as ever.

    Returns the loss. Call `optimiser.step()` afterwards.

    It costs one more forward pass. Both passes must compute the same: random layers draw the
    same numbers in both, and running statistics are updated once. BatchNorm in training mode
    still normalises each micro-batch by itself, which no accumulation can mend; the gradient
    is exact for that network. Where a sum would do, as for the likelihood alone, do not use it.

    >>> from calibrant import Penalised, esd, nll, top_label
    >>> _ = torch.manual_seed(0)
    >>> model, inputs, labels = nn.Linear(4, 3), torch.randn(64, 4), torch.randint(3, (64,))
    >>> objective = Penalised(nll, top_label(esd), weight=1.0)
    >>> loss = accumulate(model, list(zip(inputs.split(16), labels.split(16))), objective)
    >>> whole = torch.autograd.grad(objective(model(inputs), labels), model.weight)[0]
    >>> bool(torch.allclose(model.weight.grad, whole, atol=1e-6))
    True

    Gao et al., "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup",
    RepL4NLP 2021, do the same for a contrastive loss.
    """
    device = device_of(model)
    loss, shares = logit_gradients(
        model, micro_batches, objective, forward=forward, autocast=autocast, scaler=scaler
    )
    for batch, share in zip(micro_batches, shares, strict=True):
        # Processes exchange gradients once, with the last micro-batch.
        with nullcontext() if share is shares[-1] else unsynchronised(model):
            restore_random_state(share.random)
            with precision(device, autocast):
                logits, _ = predicted(forward, model, to_device(batch, device))
            torch.autograd.backward(logits, share.gradient)
    return loss


@dataclass(frozen=True)
class Share:
    """What one micro-batch needs for its second pass.

    - `random`: the state of the generators before its first.
    - `gradient`: of the loss by its logits.
    """

    random: State
    gradient: Tensor


def logit_gradients(
    model: nn.Module,
    micro_batches: Sequence[Any],
    objective: Callable[[Tensor, Tensor], Tensor],
    *,
    forward: Forward,
    autocast: torch.dtype | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> tuple[Tensor, list[Share]]:
    """The first pass: the loss of all micro-batches, and what each needs for the second.

    Generators and running statistics are afterwards as they were before.
    """
    if len(micro_batches) == 0:
        raise ValueError("micro_batches must hold at least one batch; got none.")
    device, judged = device_of(model), objective_of_all_ranks(objective, is_parallel(model))
    buffers, states, outputs = Buffers(model), [], []
    with torch.no_grad():
        for batch in micro_batches:
            states.append(random_state())
            with precision(device, autocast):
                outputs.append(predicted(forward, model, to_device(batch, device)))
    buffers.restore()
    restore_random_state(states[0])
    # Not every torch forgets, by itself, weights it cast to half precision without a graph.
    torch.clear_autocast_cache()
    logits = torch.cat([own for own, _ in outputs]).requires_grad_()
    with precision(device, autocast):
        loss = judged(logits, torch.cat([labels for _, labels in outputs]))
    scaled = loss if scaler is None else scaler.scale(loss)
    (gradient,) = torch.autograd.grad(scaled, logits)
    gradients = gradient.split([len(own) for own, _ in outputs])
    return loss.detach(), [Share(*share) for share in zip(states, gradients, strict=True)]
