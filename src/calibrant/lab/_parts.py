"""From the words of a trial to criteria, optimisers, schedules and rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler

from .. import measures
from ..criteria import Criterion, class_wise, rooted, top_label
from ..measures import MEASURES
from ..scores import SCORES
from ..training import AdaptiveWeight, Epoch, Selection, Weight
from ._released import released_weighted_mmce
from ._trial import Settings, Trial

# How a measure of events becomes a criterion of predictions, by the name it has then.
_EVENTS = (
    *("esd", "esd_naive", "mmce", "weighted_mmce", "soft_binned_ece", "soft_label_binned_ece"),
    *("ece", "label_binned_ece", "kde_ece", "smooth_ece", "dca"),
)


def criterion_of(name: str, settings: Settings) -> Criterion:
    """A score or a measure by its name, with some of its arguments set.

    >>> criterion_of("focal", {"gamma": 2.0}).func.__name__
    'focal'

    Arguments of a measure of events go to the measure: `rooted_esd`, `rooted_soft_binned_ece` and
    their like take the root of its value.
    """
    known = SCORES | MEASURES | {"released_weighted_mmce": released_weighted_mmce}
    if name in known and not settings:
        return known[name]
    bare = name.removeprefix("rooted_")
    if bare in _EVENTS:
        measure: Any = partial(getattr(measures, bare), **settings)
        return top_label(rooted(measure) if name != bare else measure)
    if name == "class_wise_soft_binned_ece":
        return class_wise(partial(measures.soft_binned_ece, **settings))
    if name in known:
        return partial(known[name], **settings)
    raise ValueError(
        f"a criterion must be a score or a measure by name; got {name!r}. "
        f"There are {', '.join(known)}."
    )


def optimiser_of(trial: Trial, model: nn.Module) -> Optimizer:
    """AdamW, or SGD with momentum."""
    settings: dict[str, Any] = {"lr": trial.lr, "weight_decay": trial.weight_decay}
    if trial.optimiser == "adamw":
        # One launch for all parameters, where launches are what a step waits for.
        fused = all(each.is_cuda for each in model.parameters())
        return torch.optim.AdamW(model.parameters(), fused=fused, **settings)
    return torch.optim.SGD(model.parameters(), momentum=trial.momentum, **settings)


def schedule_of(trial: Trial, optimiser: Optimizer) -> LRScheduler | None:
    """How the learning rate falls, epoch by epoch."""
    if trial.schedule == "constant":
        return None
    if trial.schedule == "cosine":
        return CosineAnnealingLR(optimiser, trial.epochs)
    drops = [round(share * trial.epochs) for share in trial.steps]
    return LambdaLR(optimiser, lambda epoch: 0.1 ** sum(epoch >= drop for drop in drops))


def weight_of(trial: Trial) -> float | Weight:
    """A number, or a weight that finds it while training."""
    if trial.weight != "adaptive":
        assert trial.weight is not None  # the trial has checked it
        return trial.weight
    return AdaptiveWeight(**trial.weight_settings)


@dataclass(frozen=True)
class LastEpoch(Selection):
    """No choice at all: the weights that training ends with."""

    def __str__(self) -> str:
        return "the last epoch"

    def best(self, epochs: Sequence[Any]) -> Any:
        """The last one."""
        return epochs[-1]

    def possible(self, epochs: Sequence[Any]) -> list[Any]:
        """Nothing before the last."""
        return list(epochs[-1:])


@dataclass(frozen=True)
class MostAccurate(LastEpoch):
    """The first of the most accurate epochs, as the meta-calibration code keeps it."""

    def __str__(self) -> str:
        return "the most accurate epoch"

    def best(self, epochs: Sequence[Any]) -> Any:
        """The first of the most accurate."""
        return max(epochs, key=_accuracy)

    def possible(self, epochs: Sequence[Any]) -> list[Any]:
        """The most accurate so far."""
        return [self.best(epochs)]


def selection_of(trial: Trial) -> Selection:
    """Which epoch a trial keeps."""
    measure = top_label(partial(measures.ece, bins=trial.bins))
    kinds = {"last": LastEpoch, "accurate": MostAccurate, "calibrated": Selection}
    return kinds[trial.keep](measure=measure, margin=trial.margin)


def _accuracy(epoch: Epoch) -> float:
    return epoch.accuracy
