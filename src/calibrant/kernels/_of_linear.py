"""Predictions whose row statistics are found without a table of logits."""

from typing import Any

import torch
from torch import Tensor

from ..predictions import Predictions
from . import _linear_operators, _linear_statistics
from ._linear_passes import Linear, Plan


class OfLinear(Predictions):
    """What `linear_predictions` gives."""

    _parts = ("labels", "weights", "labels_per_sample", "_derived", "_linear", "_plan")
    _linear: Linear
    _plan: Plan

    def __init__(self, linear: Linear, labels: Tensor, weights: Tensor | None, plan: Plan) -> None:
        parts: dict[str, Any] = {"_linear": linear, "_plan": plan, "_derived": {}}
        parts |= {"labels": labels, "weights": weights, "labels_per_sample": None}
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @property
    def logits(self) -> Tensor:
        raise RuntimeError(
            "linear_predictions never hold all logits, and this criterion reads them. Use one that "
            "needs no more than statistics of rows, such as top_label(esd), or "
            "Predictions(hidden @ classifier.T, labels)."
        )

    @property
    def classes(self) -> int:
        return len(self._linear.weight)

    @property
    def dtype(self) -> torch.dtype:
        return torch.promote_types(self._plan.dtype, torch.float32)

    @property
    def true_prob(self) -> Tensor:
        return self._read("true_prob", lambda: self.true_log_prob.exp())

    def soft_rank(self, temperature: float = 100.0) -> Tensor:
        plan = self._plan._replace(temperature=float(temperature))
        return self._read(
            ("soft_rank", temperature), lambda: _form().soft_rank(self._linear, self.labels, plan)
        )

    def probs_in_blocks(self) -> None:
        """Never: there are none."""
        return

    def _row(self, name: str, definition: object) -> Tensor:
        def compute() -> Tensor:
            found: dict[str, Tensor]
            found = _form().row_statistics(self._linear, self.labels, self._plan)
            for each, statistic in found.items():
                self._derived.setdefault((each, torch.is_grad_enabled()), statistic)
            return found[name]

        return self._read(name, compute)


def _form() -> Any:
    """Operators for a compiler; eager code does without, since they cost time on the host."""
    return _linear_operators if torch.compiler.is_compiling() else _linear_statistics
