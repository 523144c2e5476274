"""Calibration in transformers' Trainer: for classifiers and, by token, for language models."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..criteria import Criterion
from ..measures import MEASURES
from ..predictions import Predictions
from ..scores import accuracy
from ..training._accumulation import Share, accumulate, logit_gradients
from ..training._history import Epoch
from ..training._keeper import Keeper
from ..training._parallel import (
    is_parallel,
    objective_of_all_ranks,
    of_all_ranks,
    unsynchronised,
)
from ..training._random import restore_random_state
from ..training._selection import Selection
from ..training._stream import Stream
from ..training._weight import CalibrationStatistics, WatchingWeight, Weight, as_weight

try:
    from transformers import Trainer, TrainerCallback
except ImportError as missing:
    raise ImportError(
        "the Trainer adapter needs transformers: pip install 'calibrant[transformers]'"
    ) from missing

Objective = Callable[[Tensor, Tensor], Tensor]
_WEIGHT = "calibration_weight.pt"  # beside Trainer's own files of a checkpoint


def rows(
    logits: Tensor, labels: Tensor, *, causal: bool = False, ignore_index: int = -100
) -> tuple[Tensor, Tensor]:
    """One row of logits and one label per prediction, without the ignored ones.

    - `logits`: `(batch, classes)`, or `(batch, length, classes)` for tokens.
    - `causal`: whether the logits at a position predict the label of the next.

    >>> logits, labels = torch.zeros(2, 4, 10), torch.tensor([[5, 1, 2, -100], [7, 8, 9, 3]])
    >>> rows(logits, labels, causal=True)[1]
    tensor([1, 2, 8, 9, 3])
    """
    if causal:
        logits, labels = logits[:, :-1], labels[:, 1:]
    logits, labels = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    kept = labels != ignore_index
    return logits[kept], labels[kept]


def loss_function(objective: Objective, *, causal: bool = False) -> Callable[..., Tensor]:
    """An objective as `Trainer(compute_loss_func=...)` wants it.

    - `objective`: a loss called `(logits, labels)` with one row per prediction, such as
      `Penalised(nll, top_label(esd), weight=1.0)`.
    - `causal`: for causal language models, whose logits predict the next token.

    Under gradient accumulation each micro-batch counts by its predictions, as in Trainer's own
    loss, which is exact for a mean and not for calibration: there, give the objective to
    `CalibratedTrainer`.
    """

    def compute_loss(
        outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        logits, labels = rows(_logits_of(outputs), labels, causal=causal)
        loss = objective(logits, labels)
        return loss if num_items_in_batch is None else loss * len(labels) / num_items_in_batch

    return compute_loss


def calibration_metrics(evaluated: Any) -> dict[str, float]:
    """Accuracy and ECE of a classifier, for `Trainer(compute_metrics=...)`."""
    logits, labels = (torch.as_tensor(part) for part in evaluated)
    predictions = Predictions(*rows(logits, labels))
    criteria: dict[str, Criterion] = {"accuracy": accuracy, "ece": MEASURES["ece"]}
    return {name: float(criterion(predictions)) for name, criterion in criteria.items()}


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

    Labels of -100 are left out. All other arguments are Trainer's. What a weight has learnt is
    kept beside the optimiser in Trainer's checkpoints. To build on another trainer, name both:
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
        self._shares: list[Share] = []
        self._held_out: Iterator[Any] | None = None
        self._seen: dict[str, float] = {}
        if objective is not None:
            self.loss_is_scaled_for_ga = True  # it is that of the whole batch

    def get_batch_samples(self, *args: Any, **settings: Any) -> Any:
        """The micro-batches of a step, gone through once where the objective needs them all."""
        batches, items = super().get_batch_samples(*args, **settings)
        if self.objective is not None and len(batches) > 1:
            model = self.model_wrapped.train()
            loss, self._shares = logit_gradients(
                model, batches, self.objective, forward=self._forward
            )
            self._share_of_loss = loss / len(batches)
        return batches, items

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
        logits, labels = rows(_logits_of(outputs), labels, causal=self.causal)
        if share is None:
            loss = objective_of_all_ranks(self.objective, is_parallel(model))(logits, labels)
        else:
            sent = (logits * share.gradient).sum()  # has the gradient of the whole, by these logits
            loss = sent - sent.detach() + self._share_of_loss
        return (loss, outputs) if return_outputs else loss

    def training_step(self, model: nn.Module, *args: Any, **settings: Any) -> Tensor:
        """Trainer's step and, with the last micro-batch, the calibration of a held-out batch."""
        if self.calibration is None or not self.accelerator.sync_gradients:
            loss: Tensor = super().training_step(model, *args, **settings)
            return loss
        with unsynchronised(model):
            loss = super().training_step(model, *args, **settings)
        self._calibrate(model, of_all_ranks(self.calibration, is_parallel(model)), loss)
        return loss

    def _calibrate(self, model: nn.Module, calibration: Criterion, fit: Tensor) -> None:
        if self._held_out is None:
            self._held_out = Stream(self._loader_of(self.calibration_dataset)).endless()
        steps = self.args.gradient_accumulation_steps
        batches = [self._prepare_inputs(next(self._held_out)) for _ in range(steps)]
        seen: dict[str, Any] = {}

        def priced(logits: Tensor, labels: Tensor) -> Tensor:
            seen["held_out"] = Predictions(logits, labels)
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
                held_out=Predictions(own.logits.detach(), own.labels),
                step=self.state.global_step,
            )
        )
        self._seen = {"calibration": float(value), "weight": self.weight.value}

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        super()._save_optimizer_and_scheduler(output_dir)
        learnt = self.weight.state_dict()
        if learnt and self.args.should_save:
            torch.save(learnt, Path(output_dir) / _WEIGHT)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        kept = None if checkpoint is None else Path(checkpoint) / _WEIGHT
        if kept is not None and kept.exists():
            self.weight.load_state_dict(torch.load(kept, weights_only=True, map_location="cpu"))

    def log(self, logs: dict[str, float], *args: Any, **settings: Any) -> None:
        """Trainer's log, with the calibration loss and its weight beside the loss."""
        super().log(logs | self._seen if "loss" in logs else logs, *args, **settings)

    def _forward(self, model: nn.Module, batch: Any) -> tuple[Tensor, Tensor]:
        outputs, labels = self._outputs(model, self._prepare_inputs(batch))
        return rows(_logits_of(outputs), labels, causal=self.causal)

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


