"""Train the model of a trial by the package's own procedures."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, nn

from ..objectives import Penalised
from ..predictions import Predictions
from ..training import Epoch, History, WeightL2, fit, fit_interleaved, fit_meta
from ._boosted import fit_boosting
from ._by_group import ByGroup
from ._parts import criterion_of, optimiser_of, schedule_of, selection_of, weight_of
from ._trial import Trial
from .augment import Augmentation, Batches
from .data import Samples, Splits
from .models import Boosting

# Validation and test batches: larger than those of training, since there is no graph to keep.
JUDGED = 2048


def loaders(
    trial: Trial, splits: Splits[Samples], augmentation: Augmentation | None, device: torch.device
) -> tuple[Batches, Batches | None, Batches]:
    """Batches to fit, batches of the slice if the trial trains on one, and to choose epochs by.

    The order and the augmentation are the seed's, whatever else the trial is.
    """
    majority, held_out = splits.train, splits.train
    if trial.held_out:
        majority, held_out = splits.hold_out(trial.held_out)
    still: Any = None if augmentation is None else Still(augmentation)
    moved = augmentation if trial.augment else still
    to_fit = Batches(majority, trial.batch, moved, drawn(trial.seed, 0), device)
    to_judge = None
    if trial.procedure in ("interleaved", "two_phase", "meta"):
        # No augmentation of meta batches, as in that paper's code.
        how = still if trial.procedure == "meta" else moved
        groups = trial.calibration_groups
        rng = drawn(trial.seed, 1)
        to_judge = Batches(held_out, trial.batch, how, rng, device, groups=groups)
    return to_fit, to_judge, judging(splits.validation, augmentation, device)


class Still:
    """An augmentation that draws nothing: images are only resized and normalised."""

    is_random = False

    def __init__(self, augmentation: Augmentation) -> None:
        self.augmentation = augmentation

    def __call__(self, images: torch.Tensor, draws: torch.Tensor | None = None) -> torch.Tensor:
        """The images as a network wants them."""
        return self.augmentation(images)


def judging(samples: Samples, augmentation: Augmentation | None, device: torch.device) -> Batches:
    """Batches in the order they are stored, not moved about."""
    return Batches(samples, JUDGED, augmentation, None, device)


def drawn(seed: int, stream: int) -> Generator:
    """A generator for one of the streams of random numbers of a seed."""
    return Generator().manual_seed(2 * seed + stream)


def train(
    trial: Trial,
    model: nn.Module,
    to_fit: Batches,
    to_judge: Batches | None,
    validation: Batches,
    after_epoch: Callable[[Epoch], object] | None = None,
    progress: bool | None = False,
) -> History:
    """Run the procedure of the trial; the model ends with the weights it keeps."""
    if isinstance(model, Boosting):
        return fit_boosting(trial, model, to_fit, validation)
    optimiser = optimiser_of(trial, model)
    settings: dict[str, Any] = {
        "optimiser": optimiser,
        "epochs": trial.epochs,
        "lr_schedule": schedule_of(trial, optimiser),
        "validation_loader": validation,
        "selection": selection_of(trial),
        "autocast": torch.bfloat16 if trial.precision == "bfloat16" else None,
        "clip": trial.clip,
        "progress": progress,
        "after_epoch": after_epoch,
    }
    fitted = criterion_of(trial.fit, trial.fit_settings)
    if trial.calibration is None:
        return fit(model, to_fit, objective=lambda z, y: fitted(Predictions(z, y)), **settings)
    calibration = criterion_of(trial.calibration, trial.calibration_settings)
    if trial.procedure == "joint":
        assert isinstance(trial.weight, float)
        return fit(
            model, to_fit, objective=Penalised(fitted, calibration, trial.weight), **settings
        )
    assert to_judge is not None
    if trial.procedure == "meta":
        return fit_meta(
            model,
            to_fit,
            to_judge,
            fit=fitted,
            meta_objective=calibration,
            meta_knowledge=WeightL2(**trial.knowledge_settings),
            leak=trial.leak,
            **settings,
        )
    if trial.calibration_groups is not None:
        calibration = apart = ByGroup(calibration)
        settings["forward"] = apart.forward
    return fit_interleaved(
        model,
        to_fit,
        to_judge,
        fit=fitted,
        calibration=calibration,
        weight=weight_of(trial),
        schedule="every_step" if trial.procedure == "interleaved" else "two_phase",
        **settings,
    )


@torch.no_grad()
def predict(model: nn.Module, batches: Batches) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits in single precision, and labels, in main memory.

    Figures of a few thousand rows are sooner had there than by many small kernels.
    """
    was = model.training
    model.eval()
    try:
        parts = [(model(inputs).float(), labels) for inputs, labels, *_ in batches]
    finally:
        model.train(was)
    logits, labels = (torch.cat(column).cpu() for column in zip(*parts, strict=True))
    return logits, labels
