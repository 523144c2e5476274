"""Train on one objective."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .._checks import check_callable
from ._batches import Forward, forward_pair, predicted, to_device
from ._history import Epoch, History
from ._interleave import Interleaved
from ._loaders import check_loader
from ._loop import Loop
from ._lr_schedule import Every
from ._parallel import is_parallel, objective_of_all_ranks
from ._preconditions import check_model
from ._selection import Selection
from ._step import Part, Step
from ._validation import make_validation


def fit(
    model: nn.Module,
    train_loader: Iterable[Any],
    *,
    objective: Callable[[Tensor, Tensor], Tensor],
    optimiser: Optimizer,
    epochs: int,
    validation_loader: Iterable[Any] | None = None,
    selection: Selection | None = None,
    lr_schedule: LRScheduler | None = None,
    lr_every: Every = "epoch",
    autocast: torch.dtype | None = None,
    clip: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    progress: bool | None = None,
    after_epoch: Callable[[Epoch], object] | None = None,
    forward: Forward = forward_pair,
    class_dim: int | None = None,
    ignore_index: int | None = None,
) -> History:
    """Train a model on an objective, such as `Penalised` or `nn.CrossEntropyLoss()`.

    - `model`: on its device and in training mode.
    - `train_loader`: yields pairs of inputs and labels, anew at each epoch.
    - `objective`: a loss called `(logits, labels)`.
    - `optimiser`: of the model's parameters.
    - `epochs`: in all, those before an interruption included.
    - `validation_loader`, `selection`: with the former the model ends with the weights of the
      epoch that the latter chooses, by default the lowest ECE of all that lose less than 1.5
      points of accuracy to the most accurate; without it, with those of the last epoch.
    - `lr_schedule`, `lr_every`: a learning-rate schedule, and whether it counts epochs or steps.
      `ReduceLROnPlateau` watches the calibration error on the validation data, or in its mode
      `"max"` the accuracy.
    - `autocast`: `torch.bfloat16` or `torch.float16` for mixed precision, the latter with a
      gradient scaler.
    - `clip`: the norm to which longer gradients are shortened.
    - `checkpoint`, `checkpoint_every`: a file to write after every epoch, and every so many
      steps. If it is there already the run goes on from it, and ends as though it had never
      been interrupted: bit for bit on a CPU. To go on in the middle of an epoch, the batches
      before it are read again. The optimiser goes on with what is kept of it there, also its
      learning rate, whatever the one passed has. An objective that is a module is kept with the
      rest, and so is all that the optimiser moves. A file of another model, optimiser, objective,
      weight of calibration or rule of selection, or of more epochs, is refused; functions are told
      apart by their names. Randomness outside torch's, NumPy's and Python's global generators and
      those of the loaders is not known about. That of workers which outlive an epoch is not
      either, so training with `persistent_workers=True` is refused.
    - `progress`: a bar in a terminal, if rich is installed; `False` for none.
    - `after_epoch`: called with each `Epoch`, to log it or to raise something.
    - `forward`: for other batches, `(model, batch)` in and `(logits, labels)` out.
    - `class_dim`, `ignore_index`: as in `Penalised`, for the validation data of pixels or tokens.

    Under `DistributedDataParallel` the parts of a `Penalised` are taken of the batches of all
    processes, as by `across_ranks`. So they are under `fully_shard`, where checkpoints and the
    best epoch are left to you, since no process has all the weights.

    A loss that is not finite stops the run with the model as it was before that step, and the
    checkpoint untouched.

    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> _ = torch.manual_seed(0)
    >>> inputs = torch.randn(256, 2)
    >>> data = TensorDataset(inputs, (inputs.sum(dim=1) > 0).long())
    >>> model = nn.Linear(2, 2)
    >>> optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
    >>> loader = DataLoader(data, batch_size=64, shuffle=True)
    >>> history = fit(model, loader, objective=nn.CrossEntropyLoss(), optimiser=optimiser, epochs=3)
    >>> print(history)
    epoch 0, fit 0.4355
    epoch 1, fit 0.3344
    epoch 2, fit 0.2881
    kept epoch 2: the last epoch
    """
    check_callable("objective", objective)
    check_model(model, optimiser)
    together = is_parallel(model)
    ignored = getattr(objective, "ignore_index", None) if ignore_index is None else ignore_index
    check_loader("train_loader", train_loader, together=together, ignore_index=ignored)
    judged = objective_of_all_ranks(objective, together)
    step = Step(model, optimiser, autocast=autocast, clip=clip)

    def parts_of(batch: Any, _: Any) -> Sequence[Part]:
        def part() -> tuple[Tensor, dict[str, Tensor]]:
            logits, labels = predicted(forward, model, to_device(batch, step.device))
            loss = judged(logits, labels)
            return loss, {"fit": loss}

        return [part]

    return Loop(
        "fit",
        step,
        Interleaved(train_loader, None),
        parts_of,
        criteria={"objective": objective},
        lr_schedule=lr_schedule,
        lr_every=lr_every,
        validation=make_validation(
            validation_loader,
            selection,
            forward,
            class_dim=class_dim,
            ignore_index=ignore_index,
            autocast=autocast,
        ),
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    ).run(epochs, progress, after_epoch)
