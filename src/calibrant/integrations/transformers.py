"""Calibration in transformers' Trainer: for classifiers and, by token, for language models."""

from collections.abc import Sequence
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..criteria import Criterion
from ..predictions import Predictions
from ..training._accumulation import accumulate
from ..training._batch_norm import Buffers
from ..training._parallel import is_parallel, of_all_ranks, unsynchronised
from ..training._sound_loss import check_on_graph
from ..training._weight import CalibrationStatistics, WatchingWeight, Weight, as_weight
from ._calibration_files import read_calibration, write_calibration
from ._calibration_slice import CalibrationSlice
from ._finite import finite_numbers, gradient_norm
from ._loss_function import Objective
from ._loss_function import calibration_metrics as calibration_metrics
from ._loss_function import loss_function as loss_function
from ._loss_function import rows as rows
from ._model_outputs import after_loss, logits_of, outputs_and_labels, predictions_of
from ._whole_objective import WholeObjective

try:
    from transformers import Trainer

    from ._best_epoch import BestEpoch as BestEpoch
except ImportError as missing:
    raise ImportError(
        "the Trainer adapter needs transformers: pip install 'calibrant[transformers]'"
    ) from missing


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

    Labels of -100 are left out. A loss or a gradient that is not finite stops the run before the
    optimiser sees it. All other arguments are Trainer's. Trainer's checkpoints also hold
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
        self._whole = None if objective is None else WholeObjective(objective)
        self.calibration: Criterion | None = calibration
        self.weight, self.calibration_dataset = as_weight(weight), calibration_dataset
        self.causal = causal
        self._unlearnt = deepcopy(self.weight.state_dict())
        self._slice = CalibrationSlice(self.get_calibration_dataloader)
        self._seen: dict[str, float] = {}
        self._begin_step([])
        if objective is not None:
            self._check_only_loss()
            self.loss_is_scaled_for_ga = True  # it is that of the whole batch

    def _check_only_loss(self) -> None:
        other = {
            "compute_loss_func": self.compute_loss_func is not None,
            "label_smoothing_factor": self.label_smoother is not None,
        }
        if any(other.values()):
            raise ValueError(
                "objective must be the only loss that is fitted; got "
                f"{' and '.join(name for name, given in other.items() if given)} as well. "
                "Put all of it into objective, or leave objective out."
            )

    def get_calibration_dataloader(self) -> Any:
        """Batches of the calibration data, made as those of the training data are."""
        majority, self.train_dataset = self.train_dataset, self.calibration_dataset
        try:
            return self.get_train_dataloader()
        finally:
            self.train_dataset = majority

    def train(self, *args: Any, **settings: Any) -> Any:
        """Trainer's training, with the calibration data from their beginning."""
        self._slice.forget()
        if self.model_init is not None:  # a model that is made anew, as in a search over settings
            self.weight.load_state_dict(deepcopy(self._unlearnt))
        return super().train(*args, **settings)

    def get_batch_samples(self, *args: Any, **settings: Any) -> Any:
        """The micro-batches of a step, which begins with this."""
        batches, items = super().get_batch_samples(*args, **settings)
        self._begin_step(batches)
        return batches, items

    def _begin_step(self, batches: Sequence[Any]) -> None:
        model: Any = self.model
        self._before, self._fits = Buffers(model), list[Tensor]()
        if self._whole is not None:
            self._whole.begin(batches)

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Any,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The objective's loss, or that of Trainer where there is none."""
        if self._whole is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        share = self._whole.next_share(model)
        outputs, labels = outputs_and_labels(model, inputs)
        logits, labels = rows(logits_of(outputs), labels, causal=self.causal)
        loss = self._whole.loss(model, logits, labels, share)
        return (loss, after_loss(loss, outputs)) if return_outputs else loss

    def training_step(self, model: nn.Module, *args: Any, **settings: Any) -> Tensor:
        """Trainer's step and, with the last micro-batch, the calibration of a held-out batch."""
        if self._whole is not None:
            self._whole.go_through(model, self._forward)
        last = self.accelerator.sync_gradients
        with unsynchronised(model) if last and self.calibration is not None else nullcontext():
            loss: Tensor = super().training_step(model, *args, **settings)
        self._fits.append(loss)
        if last and not (self._whole is None and self.calibration is None):
            self._finish_step(model)
        return loss

    def _finish_step(self, model: nn.Module) -> None:
        """All that a step of the optimiser needs besides the gradient of the fit."""
        values = {"fit": torch.stack(self._fits).sum()}
        known = deepcopy(self.weight.state_dict())
        try:
            if self.calibration is not None:
                criterion = of_all_ranks(self.calibration, is_parallel(model))
                values["calibration"], held_out = self._calibrate(model, criterion)
            scaled = self.accelerator.scaler is not None  # and may overflow, which is no mistake
            told = values if scaled else values | {"gradient": gradient_norm(model)}
            numbers = finite_numbers(told, self.state.global_step)
        except BaseException:
            self._before.restore()
            self.weight.load_state_dict(known)
            model.zero_grad()
            raise
        if self.calibration is not None:
            self.weight.update(
                CalibrationStatistics(**values, held_out=held_out, step=self.state.global_step)
            )
            self._seen = {"calibration": numbers["calibration"], "weight": self.weight.value}

    def _calibrate(self, model: nn.Module, calibration: Criterion) -> tuple[Tensor, Predictions]:
        """Add the weighted gradient of a held-out batch; its calibration, and what was said."""
        steps = self.args.gradient_accumulation_steps
        drawn = self._slice.draw(steps, self._train_batch_size)
        batches = [self._prepare_inputs(batch) for batch in drawn]
        seen: dict[str, Any] = {}

        def priced(logits: Tensor, labels: Tensor) -> Tensor:
            seen["held_out"] = predictions_of(logits, labels)
            seen["calibration"] = calibration(seen["held_out"])
            if isinstance(self.weight, WatchingWeight):
                self.weight.watch(seen["calibration"], seen["held_out"])
            loss: Tensor = self.weight.value * seen["calibration"]
            check_on_graph(loss)
            return loss

        if steps == 1:
            with self.compute_loss_context_manager():
                loss = priced(*self._forward(model, batches[0]))
            self.accelerator.backward(loss)
        else:
            scaler = self.accelerator.scaler
            accumulate(model, batches, priced, forward=self._forward, scaler=scaler)
        own = seen["held_out"]
        return seen["calibration"].detach(), predictions_of(own.logits.detach(), own.labels)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        write_calibration(Path(output_dir), self.args, self.weight, self._slice)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            held_out = None if self.calibration is None else self._slice
            size = self._train_batch_size
            read_calibration(Path(checkpoint), self.args, self.weight, held_out, size)

    def log(self, logs: dict[str, float], *args: Any, **settings: Any) -> None:
        """Trainer's log, with the calibration loss and its weight beside the loss."""
        super().log(logs | self._seen if "loss" in logs else logs, *args, **settings)

    def _forward(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        outputs, labels = outputs_and_labels(model, self._prepare_inputs(batch))
        return rows(logits_of(outputs), labels, causal=self.causal)
