"""Interleaved training in Lightning, and its best epoch by the papers' rule."""

from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from torch import Tensor

from ..criteria import Criterion
from ..predictions import Predictions
from ..training._batch_norm import Buffers
from ..training._parallel import of_all_ranks
from ..training._sound_loss import check_on_graph
from ..training._weight import CalibrationStatistics, WatchingWeight, Weight, as_weight
from ._finite import finite_numbers
from ._lightning_best_epoch import best_epoch as best_epoch
from ._lightning_order import check_order
from ._lightning_package import package_of

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
    combined = import_module(f"{package_of(owner)}.utilities.combined_loader").CombinedLoader
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

    Your `training_step` gets the training batch and returns a loss, a dictionary with one, or
    `None` to skip the step. Held-out batches are pairs of inputs and labels, or override
    `predict_held_out`. A loss that is not finite stops the run before its backward pass.
    """

    calibration: Any
    weight: Any

    def __init_subclass__(cls, **settings: Any) -> None:
        """What can be told of a class before it is made."""
        super().__init_subclass__(**settings)
        check_order(cls, Interleaved)
        if isinstance(vars(cls).get("weight"), Weight):
            kind = type(vars(cls)["weight"]).__name__
            raise TypeError(
                "a weight that learns must belong to one module; got one for all modules of "
                f"{cls.__name__}. Make it in __init__: self.weight = {kind}()."
            )

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """The loss of your module on its batch, and the weighted calibration of the other."""
        module: Any = self
        self._check(batch)
        buffers = Buffers(module)
        step = super().training_step  # type: ignore[misc]
        output = step(batch["fit"], *([batch_idx] if _takes_index(step) else []))
        if output is None:  # which tells Lightning to skip the batch
            return None
        loss: Tensor = output["loss"] if isinstance(output, dict) else output
        logits, labels = self.predict_held_out(batch["calibration"])
        predictions = Predictions(logits, labels)
        # A plain function found on the class has become a method; here it is a criterion.
        criterion: Criterion = getattr(self.calibration, "__func__", self.calibration)
        value = of_all_ranks(criterion, True)(predictions)
        check_on_graph(value)
        try:
            finite_numbers({"fit": loss, "calibration": value}, module.global_step)
        except FloatingPointError:
            buffers.restore()
            raise
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
        module: Any = self
        if not module.automatic_optimization:
            raise TypeError(
                f"{type(self).__name__} must leave the backward pass to Lightning, for calibration "
                "joins the loss that training_step returns; got automatic_optimization=False. "
                "There add weight * calibration to the loss in your own step."
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


def _takes_index(step: Callable[..., Any]) -> bool:
    """Whether a step asks for `batch_idx`, which Lightning lets it leave out."""
    kinds = [each.kind for each in signature(step).parameters.values()]
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return Parameter.VAR_POSITIONAL in kinds or sum(kind in positional for kind in kinds) > 1
