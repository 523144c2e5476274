"""The statistics of rows on the autograd graph: one node over the logits for all of them."""

from typing import Any

import torch
from torch import Tensor

from ..predictions import Predictions
from ._passes import Passes
from ._stand_ins import stands_in
from ._switch import in_place
from ._table import Ranked

CHANNEL = "rank_channel"
"""A row of zeros through which a soft rank sends its gradient to the node of the statistics."""


def row_statistics(logits: Tensor, labels: Tensor, passes: Passes) -> dict[str, Tensor]:
    """Everything the forward pass found, by the name `Predictions` gives it."""
    *rows, predicted, channel = _RowStatistics.apply(logits, labels, passes)  # type: ignore[no-untyped-call]
    return {**dict(zip(passes.finds, rows, strict=True)), "predicted": predicted, CHANNEL: channel}


def rank_through(
    channel: Tensor, logits: Tensor, labels: Tensor, temperature: float
) -> Tensor | None:
    """The soft rank as a part of that node, so that the logits have one gradient and not two.

    None where it cannot be: without a graph, where another temperature has the channel, or where
    it is the channel of more rows than these.
    """
    node: Any = channel.grad_fn
    is_the_node = isinstance(node, _RowStatistics._backward_cls)
    if not is_the_node or node.rank is not None:
        return None
    table = node.passes.ranks(logits.detach(), labels, temperature, known=node.table)
    node.rank = table, temperature
    rank: Tensor = _Through.apply(channel, table)  # type: ignore[no-untyped-call]
    return rank


class _Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, channel: Tensor, table: Tensor) -> Tensor:
        return table[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return upstream, None


class _RowStatistics(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, passes: Passes) -> tuple[Tensor, ...]:
        table, predicted = passes.statistics(logits, labels)
        rows = table[: len(passes.finds)].unbind(0)
        ctx.mark_non_differentiable(rows[-1], predicted)
        ctx.set_materialize_grads(False)
        ctx.in_place = in_place(logits)
        ctx.passes, ctx.table, ctx.rank = passes, table, None
        ctx.save_for_backward(logits, labels, table, predicted)
        return *rows, predicted, table.new_zeros(len(logits))

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Tensor | None, None, None]:
        logits, labels, table, predicted = ctx.saved_tensors
        *names, _ = ctx.passes.finds
        wanted = upstream[: len(names)]
        given: dict[str | tuple[str, float], Tensor] = {
            name: each for name, each in zip(names, wanted, strict=True) if each is not None
        }
        rank, by_rank = None, upstream[-1]
        if by_rank is not None:
            ranked, temperature = ctx.rank
            given["soft_rank", temperature] = by_rank
            rank = Ranked(by_rank, ranked, temperature)
        if not given:
            return None, None, None
        if torch.is_grad_enabled() or any(map(stands_in, given.values())):
            # Somebody differentiates the gradient, or wants many: it is derived in operators.
            return by_definition(logits, labels, given), None, None
        found = ctx.passes.gradient(
            logits, labels, table, predicted, wanted, rank=rank, in_place=ctx.in_place
        )
        if ctx.in_place:
            # Torch then refuses whoever kept the logits for a gradient, this node included.
            torch.autograd.graph.increment_version(logits)
        return found.detach(), None, None


def by_definition(
    logits: Tensor, labels: Tensor, upstream: dict[str | tuple[str, float], Tensor]
) -> Tensor:
    """The gradient of the logits in torch operators, from those of properties of `Predictions`.

    What a property is called, or a method and its setting.
    """

    def statistics_of(z: Tensor) -> tuple[Tensor, ...]:
        # Inside the transform the definition is in charge.
        plain = Predictions._unchecked(z, labels, None)
        return tuple(
            getattr(plain, name) if isinstance(name, str) else plain.soft_rank(name[1])
            for name in upstream
        )

    by_logits: Tensor
    (by_logits,) = torch.func.vjp(statistics_of, logits)[1](tuple(upstream.values()))
    return by_logits
