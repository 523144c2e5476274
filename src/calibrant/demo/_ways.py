"""The ways to train that the demo sets side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.optim import AdamW

from calibrant import (
    AdaptiveWeight,
    Criterion,
    esd,
    fit,
    fit_interleaved,
    fit_meta,
    mmce,
    rooted,
    soft_avuc,
    soft_label_binned_ece,
    top_label,
)

from ._digits import Fold, batches

# Enough for plain training to fit every image it sees.
STEPS, RATE = 500, 2e-3
# Of the ESD authors' released script, and for the other errors because they are on its scale.
WEIGHT = 4.0
# S-AvUC is a logarithm and no error; its natural price is one.
AVUC_WEIGHT = 1.0

_ESD = top_label(rooted(esd))


@dataclass(frozen=True)
class Way:
    """How a network is trained: a calibration loss and its price, or neither.

    - `weight`: a number; `None` for the price that finds itself.
    """

    calibration: Criterion | None = None
    weight: float | None = WEIGHT
    meta: bool = False


WAYS: dict[str, Way] = {
    "NLL": Way(),
    "NLL + ESD": Way(_ESD),
    "NLL + SB-ECE": Way(top_label(soft_label_binned_ece)),
    "NLL + S-AvUC": Way(soft_avuc, AVUC_WEIGHT),
    "NLL + MMCE": Way(top_label(mmce)),
    "meta-calibration": Way(meta=True),
    "NLL + ESD, adaptive": Way(_ESD, None),
}
"""Every way by name. Plain training fits the slice as well; the others keep it to judge by."""


def train(way: Way, fold: Fold, seed: int, advance: Callable[[], None]) -> nn.Module:
    """A small network, trained on a fold."""
    torch.manual_seed(seed)
    hidden = [nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()]
    model = nn.Sequential(*hidden, nn.Linear(128, 10))
    plain = way.calibration is None and not way.meta
    loader, slice_ = batches(fold.everything if plain else fold.majority), batches(fold.slice_)
    settings: dict[str, Any] = {
        "optimiser": AdamW(model.parameters(), lr=RATE, weight_decay=1e-2),
        "epochs": round(STEPS / len(loader)),
        "progress": False,
        "after_epoch": lambda _: advance(),
    }
    if way.meta:
        fit_meta(model, loader, slice_, **settings)
    elif way.calibration is None:
        fit(model, loader, objective=nn.CrossEntropyLoss(), **settings)
    else:
        weight = AdaptiveWeight() if way.weight is None else way.weight
        fit_interleaved(
            model, loader, slice_, calibration=way.calibration, weight=weight, **settings
        )
    return model
