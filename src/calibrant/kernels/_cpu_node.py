"""Statistics of rows on the CPU on the autograd graph: one node over the logits for all of them.

They are found when they are asked for, after the node was made. So its outputs are rows of zeros,
one for each statistic: the channels through which those that are found send their gradient.
"""

from typing import Any

import torch
from torch import Tensor

from ..predictions import Row
from ._cpu_looks import Looks
from ._row_statistics import by_definition
from ._stand_ins import stands_in
from ._switch import in_place
from ._table import DIFFERENTIABLE

CHANNELS = {name: f"channel of {name}" for name in (*DIFFERENTIABLE, "soft_rank")}
"""What the channel of each statistic is called."""


def channels(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """A new node with nothing found yet: its channels by their names."""
    over = in_place(logits)
    return _node(logits, labels, Looks(logits, labels, keeps=not over), over)


def statistic(name: str, logits: Tensor, labels: Tensor, row: Row) -> Tensor:
    """The statistic of this name, found now."""
    # What has no gradient is behind the same node, whichever channel leads there.
    way = name if name in CHANNELS else "confidence"
    channel = row(CHANNELS[way])
    looks = _looks(channel)
    if looks is None:
        channel, looks = _apart(way, logits, labels)
    found = looks.find(name)
    return _through(channel, found) if name in CHANNELS else found


def soft_rank(logits: Tensor, labels: Tensor, temperature: float, row: Row) -> Tensor:
    """What `Predictions.soft_rank` defines. One temperature of several has the channel."""
    channel = row(CHANNELS["soft_rank"])
    looks = _looks(channel)
    if looks is None or looks.temperature is not None:
        channel, looks = _apart("soft_rank", logits, labels)
    return _through(channel, looks.ranks(temperature))


def _looks(channel: Tensor) -> Looks | None:
    """What stands behind a channel, if it is the one of these very rows."""
    node: Any = channel.grad_fn
    is_the_node = isinstance(node, _RowStatistics._backward_cls)
    return node.looks if is_the_node else None


def _apart(name: str, logits: Tensor, labels: Tensor) -> tuple[Tensor, Looks]:
    """A channel of a second node, which takes no room until its gradient is found."""
    looks = Looks(logits, labels, keeps=False)
    return _node(logits, labels, looks, over=False)[CHANNELS[name]], looks


def _node(logits: Tensor, labels: Tensor, looks: Looks, over: bool) -> dict[str, Tensor]:
    outputs = _RowStatistics.apply(logits, labels, looks, over)  # type: ignore[no-untyped-call]
    return dict(zip(CHANNELS.values(), outputs, strict=True))


def _through(channel: Tensor, found: Tensor) -> Tensor:
    sent: Tensor = _Through.apply(channel, found)  # type: ignore[no-untyped-call]
    return sent


class _Through(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, channel: Tensor, found: Tensor) -> Tensor:
        # Another tensor of the same memory: what is found belongs to no graph.
        return found.view_as(found)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return upstream, None


class _RowStatistics(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, labels: Tensor, looks: Looks, over: bool
    ) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(logits, labels)
        ctx.looks, ctx.over = looks, over
        zero, rows = torch.zeros((), dtype=looks.dtype), labels.shape
        return tuple(zero.expand(rows) for _ in CHANNELS)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        logits, labels = ctx.saved_tensors
        looks: Looks = ctx.looks
        *wanted, by_rank = upstream
        named = zip(DIFFERENTIABLE, wanted, strict=True)
        given = {name: each for name, each in named if each is not None}
        asked: dict[str | tuple[str, float], Tensor] = dict(given.items())
        if by_rank is not None and looks.temperature is not None:
            asked["soft_rank", looks.temperature] = by_rank
        if not asked:
            return None, None, None, None
        if torch.is_grad_enabled() or any(map(stands_in, asked.values())):
            # Somebody differentiates the gradient, or wants many: it is derived in operators.
            return by_definition(logits, labels, asked), None, None, None
        # In place, torch then refuses whoever kept the logits for a gradient, this node included.
        return looks.gradient(given, by_rank, in_place=ctx.over).detach(), None, None, None
