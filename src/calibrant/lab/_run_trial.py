"""Run a trial: train, write down the choice, and only then test."""

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from ..training import Epoch, History, MetaHistory
from ._circumstances import circumstances
from ._columns import measured
from ._curves import histogram
from ._diverged import check_finite
from ._saving import save_model
from ._store import Receipt, Store, check_receipt
from ._task import Task, open_task
from ._testing import Snapshots, judge_on_test
from ._training import loaders, predict, train
from ._trial import Trial
from .data import Samples
from .models import Boosting

Sealed = TypeVar("Sealed", Samples, Tensor)


def run_trial(
    trial: Trial,
    folder: str | os.PathLike[str] | None,
    store: Store,
    *,
    device: torch.device | str = "cpu",
    task: Task | None = None,
    after_epoch: Callable[[Epoch], object] | None = None,
    progress: bool | None = False,
    out: Path | None = None,
) -> dict[str, Any]:
    """Train, choose, write the choice, test; append the row to the store and return it.

    - `folder`: where the data sets are. `device`: to train on.
    - `task`: the data set, where it is not to be read from the folder.
    - `out`: a folder for the weights that were kept, `model.safetensors`, where the model has
      weights, and for the test predictions, `test.npz`.

    Which samples the seed draws is kept in the store: data that have changed since then are
    refused. The test split is sealed until the choice of an epoch is in the store: reading it
    earlier raises `PermissionError`. A trial judged on validation data never opens it.

    A run that diverges is a result as well: its row has an `error` and no figures.
    """
    run = Run(trial, task or open_task(trial, folder, store.splits), store, device)
    with tempfile.TemporaryDirectory() as kept:
        snapshots = Snapshots(Path(kept), run.model, trial.history_every)

        def told(epoch: Epoch) -> None:
            snapshots.keep(epoch)
            if after_epoch is not None:
                after_epoch(epoch)

        try:
            history = train(trial, run.model, *run.batches, after_epoch=told, progress=progress)
            figures = run.finish(history, out)
        except FloatingPointError as wrong:
            return run.record({"error": str(wrong)})
        if trial.judged_on == "test":
            figures |= snapshots.judged(run.task, run.device)
        return run.record(figures)


class Run:
    """A trial under way: its data with the test split sealed, its model, its batches."""

    def __init__(self, trial: Trial, task: Task, store: Store, device: torch.device | str) -> None:
        self.trial, self.store, self.device = trial, store, torch.device(device)
        self.began = time.monotonic()
        self.receipt: Receipt | None = None
        task = task.flipped(trial.flip)
        self.task = replace(
            task,
            splits=replace(task.splits, test=self._open(task.splits.test)),
            people=None if task.people is None else self._open(task.people),
        )
        torch.manual_seed(trial.seed)
        self.model = task.build(trial, self.task.splits).to(self.device)
        if self.device.type == "cuda" and task.augmentation is not None:
            torch.backends.cudnn.benchmark = True  # the same few shapes at every step
            to: Any = self.model.to  # whose stub does not know this argument
            to(memory_format=torch.channels_last)
        self.batches = loaders(trial, self.task.splits, task.augmentation, self.device)

    def _open(self, read: Callable[[], Sealed]) -> Callable[[], Sealed]:
        def opened() -> Sealed:
            check_receipt(self.receipt)
            return read()

        return opened

    def finish(self, history: History, out: Path | None = None) -> dict[str, Any]:
        """Write down the choice, and judge the model that was kept.

        Raises `FloatingPointError` where its logits are not finite: no loss was computed after the
        last step that would have told.
        """
        assert history.best is not None
        choice = {"epoch": history.best.number, "rule": history.rule}
        figures: dict[str, Any] = {
            "choice": choice,
            "training_seconds": round(time.monotonic() - self.began, 3),
            "history": [asdict(epoch) for epoch in history.epochs],
        }
        validation = predict(self.model, self.batches[-1])
        check_finite(validation[0], "validation")
        figures["validation"] = {"none": measured(*validation)}
        if isinstance(history, MetaHistory) and history.regulariser is not None:
            figures["coefficients"] = histogram(history.regulariser.coefficients.values())
        # From here on nothing is chosen any more.
        self.receipt = self.store.choose(self.trial.identity, choice)
        if out is not None and not isinstance(self.model, Boosting):
            save_model(self.model, out / "model.safetensors")
        if self.trial.judged_on == "test":
            figures |= judge_on_test(
                self.trial, self.model, self.task, validation, self.device, out
            )
        return figures

    def record(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """Append the row to the store."""
        row = {
            "identity": self.trial.identity,
            "trial": self.trial.to_dict(),
            **figures,
            "seconds": round(time.monotonic() - self.began, 3),
            **circumstances(self.device),
        }
        told: dict[str, Any] = _plain(row)
        self.store.append(told)
        return told


def _plain(x: Any) -> Any:
    """What is not a finite number becomes null: JSON has no word for it."""
    if isinstance(x, dict):
        return {str(name): _plain(value) for name, value in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(value) for value in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x
