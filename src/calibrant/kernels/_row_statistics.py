"""The statistics of rows on the autograd graph: one node over the logits for all of them."""

from typing import Any

import torch
from torch import Tensor

from .._checks import is_transformed
from ..predictions import Predictions
from ._row_gradients import gradient
from ._rows import statistics
from ._switch import in_place
from ._table import DIFFERENTIABLE, KEPT


def row_statistics(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Everything the forward pass found, by the name `Predictions` gives it."""
    *rows, predicted = _RowStatistics.apply(logits, labels)  # type: ignore[no-untyped-call]
    return {**dict(zip(KEPT, rows, strict=True)), "predicted": predicted}


class _RowStatistics(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        table, predicted = statistics(logits, labels)
        rows = table[: len(KEPT)].unbind(0)
        ctx.mark_non_differentiable(rows[-1], predicted)
        ctx.set_materialize_grads(False)
        ctx.in_place = in_place(logits)
        ctx.save_for_backward(logits, labels, table, predicted)
        return *rows, predicted

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Tensor | None, None]:
        logits, labels, table, predicted = ctx.saved_tensors
        wanted = upstream[: len(DIFFERENTIABLE)]
        given = {
            name: each
            for name, each in zip(DIFFERENTIABLE, wanted, strict=True)
            if each is not None
        }
        if not given:
            return None, None
        if torch.is_grad_enabled() or any(is_transformed(each) for each in given.values()):
            # Somebody differentiates the gradient, or wants many: it is derived in operators.
            return by_definition(logits, labels, given), None
        found = gradient(logits, labels, table, predicted, wanted, in_place=ctx.in_place)
        if ctx.in_place:
            # Torch then refuses whoever kept the logits for a gradient, this node included.
            torch.autograd.graph.increment_version(logits)
        return found.detach(), None


def by_definition(logits: Tensor, labels: Tensor, upstream: dict[str, Tensor]) -> Tensor:
    """The gradient of the logits in torch operators, from those of properties of `Predictions`."""

    def statistics_of(z: Tensor) -> tuple[Tensor, ...]:
        # Inside the transform the definition is in charge.
        plain = Predictions._unchecked(z, labels, None)
        return tuple(getattr(plain, name) for name in upstream)

    by_logits: Tensor
    (by_logits,) = torch.func.vjp(statistics_of, logits)[1](tuple(upstream.values()))
    return by_logits
