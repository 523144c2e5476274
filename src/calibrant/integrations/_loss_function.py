"""Predictions of transformers' models, by sample or by token: as a loss, and as metrics."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..criteria import Criterion
from ..measures import MEASURES
from ..predictions import Predictions
from ..scores import accuracy, brier, nll
from ._model_outputs import logits_of

Objective = Callable[[Tensor, Tensor], Tensor]


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
    kept = labels.long() != ignore_index  # of narrow integers -100 is another number
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
        logits, labels = rows(logits_of(outputs), labels, causal=causal)
        if len(labels) == 0:  # as `num_items_in_batch` may be, by which nothing can be divided
            return nothing(logits)
        loss = objective(logits, labels)
        return loss if num_items_in_batch is None else loss * len(labels) / num_items_in_batch

    return compute_loss


def nothing(logits: Tensor) -> Tensor:
    """The loss of a batch whose every label is ignored."""
    return 0 * logits.sum()


def calibration_metrics(evaluated: Any, *, causal: bool = False) -> dict[str, float]:
    """Accuracy, NLL, Brier score and ECE, for `Trainer(compute_metrics=...)`.

    By token where there are tokens; labels of -100 are left out. For causal language models, whose
    logits predict the next token, pass `functools.partial(calibration_metrics, causal=True)`.

    >>> logits, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 0])
    >>> {name: round(value, 3) for name, value in calibration_metrics((logits, labels)).items()}
    {'accuracy': 0.667, 'nll': 0.496, 'brier': 0.367, 'ece': 0.299}
    """
    outputs, truth, *_ = evaluated  # inputs and losses follow where Trainer was asked for them
    logits, labels = torch.as_tensor(logits_of(outputs)), torch.as_tensor(truth)
    predictions = Predictions(*rows(logits, labels, causal=causal))
    criteria: dict[str, Criterion] = {
        "accuracy": accuracy,
        "nll": nll,
        "brier": brier,
        "ece": MEASURES["ece"],
    }
    return {name: float(criterion(predictions)) for name, criterion in criteria.items()}
