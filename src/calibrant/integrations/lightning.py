"""Interleaved training in Lightning, and its best epoch by the papers' rule.

Lightning comes as two packages, `lightning.pytorch` and `pytorch_lightning`, whose classes do not
mix. Nothing here imports either before it has seen which one you use.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from torch import Tensor, nn

from ..criteria import Criterion
from ..predictions import Predictions
from ..training._history import Epoch
from ..training._keeper import Keeper
from ..training._parallel import of_all_ranks
from ..training._selection import Selection
from ..training._weight import CalibrationStatistics, WatchingWeight, Weight, as_weight
from ._kept_epochs import judged_epochs

PACKAGES = ("lightning.pytorch", "pytorch_lightning")
_WEIGHT = "calibrant_weight"  # its place in a checkpoint
_PARTS = ("fit", "calibration")  # of a batch


def interleaved_loader(
    owner: object, train_loader: Iterable[Any], calibration_loader: Iterable[Any]
) -> Any:
    """A loader of pairs, for `trainer.fit`: every training batch, beside one of the slice.

    - `owner`: your module or trainer, which says whose `CombinedLoader` to make.
    - `train_loader`, `calibration_loader`: the majority, and the slice kept from it, which is
      cycled through and reshuffled each time round.

    An epoch ends with the longer loader, so let the slice have fewer batches.
    """
    combined = import_module(f"{_package_of(owner)}.utilities.combined_loader").CombinedLoader
    pair = dict(zip(_PARTS, (train_loader, calibration_loader), strict=True))
    return combined(pair, "max_size_cycle")


class Interleaved:
    """Put before your own module, it adds calibration of the held-out batch to its loss.

        class Calibrated(Interleaved, YourModule):
            calibration, weight = top_label(rooted(esd)), 4.0

    Then `trainer.fit(Calibrated(...), interleaved_loader(trainer, train, held_out))`.

    - `calibration`: a criterion, taken over all processes.
    - `weight`: a number, or an object that learns, as in `fit_interleaved`; give such an object
      to each instance. What it has learnt is part of Lightning's checkpoints.

    Your `training_step` gets the training batch and returns a loss, or a dictionary with one.
    Held-out batches are pairs of inputs and labels, or override `predict_held_out`.
    """

    calibration: Any
    weight: Any

    def __init_subclass__(cls, **settings: Any) -> None:
        """The module it adds to must come after it, or its own step would never be taken."""
        super().__init_subclass__(**settings)
        before = cls.__mro__[: cls.__mro__.index(Interleaved)]
        for kind in before:
            if not issubclass(kind, Interleaved) and "training_step" in vars(kind):
                raise TypeError(
                    f"Interleaved must stand before the module it adds to; got {cls.__name__} "
                    f"with {kind.__name__} before it. Write "
                    f"class {cls.__name__}(Interleaved, {kind.__name__})."
                )

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """The loss of your module on its batch, and the weighted calibration of the other."""
        module: Any = self
        self._check(batch)
        output = super().training_step(batch["fit"], batch_idx)  # type: ignore[misc]
        loss: Tensor = output["loss"] if isinstance(output, dict) else output
        logits, labels = self.predict_held_out(batch["calibration"])
        predictions = Predictions(logits, labels)
        # A plain function found on the class has become a method; here it is a criterion.
        criterion: Criterion = getattr(self.calibration, "__func__", self.calibration)
        value = of_all_ranks(criterion, True)(predictions)
        price = as_weight(self.weight)
        if isinstance(price, WatchingWeight):
            price.watch(value, predictions)
        total = loss + price.value * value
        price.update(
            CalibrationStatistics(
                calibration=value.detach(),
                fit=loss.detach(),
                held_out=Predictions(logits.detach(), labels),
                step=module.global_step,
            )
        )
        module.log("calibration", value.detach())
        return output | {"loss": total} if isinstance(output, dict) else total

    def _check(self, batch: Any) -> None:
        """What a step needs is there."""
        for name, example in (("calibration", "top_label(rooted(esd))"), ("weight", "4.0")):
            if not hasattr(self, name):
                raise TypeError(
                    f"{type(self).__name__} must have a calibration and a weight; got no {name}. "
                    f"Write {name} = {example} in the class."
                )
        if not (isinstance(batch, dict) and set(batch) >= set(_PARTS)):
            raise TypeError(
                f"Interleaved must be given batches with {' and '.join(_PARTS)}; got "
                f"{type(batch).__name__}. Pass trainer.fit the loader "
                "interleaved_loader(trainer, train_loader, calibration_loader)."
            )

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """What the weight has learnt goes with the rest."""
        super().on_save_checkpoint(checkpoint)  # type: ignore[misc]
        if isinstance(self.weight, Weight):
            checkpoint[_WEIGHT] = self.weight.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on with the weight as it was."""
        super().on_load_checkpoint(checkpoint)  # type: ignore[misc]
        if isinstance(self.weight, Weight) and _WEIGHT in checkpoint:
            self.weight.load_state_dict(checkpoint[_WEIGHT])

    def predict_held_out(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Logits and labels of a held-out batch."""
        module: Any = self
        inputs, labels = batch
        return module(inputs), labels


def best_epoch(
    owner: object,
    selection: Selection | None = None,
    *,
    accuracy: str = "val_accuracy",
    error: str = "val_error",
) -> Any:
    """A callback that leaves the model with the weights of the epoch the rule chooses.

    - `owner`: your module or trainer, which says whose callback to make.
    - `selection`: the rule; its `measure` is not used, since your module measures.
    - `accuracy`, `error`: what your validation step logs them as.
    """
    base = import_module(_package_of(owner)).Callback
    kind = type("BestEpoch", (_BestEpoch, base), {})
    return kind(selection or Selection(), accuracy, error)


class _BestEpoch:
    def __init__(self, selection: Selection, accuracy: str, error: str) -> None:
        self.keeper, self.epochs = Keeper(selection), list[Epoch]()
        self.names = (accuracy, error)

    def on_validation_end(self, trainer: Any, pl_module: nn.Module) -> None:
        if trainer.sanity_checking:
            return
        missing = [name for name in self.names if name not in trainer.callback_metrics]
        if missing:
            raise ValueError(
                f"the validation step must log {' and '.join(self.names)}; "
                f"got no {missing[0]}. Name what it logs: best_epoch(..., accuracy=..., error=...)."
            )
        right, wrong = (float(trainer.callback_metrics[name]) for name in self.names)
        number = len(self.epochs)
        self.epochs.append(Epoch(number, float("nan"), accuracy=right, error=wrong))
        self.keeper.keep(self.epochs, pl_module)

    def on_train_end(self, trainer: Any, pl_module: nn.Module) -> None:
        if self.epochs:
            self.best = self.keeper.restore_best(self.epochs, pl_module)

    def state_dict(self) -> dict[str, Any]:
        judged = [(epoch.accuracy, epoch.error) for epoch in self.epochs]
        return {"epochs": judged, "kept": self.keeper.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.epochs = judged_epochs(state["epochs"])
        self.keeper.kept = state["kept"]


def _package_of(owner: object) -> str:
    for kind in type(owner).__mro__:
        for package in PACKAGES:
            if f"{kind.__module__}.".startswith(f"{package}."):
                return package
    raise TypeError(
        "owner must be a LightningModule or a Trainer of lightning.pytorch or pytorch_lightning; "
        f"got {type(owner).__name__}."
    )