class BestEpoch(TrainerCallback):
    """Leaves the model with the weights of the evaluation that the papers' rule chooses.

    - `selection`: the rule; its `measure` is not used, since `compute_metrics` measures.
    - `accuracy`, `error`: what `compute_metrics` calls them, as `calibration_metrics` does by
      default.
    """

    def __init__(
        self,
        selection: Selection | None = None,
        *,
        accuracy: str = "eval_accuracy",
        error: str = "eval_ece",
    ) -> None:
        self.keeper, self.epochs = Keeper(selection or Selection()), list[Epoch]()
        self.names = (accuracy, error)
        self.best: Epoch | None = None

    def on_evaluate(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Take note of an evaluation."""
        metrics = given["metrics"]
        missing = [name for name in self.names if name not in metrics]
        if missing:
            raise ValueError(
                f"evaluation must give {' and '.join(self.names)}; got no {missing[0]}. "
                "Pass compute_metrics=calibration_metrics to the Trainer."
            )
        right, wrong = (float(metrics[name]) for name in self.names)
        self.epochs.append(Epoch(len(self.epochs), float("nan"), accuracy=right, error=wrong))
        self.keeper.keep(self.epochs, given["model"])

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Put back the best."""
        if self.epochs:
            self.best = self.keeper.restore_best(self.epochs, given["model"])


def _logits_of(outputs: Any) -> Tensor:
    logits: Tensor = outputs["logits"] if isinstance(outputs, dict) else outputs[0]
    return logits
