"""Statistics of the rows of logits that are never all there, and gradients from theirs.

Forward some rows at a time, each with all its classes. Backward some classes at a time, each with
all the rows: the gradient of a class's weights is then one product over all rows, accumulated as
wide as the matrix units do, and only the gradient of the hidden states is a sum over parts.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from . import _block_ranks, _block_rows
from ._finish import Finish
from ._products import Products, add_product, slices, write_product
from ._table import RANK_TABLE, TABLE, Ranked, arithmetic
from ._tiles import Part


class Plan(NamedTuple):
    """How the logits are made and looked at.

    - `dtype`: of the products.
    - `temperature`: of soft ranks; none where the statistics of rows are asked for.
    - `chunk`: bytes of logits held at a time.
    - `kernels`: whether kernels look at them, or torch operators.
    """

    finish: Finish
    dtype: torch.dtype
    temperature: float | None
    chunk: int
    kernels: bool


class Linear(NamedTuple):
    """Hidden states, a row each, and the last layer: a row of `weight` per class."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None

    def of(self, dtype: torch.dtype) -> "Linear":
        """The same in another precision."""
        bias = None if self.bias is None else self.bias.to(dtype)
        return Linear(self.hidden.to(dtype), self.weight.to(dtype), bias)

    def some_classes(self, own: slice) -> "Linear":
        """The same hidden states, and some rows of the last layer."""
        return Linear(self.hidden, self.weight[own], None if self.bias is None else self.bias[own])


def look(linear: Linear, labels: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
    """The table of all rows, and the predicted classes (of ranks: nothing)."""
    hidden, weight, bias = linear.of(plan.dtype)
    n, classes = len(hidden), len(weight)
    ranked = plan.temperature is not None
    height = RANK_TABLE if ranked else len(TABLE)
    table = hidden.new_empty(height, n, dtype=arithmetic(plan.dtype))
    predicted = labels.new_empty(0 if ranked else n)
    products = Products(plan.dtype, hidden.device)
    for rows in slices(n, classes * hidden.element_size(), plan.chunk):
        logits = products.of(hidden[rows], weight, bias)
        if ranked:
            table[:, rows] = _ranks(logits, labels[rows], plan)
        else:
            table[:, rows], predicted[rows] = _statistics(logits, labels[rows], plan)
    return table, predicted


def pull_back(
    linear: Linear,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: tuple[Tensor | None, ...],
    plan: Plan,
    wanted: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of hidden states, weight and bias, as far as they are wanted."""
    hidden, weight, bias = linear
    narrow = hidden.to(plan.dtype)
    n, classes = len(hidden), len(weight)
    by_hidden = hidden.new_zeros(hidden.shape, dtype=arithmetic(plan.dtype)) if wanted[0] else None
    by_weight = torch.empty_like(weight) if wanted[1] else None
    by_bias = torch.empty_like(bias) if wanted[2] and bias is not None else None
    products = Products(plan.dtype, hidden.device)
    for own in slices(classes, n * narrow.element_size(), plan.chunk):
        some = linear.some_classes(own)._replace(hidden=narrow).of(plan.dtype)
        by_logits = products.of(*some)
        _turn_(by_logits, labels, table, predicted, upstream, Part(own.start, classes), plan)
        if by_hidden is not None:
            add_product(by_hidden, by_logits, some.weight)
        if by_weight is not None:
            write_product(by_weight[own], by_logits.T, narrow)
        if by_bias is not None:
            by_bias[own] = by_logits.sum(dim=0, dtype=arithmetic(plan.dtype))
    return None if by_hidden is None else by_hidden.to(hidden.dtype), by_weight, by_bias


def _statistics(logits: Tensor, labels: Tensor, plan: Plan) -> tuple[Tensor, Tensor]:
    if not plan.kernels:
        return _block_rows.statistics(logits, labels, plan.finish)
    # Imported when first needed: a machine without a GPU need not have Triton.
    from ._rows import statistics

    return statistics(logits, labels, plan.finish)


def _ranks(logits: Tensor, labels: Tensor, plan: Plan) -> Tensor:
    assert plan.temperature is not None
    if not plan.kernels:
        return _block_ranks.ranks(logits, labels, plan.temperature, plan.finish)
    from ._ranks import ranks

    return ranks(logits, labels, plan.temperature, plan.finish)


def _turn_(
    logits: Tensor,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: tuple[Tensor | None, ...],
    part: Part,
    plan: Plan,
) -> None:
    """Write the gradient of some columns of the logits over them."""
    finish = plan.finish
    if plan.temperature is None:
        if plan.kernels:
            from ._row_gradients import gradient

            gradient(
                logits, labels, table, predicted, upstream, part=part, finish=finish, in_place=True
            )
        else:
            _block_rows.gradient_(logits, labels, table, predicted, upstream, part, finish)
        return
    (by_rank,) = upstream
    assert by_rank is not None
    if plan.kernels:
        from ._rank_gradients import rank_gradient

        settings = (logits, labels, table, by_rank, plan.temperature)
        rank_gradient(*settings, part=part, finish=finish, in_place=True)
    else:
        rank = Ranked(by_rank, table, plan.temperature)
        _block_ranks.rank_gradient_(logits, labels, rank, part, finish)
