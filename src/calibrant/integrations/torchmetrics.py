"""Calibration as metrics of torchmetrics: fixed memory, any number of processes."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from ..evaluation._summary import Summary

try:
    from torchmetrics import Metric
except ImportError as missing:
    raise ImportError(
        "the torchmetrics adapter needs torchmetrics: pip install 'calibrant[torchmetrics]'"
    ) from missing

# The fewest samples that a summary judges.
_FEWEST = 3
_EXAMPLE = Summary(2, cells=1).update(torch.zeros(_FEWEST, 2), torch.zeros(_FEWEST).long())
MEASURED = tuple(_EXAMPLE.values())
"""The names of what a summary knows."""


class _OfSummary(Metric):
    """A metric whose state is that of a `Summary`.

    Metrics with the same settings have the same state, so a `MetricCollection` keeps and
    updates it once for all of them. The state moves between devices and stays in double
    precision, whatever type is asked for: counts in half precision end at 2,048.
    """

    is_differentiable = False
    higher_is_better = None
    full_state_update = False

    def __init__(self, classes: int, *, bins: int = 15, cells: int = 8192, **settings: Any) -> None:
        super().__init__(**settings)
        self._summary = Summary(classes, bins=bins, cells=cells)
        for name, part in self._summary.state.items():
            self.add_state(name, part, dist_reduce_fx="sum")

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = ()) -> Any:
        """What `to`, `set_dtype`, and `half` of a module around it come to."""

        def moved(x: Tensor) -> Tensor:
            found = fn(x)
            return found if found.dtype == x.dtype else x.to(found.device)

        answers = {name: getattr(self, name) for name in ("_computed", "_forward_cache")}
        this = super()._apply(fn, exclude_state=[*exclude_state, *self._summary.state])
        for name in self._summary.state:
            start: Any = self._defaults[name]
            self._defaults[name] = moved(start)
            setattr(self, name, moved(getattr(self, name)))
        for name, answer in answers.items():
            setattr(self, name, tree_map_only(Tensor, moved, answer))
        return this

    def update(self, logits: Tensor, labels: Tensor, *, probabilities: bool = False) -> None:
        """Add a batch; rows of probabilities where that is said."""
        self._filled().update(logits, labels, probabilities=probabilities)

    def _filled(self) -> Summary:
        """The summary whose state is this metric's, so that adding to one adds to the other."""
        self._summary.state = {name: getattr(self, name) for name in self._summary.state}
        return self._summary

    def _values(self) -> dict[str, float]:
        summary = self._filled()
        if len(summary) < _FEWEST:
            # The last batch of an epoch may be this small, which must not end the training.
            return dict.fromkeys(MEASURED, float("nan"))
        return {name: bounded.value for name, bounded in summary.values().items()}


class CalibrationMetrics(_OfSummary):
    """Every measure a `Summary` knows, as a torchmetrics metric.

    `update(logits, labels)` per batch, `compute()` for a dictionary of numbers; for rows of
    probabilities `update(probs, labels, probabilities=True)`. The state is a few sums of fixed
    size, so it costs the same after a billion samples, and processes add theirs up. Measures that
    need the order of samples are within the summary's error bounds. Fewer than three samples give
    NaN.

    - `classes`, `bins`, `cells`: as in `Summary`.

    Lightning logs metrics of one number only: pass it `CalibrationMetric`s, or at the end of an
    epoch `self.log_dict(metrics.compute())`.

    >>> metrics = CalibrationMetrics(classes=2)
    >>> metrics.update(torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 0]))
    >>> metrics.compute()["ece"]
    tensor(0.2992, dtype=torch.float64)
    """

    def compute(self) -> dict[str, Tensor]:
        """Every measure so far, by name."""
        return {
            name: torch.tensor(value, dtype=torch.float64, device=self.device)
            for name, value in self._values().items()
        }


class CalibrationMetric(_OfSummary):
    """One measure of those, for whoever wants a metric to be one number, such as `self.log`.

    - `measure`: its name, one of `MEASURED`.
    - `classes`, `bins`, `cells`: as in `Summary`.

    >>> ece = CalibrationMetric("ece", classes=2)
    >>> ece(torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 0]))
    tensor(0.2992, dtype=torch.float64)
    """

    def __init__(self, measure: str, classes: int, **settings: Any) -> None:
        if measure not in MEASURED:
            raise ValueError(
                f"measure must be one of {', '.join(MEASURED)}; got {measure!r}. "
                "Others need every sample: see evaluate."
            )
        super().__init__(classes, **settings)
        self.measure = measure

    def compute(self) -> Tensor:
        """The measure so far."""
        value = self._values()[self.measure]
        return torch.tensor(value, dtype=torch.float64, device=self.device)
