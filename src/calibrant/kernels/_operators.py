"""The same passes as operators of torch, which a compiler takes into its graph as they are.

Eager code does not go through them: an operator costs more on the host than a launch.
"""

from typing import Any

import torch
from torch import Tensor

from ._table import DIFFERENTIABLE, KEPT, RANK_TABLE, TABLE, arithmetic


@torch.library.custom_op("calibrant::row_statistics", mutates_args=())
def _row_statistics(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    # Imported when first needed: a machine without a GPU need not have Triton.
    from ._rows import statistics

    return statistics(logits, labels)


@_row_statistics.register_fake
def _(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    n = logits.shape[0]
    table = logits.new_empty(len(TABLE), n, dtype=arithmetic(logits.dtype))
    return table, logits.new_empty(n, dtype=torch.int64)


@torch.library.custom_op("calibrant::row_gradient", mutates_args=())
def _row_gradient(
    logits: Tensor, labels: Tensor, table: Tensor, predicted: Tensor, upstream: Tensor
) -> Tensor:
    from ._row_gradients import gradient

    return gradient(logits, labels, table, predicted, upstream.unbind(0)[: len(DIFFERENTIABLE)])


@_row_gradient.register_fake
def _(logits: Tensor, labels: Tensor, table: Tensor, predicted: Tensor, upstream: Tensor) -> Tensor:
    return torch.empty_like(logits)


@torch.library.custom_op("calibrant::soft_rank", mutates_args=())
def _soft_rank(logits: Tensor, labels: Tensor, temperature: float) -> Tensor:
    from ._ranks import ranks

    return ranks(logits, labels, temperature)


@_soft_rank.register_fake
def _(logits: Tensor, labels: Tensor, temperature: float) -> Tensor:
    return logits.new_empty(RANK_TABLE, logits.shape[0], dtype=arithmetic(logits.dtype))


@torch.library.custom_op("calibrant::soft_rank_gradient", mutates_args=())
def _soft_rank_gradient(
    logits: Tensor, labels: Tensor, table: Tensor, upstream: Tensor, temperature: float
) -> Tensor:
    from ._rank_gradients import rank_gradient

    return rank_gradient(logits, labels, table, upstream, temperature)


@_soft_rank_gradient.register_fake
def _(
    logits: Tensor, labels: Tensor, table: Tensor, upstream: Tensor, temperature: float
) -> Tensor:
    return torch.empty_like(logits)


def _keep_rows(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _rows_backward(ctx: Any, upstream: Tensor, _: None) -> tuple[Tensor, None]:
    return _row_gradient(*ctx.saved_tensors, upstream), None


def _keep_ranks(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.temperature = inputs
    ctx.save_for_backward(*tensors, output)


def _ranks_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
    return _soft_rank_gradient(*ctx.saved_tensors, upstream[0], ctx.temperature), None, None


_row_statistics.register_autograd(_rows_backward, setup_context=_keep_rows)
_soft_rank.register_autograd(_ranks_backward, setup_context=_keep_ranks)


def row_statistics(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """Everything the forward pass finds, by the name `Predictions` gives it."""
    table, predicted = _row_statistics(logits, labels)
    rows = dict(zip(TABLE, table.unbind(0), strict=True))
    return {name: rows[name] for name in KEPT} | {"predicted": predicted}


def soft_rank(logits: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """What `Predictions.soft_rank` defines."""
    table: Tensor = _soft_rank(logits, labels, float(temperature))
    return table[0]
