"""Fit one part of the training set, and judge calibration on another."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from ..criteria import Criterion
from ..objectives import check_criterion
from ..predictions import Predictions
from ..scores import nll
from ._adaptive_weight import AdaptiveWeight
from ._batch_norm import BatchNorm, check_batch_norm, frozen_batch_norm
from ._batches import Forward, as_predictions, forward_pair, predicted, to_device
from ._concatenated import check_concatenation, concatenated
from ._history import Epoch, History
from ._interleave import Interleaved, Schedule
from ._loaders import check_loader
from ._loop import Loop
from ._lr_schedule import Every
from ._parallel import is_parallel, of_all_ranks
from ._preconditions import check_model
from ._selection import Selection
from ._step import Part, Step
from ._validation import make_validation
from ._weight import CalibrationStatistics, WatchingWeight, Weight, as_weight


def fit_interleaved(
    model: nn.Module,
    train_loader: Iterable[Any],
    calibration_loader: Iterable[Any],
    *,
    calibration: Criterion,
    weight: float | Weight,
    optimiser: Optimizer,
    epochs: int,
    fit: Criterion = nll,
    schedule: Schedule = "every_step",
    batch_norm: BatchNorm = "update",
    concatenate: bool = False,
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
    r"""Interleaved training: fit the majority, pay for miscalibration of a held-out slice.

    $$\min_\theta\; \mathrm{fit}(D_\text{train}', \theta)
      + \lambda\, \mathrm{calibration}(D_\text{cal}', \theta)$$

    A network that memorises its training samples looks calibrated on them. A slice kept from
    the fit (`split_for_calibration`) shows its calibration as it is.

    - `train_loader`, `calibration_loader`: the majority and the slice.
    - `fit`: what makes predictions right, the likelihood by default.
    - `calibration`: what makes their confidence true, such as `top_label(rooted(esd))`.
    - `weight`: the price of miscalibration, $\lambda$: a number, `AdaptiveWeight`, which finds it
      by itself, or anything with `value` and `update`, called after every calibration batch.
    - `schedule`: `"every_step"` adds to the loss of every training batch that of the next batch
      of the slice, which is cycled through in ever new order (Yoon et al.). `"two_phase"` first
      goes through the majority, then through the slice, in every epoch (Karandikar et al.); an
      optimiser that rescales its steps, such as Adam, then all but ignores the weight.
    - `batch_norm`: `"update"` treats held-out batches like training batches, each normalised by
      itself and counted in the running statistics, as the authors' code does; `"frozen"`
      normalises them by the running statistics and leaves those alone.
    - `concatenate`: one forward pass over both batches of a step instead of two: the same
      gradient, with fewer and larger kernels. Refused where BatchNorm would mix the two.

    All other arguments are those of `fit`. Under `DistributedDataParallel` both criteria are
    taken of the batches of all processes, as by `across_ranks`.

    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from calibrant import esd, rooted, top_label
    >>> from calibrant.training import split_for_calibration
    >>> _ = torch.manual_seed(0)
    >>> inputs = torch.randn(256, 2)
    >>> data = TensorDataset(inputs, (inputs.sum(dim=1) + torch.randn(256) > 0).long())
    >>> majority, held_out = split_for_calibration(data, 0.25, seed=0)
    >>> model = nn.Linear(2, 2)
    >>> history = fit_interleaved(
    ...     model,
    ...     DataLoader(majority, batch_size=64, shuffle=True),
    ...     DataLoader(held_out, batch_size=64, shuffle=True),
    ...     calibration=top_label(rooted(esd)),
    ...     weight=1.0,
    ...     optimiser=torch.optim.SGD(model.parameters(), lr=0.5),
    ...     epochs=2,
    ... )
    >>> print(history)
    epoch 0, fit 0.6422, calibration 0.0165 times 1
    epoch 1, fit 0.5120, calibration 0.0357 times 1
    kept epoch 1: the last epoch

    Yoon et al., "ESD: Expected Squared Difference as a Tuning-Free Trainable Calibration
    Measure", ICLR 2023, eq. 11; Karandikar et al., "Soft Calibration Objectives for Neural
    Networks", NeurIPS 2021, appendix B.
    """
    check_criterion("fit", fit)
    check_criterion("calibration", calibration)
    check_batch_norm(batch_norm)
    check_model(model, optimiser)
    price = as_weight(weight)
    draws = Interleaved(train_loader, calibration_loader, schedule)
    check_concatenation(concatenate, model, forward, schedule)
    together = is_parallel(model)
    check_loader("train_loader", train_loader, together=together, ignore_index=ignore_index)
    check_loader(
        "calibration_loader",
        calibration_loader,
        together=together,
        ignore_index=ignore_index,
        fewest=2,
    )
    criteria = {"fit": fit, "calibration": calibration}
    fit, calibration = of_all_ranks(fit, together), of_all_ranks(calibration, together)
    if isinstance(price, AdaptiveWeight):
        price.together = together
    taught = [price] if isinstance(price, WatchingWeight) else []
    step = Step(model, optimiser, autocast=autocast, clip=clip, taught=taught)
    seen: dict[str, Any] = {}  # by the step under way, for the weight to learn from

    def predict(batch: Any) -> Predictions:
        logits, labels = predicted(forward, model, to_device(batch, step.device))
        return as_predictions(logits, labels, class_dim, ignore_index)

    def fitted(predictions: Predictions) -> Tensor:
        seen["fit"] = value = fit(predictions)
        return value

    def judged(predictions: Predictions) -> Tensor:
        value = calibration(predictions)
        seen["held_out"], seen["calibration"] = predictions, value
        if isinstance(price, WatchingWeight):
            price.watch(value, predictions)
        return price.value * value

    def fit_part(batch: Any) -> tuple[Tensor, dict[str, Tensor]]:
        loss = fitted(predict(batch))
        return loss, {"fit": loss}

    def calibration_part(held_out: Any) -> tuple[Tensor, dict[str, Tensor]]:
        with frozen_batch_norm(model) if batch_norm == "frozen" else nullcontext():
            predictions = predict(held_out)
        return judged(predictions), {"calibration": seen["calibration"]}

    def both_parts(batch: Any, held_out: Any) -> tuple[Tensor, dict[str, Tensor]]:
        batches = (to_device(each, step.device) for each in (batch, held_out))
        shares = concatenated(model, *batches)
        to_fit, to_judge = (as_predictions(*each, class_dim, ignore_index) for each in shares)
        loss = fitted(to_fit) + judged(to_judge)
        return loss, {"fit": seen["fit"], "calibration": seen["calibration"]}

    def parts_of(batch: Any, held_out: Any) -> Sequence[Part]:
        seen.clear()
        if concatenate:
            return [lambda: both_parts(batch, held_out)]
        parts: list[Part] = []
        if batch is not None:
            parts.append(lambda: fit_part(batch))
        if held_out is not None:
            parts.append(lambda: calibration_part(held_out))
        return parts

    def after_step(number: int) -> None:
        if "calibration" not in seen:
            return
        own = seen["held_out"]
        price.update(
            CalibrationStatistics(
                calibration=seen["calibration"].detach(),
                fit=seen["fit"].detach() if "fit" in seen else None,
                held_out=Predictions._unchecked(own.logits.detach(), own.labels, own.weights),
                step=number,
            )
        )

    return Loop(
        f"fit_interleaved, {schedule}",
        step,
        draws,
        parts_of,
        criteria=criteria,
        weight=price,
        after_step=after_step,
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
