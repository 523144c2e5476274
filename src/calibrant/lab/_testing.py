"""What a chosen model is judged by once nothing is chosen any more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..recalibration import RECALIBRATORS, TemperatureScaling
from ..training import Epoch
from ._columns import measured
from ._curves import curves
from ._diverged import check_finite
from ._saving import save_predictions
from ._shifts import from_elsewhere, shifted
from ._task import Task
from ._training import judging, predict
from ._trial import Trial
from .people import judged_by_people


def judge_on_test(
    trial: Trial,
    model: nn.Module,
    task: Task,
    validation: tuple[Tensor, Tensor],
    device: torch.device,
    out: Path | None,
) -> dict[str, Any]:
    """Figures of the test split as it is, after each recalibrator, by group and under shift.

    Where people were asked, also with what they said for the truth.
    """
    maps: dict[str, Callable[[Tensor], Tensor]] = {"none": lambda logits: logits}
    told: dict[str, dict[str, Any]] = {"none": {}}
    for name in trial.recalibrators:
        try:
            fitted = RECALIBRATORS[name]().fit(*validation, folds=0)
        except ValueError as wrong:  # such as a perfect validation set
            told[name] = {"error": str(wrong)}
            continue
        maps[name], told[name] = fitted.transform, {}
        if isinstance(fitted, TemperatureScaling):
            told[name]["temperature"] = fitted.temperature_.item()
    samples = task.splits.test()
    logits, labels = predict(model, judging(samples, task.augmentation, device))
    check_finite(logits, "test")
    if out is not None:
        save_predictions(logits, labels, out / "test.npz")
    test = {
        name: told[name] | (measured(maps[name](logits), labels) if name in maps else {})
        for name in told
    }
    drawn = {name: curves(apply(logits), labels) for name, apply in maps.items()}
    found: dict[str, Any] = {"test": test, "curves": drawn}
    if samples.groups:
        found["groups"] = {
            group: {
                str(int(member)): measured(logits[own], labels[own])
                for member in members.unique()
                for own in [members == member]
            }
            for group, members in samples.groups.items()
        }
    if task.people is not None:
        shares = task.people()
        found["people"] = {name: _by_people(apply(logits), shares) for name, apply in maps.items()}
    if task.splits.shifts:
        found["elsewhere"] = from_elsewhere(model, task, maps, device)
    if trial.shift:
        found["shift"] = shifted(trial, model, samples, task, maps, device)
    return found


def _by_people(logits: Tensor, shares: Tensor) -> dict[str, float]:
    """By the names that columns have, whose ECE says how many bins it has."""
    found = judged_by_people(logits.double(), shares, bins=20)
    return {"ece20" if name == "ece" else name: value for name, value in found.items()}


class Snapshots:
    """Weights after every so many epochs, to be judged once nothing is chosen any more."""

    def __init__(self, folder: Path, model: nn.Module, every: int | None) -> None:
        self.folder, self.model, self.every = folder, model, every
        self.numbers: list[int] = []

    def keep(self, epoch: Epoch) -> None:
        """Write the weights of an epoch, if its turn has come."""
        if self.every is not None and (epoch.number + 1) % self.every == 0:
            torch.save(self.model.state_dict(), self.folder / f"{epoch.number}.pt")
            self.numbers.append(epoch.number)

    def judged(self, task: Task, device: torch.device) -> dict[str, Any]:
        """Figures of the training and the test split at each epoch that was kept."""
        if not self.numbers:
            return {}
        splits = {"train": task.splits.train, "test": task.splits.test()}
        batches = {name: judging(own, task.augmentation, device) for name, own in splits.items()}
        epochs = []
        for number in self.numbers:
            path = self.folder / f"{number}.pt"
            self.model.load_state_dict(torch.load(path, weights_only=True))
            figures = {name: measured(*predict(self.model, own)) for name, own in batches.items()}
            epochs.append({"epoch": number, **figures})
        return {"epochs": epochs}
