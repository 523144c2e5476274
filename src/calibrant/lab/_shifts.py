"""How a model fares when its inputs are not like those it was trained on."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ._columns import FEW, measured
from ._task import Task
from ._training import judging, predict
from ._trial import Trial
from .corruptions import CORRUPTIONS
from .data import Samples


def shifted(
    trial: Trial,
    model: nn.Module,
    samples: Samples,
    task: Task,
    maps: Mapping[str, Callable[[Tensor], Tensor]],
    device: torch.device,
) -> dict[str, Any]:
    """Figures by corruption, severity and recalibrator."""
    here = samples.to(device)
    found: dict[str, Any] = {}
    for name in CORRUPTIONS:
        for severity in trial.shift:
            worse = task.corrupted(here, name, severity)
            figures = _figures(model, worse, task, maps, device)
            found.setdefault(name, {})[str(severity)] = figures
    return found


def from_elsewhere(
    model: nn.Module,
    task: Task,
    maps: Mapping[str, Callable[[Tensor], Tensor]],
    device: torch.device,
) -> dict[str, Any]:
    """Figures of the sets that come with the data, such as questions that no class answers."""
    return {
        name: _figures(model, read(), task, maps, device)
        for name, read in task.splits.shifts.items()
    }


def _figures(
    model: nn.Module,
    samples: Samples,
    task: Task,
    maps: Mapping[str, Callable[[Tensor], Tensor]],
    device: torch.device,
) -> dict[str, dict[str, float]]:
    logits, labels = predict(model, judging(samples, task.augmentation, device))
    columns: tuple[str, ...] = FEW
    if bool((labels < 0).any()):  # where no class is right, only how sure the model is
        columns, labels = ("mean_confidence", "mean_entropy"), labels.clamp(min=0)
    return {name: measured(apply(logits), labels, columns) for name, apply in maps.items()}
