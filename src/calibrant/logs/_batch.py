"""Some rows of a prediction log, as tensors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..evaluation import Evaluation, Summary, evaluate, evaluate_events
from ..predictions import Predictions
from ._names import Kind


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a log, checked.

    - `kind`: `"logits"`, `"probabilities"` or `"confidence"`.
    - `forecast`: `(rows, classes)`, or `(rows,)` where only a confidence is known.
    - `truth`: labels; or outcomes, 0 or 1, where only a confidence is known.
    - `weights`, `groups`: of each row, where columns were named for them.
    """

    kind: Kind
    forecast: Tensor
    truth: Tensor
    weights: Tensor | None = None
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.forecast)

    @property
    def forecasts(self) -> Predictions | tuple[Tensor, Tensor]:
        """Predictions, or the pair `(confidence, outcome)`; weights are left to the caller."""
        if self.kind == "confidence":
            return self.forecast, self.truth
        build = Predictions if self.kind == "logits" else Predictions.from_probabilities
        return build(self.forecast, self.truth)

    def evaluate(self, **settings: Any) -> Evaluation:
        """`evaluate`, or `evaluate_events`, of these rows; the settings are theirs."""
        settings = {"weights": self.weights, "groups": self.groups} | settings
        if self.kind == "confidence":
            return evaluate_events(self.forecast, self.truth, **settings)
        probabilities = self.kind == "probabilities"
        return evaluate(self.forecast, self.truth, probabilities=probabilities, **settings)

    def add_to(self, summary: Summary) -> None:
        """Count these rows, once each, in a summary."""
        told = self.forecasts
        if isinstance(told, tuple):
            summary.add_events(*told)
        else:
            summary.add(told)

    def part(self, own: Tensor) -> "Batch":
        """Some of the rows."""
        return Batch(
            self.kind,
            self.forecast[own],
            self.truth[own],
            None if self.weights is None else self.weights[own],
            None if self.groups is None else self.groups[own.numpy()],
        )


def joined(batches: list[Batch]) -> Batch:
    """One batch of all the rows, in order."""
    weights = [batch.weights for batch in batches if batch.weights is not None]
    groups = [batch.groups for batch in batches if batch.groups is not None]
    return Batch(
        batches[0].kind,
        torch.cat([batch.forecast for batch in batches]),
        torch.cat([batch.truth for batch in batches]),
        torch.cat(weights) if weights else None,
        np.concatenate(groups) if groups else None,
    )
