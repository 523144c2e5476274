"""What a run is told from others by, when it is to go on from a checkpoint."""

import re
from collections.abc import Mapping
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

from ..criteria import name_of
from ..objectives import Penalised
from ._adaptive_weight import AdaptiveWeight
from ._lr_schedule import LearningRate
from ._step import Step
from ._validation import Validation
from ._weight import FixedWeight, Weight

# Where an object without a name of its own happens to be: somewhere else in every process.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def told_of(
    procedure: str,
    step: Step,
    criteria: Mapping[str, Any],
    weight: Weight | None,
    lr: LearningRate,
    validation: Validation | None,
) -> dict[str, Any]:
    """What a run must share with the one it goes on from, or its results belong to neither."""
    groups = step.optimiser.param_groups
    return {
        "procedure": procedure,
        **{name: called(criterion) for name, criterion in criteria.items()},
        "optimiser": [type(step.optimiser).__name__, [len(group["params"]) for group in groups]],
        "processes": dist.get_world_size() if step.together else 1,
        "weight": None if weight is None else kind_of(weight),
        "autocast": None if step.autocast is None else str(step.autocast),
        "lr_schedule": lr.kind,
        "validation_loader": None if validation is None else "one",
        "selection": None if validation is None else _ADDRESS.sub("", str(validation.selection)),
    }


def called(criterion: Any) -> str:
    """A criterion or an objective by name, the same in every process and at every step.

    Functions of one name, lambdas among them, and modules of one class are not told apart.

    >>> from calibrant import ece, nll, top_label
    >>> called(Penalised(nll, top_label(ece), weight=0.5))
    'Penalised(nll, TopLabel(ece), 0.5)'
    >>> called(nn.CrossEntropyLoss())
    'CrossEntropyLoss'
    """
    if isinstance(criterion, Penalised):
        parts = (called(criterion.fit), called(criterion.calibration), _price(criterion.weight))
        return f"{type(criterion).__name__}({', '.join(parts)})"
    if isinstance(criterion, nn.Module):
        return type(criterion).__name__  # what it prints may be what it has learnt
    return _ADDRESS.sub("", name_of(criterion))


def _price(weight: float | Tensor) -> str:
    learnt = isinstance(weight, Tensor) and weight.requires_grad
    return "a weight that is learnt" if learnt else str(float(weight))


def kind_of(weight: Weight) -> float | str:
    """A weight: its number, the settings and the rule of an adaptive one, or its class."""
    if isinstance(weight, FixedWeight):
        return weight.value
    if isinstance(weight, AdaptiveWeight):
        return _ADDRESS.sub("", f"{weight!r}, rule {weight.rule}")
    return type(weight).__name__
