"""Calibration in transformers' Trainer: for classifiers and, by token, for language models."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ..criteria import Criterion
from ..training._accumulation import Share, accumulate, logit_gradients
from ..training._checkpoint import Checkpoint
from ..training._parallel import (
    is_parallel,
    objective_of_all_ranks,
    of_all_ranks,
    unsynchronised,
)
from ..training._random import restore_random_state
from ..training._stream import Stream
from ..training._weight import CalibrationStatistics, WatchingWeight, Weight, as_weight
from ._loss_function import Objective, logits_of, nothing, predictions_of
from ._loss_function import calibration_metrics as calibration_metrics
from ._loss_function import loss_function as loss_function
from ._loss_function import rows as rows

try:
    from transformers import Trainer

    from ._best_epoch import BestEpoch as BestEpoch
except ImportError as missing:
    raise ImportError(
        "the Trainer adapter needs transformers: pip install 'calibrant[transformers]'"
    ) from missing

# Beside Trainer's own files of a checkpoint; of the stream, one for each process.
_WEIGHT, _STREAM = "calibration_weight.pt", "calibration_stream_{}.pt"


class CalibratedTrainer(Trainer):
    """A Trainer that pays for miscalibration, on its training data or on a slice kept from it.

    Interleaved, as the papers train: before each optimiser step the weighted calibration of a
    batch of `calibration_dataset` joins the gradient. With gradient accumulation that batch is
    as large as the training batch, and its gradient exact.

    - `calibration`, `weight`, `calibration_dataset`: as in `fit_interleaved`; the data are
      shuffled and collated like the training data.

    The fit is the model's own loss or, in its place:

    - `objective`: a loss called `(logits, labels)` with one row per prediction, such as
      `Penalised`. With gradient accumulation it is that of all micro-batches together, in the
      memory of one, for one more forward pass; see `accumulate`.
    - `causal`: for causal language models, whose logits predict the next token.

    Under gradient accumulation Trainer 5.22 sums the own loss of some classifiers, such as BERT's,
    over micro-batches where it should average: `objective=torch.nn.functional.cross_entropy`
    does not depend on it.

    Labels of -100 are left out. All other arguments are Trainer's. Trainer's checkpoints also hold
    what a weight has learnt and the place in the calibration data, so a run that was interrupted
    goes on as if it had not been. To build on another trainer, name both:
    `class Mine(CalibratedTrainer, SFTTrainer)`.
    """

    def __init__(
        self,
        *args: Any,
        objective: Objective | None = None,
        calibration: Criterion | None = None,
        weight: float | Weight = 1.0,
        calibration_dataset: Any = None,
        causal: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        if (calibration is None) != (calibration_dataset is None):
            raise ValueError(
                "calibration and calibration_dataset must come together, what to judge and on "
                "what; got one of them. For one loss on the training data use objective."
            )
        self.objective: Objective | None = objective
        self.calibration: Criterion | None = calibration
        self.weight, self.calibration_dataset = as_weight(weight), calibration_dataset
        if isinstance(weight, WatchingWeight) and self.args.gradient_accumulation_steps > 1:
            raise ValueError(
                f"{type(weight).__name__} must see the held-out logits at once; got "
                f"gradient_accumulation_steps={self.args.gradient_accumulation_steps}, under which "
                "they come in parts. Take one step per batch, or a weight that is a number."
            )
        self.causal = causal
        self._batches: list[Any] = []
        self._shares: list[Share] = []
        self._stream: Stream | None = None
        self._held_out: Iterator[Any] = iter(())
        self._seen: dict[str, float] = {}
        if objective is not None:
            self.loss_is_scaled_for_ga = True  # it is that of the whole batch

    def get_batch_samples(self, *args: Any, **settings: Any) -> Any:
        """The micro-batches of a step, remembered where the objective needs them all."""
        batches, items = super().get_batch_samples(*args, **settings)
        if self.objective is not None:
            self._batches = list(batches)
        return batches, items

    def _go_through_all(self, model: nn.Module, objective: Objective) -> None:
        """The first pass over the micro-batches of a step, if there are several.

        Not before the step begins: a resumed run restores its generators once it has its batches.
        """
        batches, self._batches = self._batches, []
        if len(batches) > 1:
            loss, self._shares = logit_gradients(
                model.train(), batches, objective, forward=self._forward
            )
            self._share_of_loss = loss / len(batches)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Any,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The objective's loss, or that of Trainer where there is none."""
        if self.objective is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        share = self._shares.pop(0) if self._shares and model.training else None
        if share is not None:
            restore_random_state(share.random)
        outputs, labels = self._outputs(model, inputs)
        logits, labels = rows(logits_of(outputs), labels, causal=self.causal)
        if share is None:
            together = is_parallel(model)
            judged = objective_of_all_ranks(self.objective, together)
            # Beside other processes it must ask them, whatever it has itself.
            loss = judged(logits, labels) if len(labels) or together else nothing(logits)
        else:
            sent = (logits * share.gradient).sum()  # has the gradient of the whole, by these logits
            loss = sent - sent.detach() + self._share_of_loss
        return (loss, outputs) if return_outputs else loss

    def training_step(self, model: nn.Module, *args: Any, **settings: Any) -> Tensor:
        """Trainer's step and, with the last micro-batch, the calibration of a held-out batch."""
        if self.objective is not None:
            self._go_through_all(model, self.objective)
        if self.calibration is None or not self.accelerator.sync_gradients:
            loss: Tensor = super().training_step(model, *args, **settings)
            return loss
        with unsynchronised(model):
            loss = super().training_step(model, *args, **settings)
        self._calibrate(model, of_all_ranks(self.calibration, is_parallel(model)), loss)
        return loss

    def _calibrate(self, model: nn.Module, calibration: Criterion, fit: Tensor) -> None:
        if self._stream is None:
            self._begin_stream()
        steps = self.args.gradient_accumulation_steps
        batches = [self._prepare_inputs(next(self._held_out)) for _ in range(steps)]
        seen: dict[str, Any] = {}

        def priced(logits: Tensor, labels: Tensor) -> Tensor:
            seen["held_out"] = predictions_of(logits, labels)
            seen["calibration"] = calibration(seen["held_out"])
            if isinstance(self.weight, WatchingWeight):
                self.weight.watch(seen["calibration"], seen["held_out"])
            loss: Tensor = self.weight.value * seen["calibration"]
            return loss

        if steps == 1:
            with self.compute_loss_context_manager():
                loss = priced(*self._forward(model, batches[0]))
            self.accelerator.backward(loss)
        else:
            scaler = self.accelerator.scaler
            accumulate(model, batches, priced, forward=self._forward, scaler=scaler)
        own, value = seen["held_out"], seen["calibration"].detach()
        self.weight.update(
            CalibrationStatistics(
                calibration=value,
                fit=fit.detach(),
                held_out=predictions_of(own.logits.detach(), own.labels),
                step=self.state.global_step,
            )
        )
        self._seen = {"calibration": float(value), "weight": self.weight.value}

    def _begin_stream(self, place: dict[str, Any] | None = None) -> None:
        """Read the calibration data from the beginning, or go on at a place in them."""
        loader = self._loader_of(self.calibration_dataset)
        self._stream = Stream(loader)
        if place is not None:
            # Accelerate's loaders count their passes themselves, and shuffle by the count.
            if hasattr(loader, "set_epoch"):
                loader.set_epoch(place["passes"] - 1)
            self._stream.load_state_dict(place)
        self._held_out = self._stream.endless()

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        folder = Path(output_dir)
        folder.mkdir(parents=True, exist_ok=True)  # the first process may not have got there yet
        learnt = self.weight.state_dict()
        if learnt and self.args.should_save:
            Checkpoint(folder / _WEIGHT).write({"weight": learnt})
        if self._stream is not None:
            place = {"held_out": self._stream.state_dict()}
            Checkpoint(folder / _STREAM.format(self.args.process_index)).write(place)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is None:
            return
        folder = Path(checkpoint)
        learnt = Checkpoint(folder / _WEIGHT).read()
        if learnt is not None:
            self.weight.load_state_dict(learnt["weight"])
        self._stream = None
        place = Checkpoint(folder / _STREAM.format(self.args.process_index)).read()
        if place is not None and self.calibration is not None:
            self._begin_stream(place["held_out"])

    def log(self, logs: dict[str, float], *args: Any, **settings: Any) -> None:
        """Trainer's log, with the calibration loss and its weight beside the loss."""
        super().log(logs | self._seen if "loss" in logs else logs, *args, **settings)

    def _forward(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        outputs, labels = self._outputs(model, self._prepare_inputs(batch))
        return rows(logits_of(outputs), labels, causal=self.causal)

    def _outputs(self, model: nn.Module, inputs: Any) -> tuple[Any, Tensor]:
        # Without labels the model leaves out a loss of its own that nobody would read.
        return model(**{name: x for name, x in inputs.items() if name != "labels"}), inputs[
            "labels"
        ]

    def _loader_of(self, dataset: Any) -> Any:
        majority, self.train_dataset = self.train_dataset, dataset
        try:
            return self.get_train_dataloader()
        finally:
            self.train_dataset = majority
