"""Train a network while its regulariser learns to keep it calibrated."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .._checks import check_positive
from ..criteria import Criterion
from ..measures import dece
from ..objectives import check_criterion
from ..scores import nll
from ._batch_norm import BatchNorm, check_batch_norm, frozen_batch_norm
from ._batches import Forward, as_predictions, forward_pair, predicted, to_device
from ._history import Epoch
from ._interleave import Interleaved
from ._loaders import check_loader
from ._lr_schedule import Every
from ._meta_classifier import check_gives_logits, features_of, find_classifier, watched
from ._meta_knowledge import MetaKnowledge
from ._meta_loop import MetaHistory, MetaLoop
from ._meta_regulariser import ADAM, MetaOptimiser, MetaRegulariser, watched_value
from ._parallel import is_parallel, is_sharded, of_all_ranks
from ._preconditions import check_model
from ._selection import Selection
from ._step import Part, Step
from ._validation import make_validation
from ._weight import FixedWeight


def fit_meta(
    model: nn.Module,
    train_loader: Iterable[Any],
    meta_loader: Iterable[Any],
    *,
    optimiser: Optimizer,
    epochs: int,
    classifier: str | nn.Module | None = None,
    fit: Criterion = nll,
    meta_objective: Criterion | None = dece,
    meta_knowledge: MetaKnowledge | None = None,
    meta_optimiser: MetaOptimiser = ADAM,
    inner_lr: float | None = None,
    leak: bool = False,
    batch_norm: BatchNorm = "update",
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
) -> MetaHistory:
    r"""Meta-calibration: learn the regulariser of the classifier by held-out calibration.

    $$\omega^* = \arg\min_\omega \mathrm{objective}(\phi^*, \theta^*; D_\text{meta}), \qquad
      \phi^*, \theta^* = \arg\min_{\phi, \theta} \mathrm{fit}(\phi, \theta; D_\text{train})
      + R_\omega(\phi)$$

    Online: in each step the coefficients $\omega$ are moved by what one simulated step of the
    classifier $\phi$ does to a meta batch (`MetaRegulariser`); then the whole network takes its
    real step on the training batch, regularised by them.

    - `train_loader`, `meta_loader`: what is fitted, and a slice kept from it
      (`split_for_calibration`), cycled through in ever new order. The paper keeps a tenth.
    - `classifier`: the layer that gives the logits, by name or itself; by default the last
      `Linear`.
    - `fit`: what training descends. The released code sums over the batch instead of averaging:
      its coefficients are those of `nll` times the batch size.
    - `meta_objective`: what the coefficients descend: DECE in the paper, or any other criterion.
      `None` learns nothing. `META_SETTINGS` has the settings of the paper's ablation.
    - `meta_knowledge`: what is learnt: `WeightL2()`, the default; `UnitL2()`, `WeightDecay()` or
      `ClassSmoothing()`.
    - `meta_optimiser`: makes the optimiser of the coefficients.
    - `inner_lr`: of the simulated step; by default what the classifier has in `optimiser` then.
    - `leak`: in the released code the gradient of the meta-objective also reaches the network
      itself, which is thereby trained on it, contrary to the paper. `True` does that.
    - `batch_norm`: as in `fit_interleaved`, for the meta batch.

    All other arguments are those of `fit`. In the history `calibration` is the meta-objective
    after the simulated step; its weight is 0, since the network does not descend it, and 1 with
    `leak`. What was learnt is in `history.regulariser.coefficients`.

    A step costs one forward pass of the meta batch more than a plain one, and with `leak` its
    backward pass as well; everything else concerns the classifier layer alone. Under
    `DistributedDataParallel` all criteria are taken of the batches of all processes, as by
    `across_ranks`, and every process learns the same coefficients; not with `leak`, and not for a
    model in shards.

    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> _ = torch.manual_seed(0)
    >>> inputs = torch.randn(256, 2)
    >>> data = TensorDataset(inputs, (inputs.sum(dim=1) + torch.randn(256) > 0).long())
    >>> majority, held_out = torch.utils.data.random_split(data, [192, 64])
    >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> history = fit_meta(
    ...     model,
    ...     DataLoader(majority, batch_size=64, shuffle=True),
    ...     DataLoader(held_out, batch_size=64, shuffle=True),
    ...     optimiser=torch.optim.SGD(model.parameters(), lr=0.5),
    ...     epochs=2,
    ... )
    >>> print(history)
    epoch 0, fit 0.7200, calibration 0.1258 watched, not descended
    epoch 1, fit 0.5862, calibration 0.1745 watched, not descended
    kept epoch 1: the last epoch

    Bohdal, Yang & Hospedales, "Meta-Calibration: Meta-Learning of Model Calibration Using
    Differentiable Expected Calibration Error", ICML workshop 2021, algorithm 1.
    """
    criteria = {"fit": check_criterion("fit", fit)}
    if meta_objective is not None:
        criteria["meta_objective"] = check_criterion("meta_objective", meta_objective)
    if inner_lr is not None:
        check_positive(inner_lr=inner_lr)
    check_batch_norm(batch_norm)
    check_model(model, optimiser)
    together = is_parallel(model)
    _check_processes(model, leak)
    name, layer = find_classifier(model, classifier)
    rate = _rate_of(layer, name, optimiser) if inner_lr is None else lambda: inner_lr
    learns = meta_objective is not None
    meta = MetaRegulariser(
        layer,
        meta_knowledge,
        fit=fit,
        objective=dece if meta_objective is None else meta_objective,
        optimiser=meta_optimiser,
        together=together,
        class_dim=class_dim,
        ignore_index=ignore_index,
    )
    check_loader("train_loader", train_loader, together=together, ignore_index=ignore_index)
    check_loader("meta_loader", meta_loader, together=together, ignore_index=ignore_index)
    fit = of_all_ranks(fit, together)
    step = Step(model, optimiser, autocast=autocast, clip=clip, taught=[meta])
    unseen = [True]  # until the first batch has shown that the classifier gives the logits

    def read(batch: Any) -> tuple[Tensor, Tensor, Tensor]:
        with watched(layer) as calls:
            logits, labels = predicted(forward, model, to_device(batch, step.device))
        features = features_of(calls, name)
        if unseen:
            check_gives_logits(calls, logits, name)
            unseen.clear()
        return logits, features, labels

    def read_meta(batch: Any) -> tuple[Tensor, Tensor]:
        frozen = frozen_batch_norm(model) if batch_norm == "frozen" else nullcontext()
        with frozen, torch.set_grad_enabled(leak):
            _, features, labels = read(batch)
        # Older torch would use weights cast here, off the graph, where they must be on it.
        torch.clear_autocast_cache()
        return features, labels

    def part(batch: Any, held_out: Any) -> tuple[Tensor, dict[str, Tensor]]:
        told: dict[str, Tensor] = {}
        judged = read_meta(held_out) if learns else None
        logits, features, labels = read(batch)
        leaked = None
        if judged is not None:
            lr = rate()
            if leak:
                leaked = meta.meta_loss((features, labels), judged, lr=lr)
            value, gradients = meta.gradient((features, labels), judged, lr=lr)
            meta.descend(gradients)
            told["calibration"] = watched_value(value, gradients)
        predictions = as_predictions(logits, labels, class_dim, ignore_index)
        told["fit"] = fit(predictions)
        loss = told["fit"] + meta.penalty(predictions)
        return loss if leaked is None else loss + leaked, told

    def parts_of(batch: Any, held_out: Any) -> Sequence[Part]:
        return [lambda: part(batch, held_out)]

    return MetaLoop(
        f"fit_meta of {name!r} by {meta.knowledge}",
        step,
        Interleaved(train_loader, meta_loader if learns else None),
        parts_of,
        meta=meta,
        criteria=criteria,
        weight=FixedWeight(float(leak)) if learns else None,
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


def _check_processes(model: nn.Module, leak: bool) -> None:
    if is_sharded(model):
        raise ValueError(
            "model must hold its classifier whole, since a step of it is simulated; got one in "
            "shards. Train it with DistributedDataParallel."
        )
    if leak and is_parallel(model):
        raise ValueError(
            "leak must be False when several processes train the model; got True. It is there to "
            "reproduce the released code, which runs in one."
        )


def _rate_of(layer: nn.Module, name: str, optimiser: Optimizer) -> Callable[[], float | Tensor]:
    """The learning rate of the classifier, read anew at each step."""
    own = {id(each) for each in layer.parameters()}
    for number, group in enumerate(optimiser.param_groups):
        if any(id(each) in own for each in group["params"]):
            # By number, since an optimiser that goes on from a checkpoint has other groups.
            return partial(_rate, optimiser, number)
    raise ValueError(
        f"optimiser must hold the parameters of the classifier, {name!r}; got none of them. Pass "
        "them to it, or name the layer that gives the logits."
    )


def _rate(optimiser: Optimizer, group: int) -> float | Tensor:
    rate: float | Tensor = optimiser.param_groups[group]["lr"]
    return rate
