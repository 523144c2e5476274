"""Calibration as a metric of torchmetrics: fixed memory, any number of processes."""

from typing import Any

import torch
from torch import Tensor

from ..evaluation._summary import Summary

try:
    from torchmetrics import Metric
except ImportError as missing:
    raise ImportError(
        "the torchmetrics adapter needs torchmetrics: pip install 'calibrant[torchmetrics]'"
    ) from missing


class CalibrationMetrics(Metric):
    """Every measure a `Summary` knows, as a torchmetrics metric.

    `update(logits, labels)` per batch, `compute()` for a dictionary of numbers. The state is a
    few sums of fixed size, so it costs the same after a billion samples, and processes add
    theirs up. Measures that need the order of samples are within the summary's error bounds.

    - `classes`, `bins`, `cells`: as in `Summary`.

    >>> metric = CalibrationMetrics(classes=2)
    >>> metric.update(torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 0]))
    >>> metric.compute()["ece"]
    tensor(0.2992, dtype=torch.float64)
    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False

    def __init__(self, classes: int, *, bins: int = 15, cells: int = 8192, **settings: Any) -> None:
        super().__init__(**settings)
        self._summary = Summary(classes, bins=bins, cells=cells)
        for name, part in self._summary.state.items():
            self.add_state(name, part, dist_reduce_fx="sum")

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Add a batch."""
        self._filled().update(logits, labels)

    def compute(self) -> dict[str, Tensor]:
        """Every measure so far, by name."""
        values = self._filled().values()
        return {
            name: torch.tensor(bounded.value, dtype=torch.float64, device=self.device)
            for name, bounded in values.items()
        }

    def _filled(self) -> Summary:
        """The summary whose state is this metric's, so that adding to one adds to the other."""
        self._summary.state = {name: getattr(self, name) for name in self._summary.state}
        return self._summary
