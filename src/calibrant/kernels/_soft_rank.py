"""The soft rank on the autograd graph: one node over the logits."""

from typing import Any

import torch
from torch import Tensor

from ..predictions import Predictions
from ._passes import Passes
from ._stand_ins import stands_in


def soft_rank(logits: Tensor, labels: Tensor, temperature: float, passes: Passes) -> Tensor:
    """What `Predictions.soft_rank` defines."""
    rank: Tensor = _SoftRank.apply(logits, labels, temperature, passes)  # type: ignore[no-untyped-call]
    return rank


class _SoftRank(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, labels: Tensor, temperature: float, passes: Passes
    ) -> Tensor:
        table = passes.ranks(logits, labels, temperature)
        ctx.temperature, ctx.passes = temperature, passes
        ctx.save_for_backward(logits, labels, table)
        return table[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None]:
        logits, labels, table = ctx.saved_tensors
        if torch.is_grad_enabled() or stands_in(upstream):
            # Somebody differentiates the gradient, or wants many: it is derived in operators.
            def definition(z: Tensor) -> Tensor:
                return Predictions._unchecked(z, labels, None).soft_rank(ctx.temperature)

            (by_logits,) = torch.func.vjp(definition, logits)[1](upstream)
        else:
            by_logits = ctx.passes.rank_gradient(logits, labels, table, upstream, ctx.temperature)
        return by_logits, None, None, None
