"""The same passes as operators of torch, which a compiler takes into its graph as they are."""

from typing import Any

import torch
from torch import Tensor

from ._finish import Finish
from ._linear_passes import Linear, Plan, look, pull_back
from ._table import DIFFERENTIABLE, KEPT, RANK_TABLE, TABLE, arithmetic


@torch.library.custom_op("calibrant::linear_statistics", mutates_args=())
def _looked(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    scale: float,
    softcap: float | None,
    dtype: torch.dtype,
    temperature: float | None,
    chunk: int,
    kernels: bool,
) -> tuple[Tensor, Tensor]:
    plan = Plan(Finish(scale, softcap), dtype, temperature, chunk, kernels)
    with torch.autocast(hidden.device.type, enabled=False):
        return look(Linear(hidden, weight, bias), labels, plan)


@_looked.register_fake
def _(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    scale: float,
    softcap: float | None,
    dtype: torch.dtype,
    temperature: float | None,
    chunk: int,
    kernels: bool,
) -> tuple[Tensor, Tensor]:
    n = hidden.shape[0]
    height = len(TABLE) if temperature is None else RANK_TABLE
    table = hidden.new_empty(height, n, dtype=arithmetic(dtype))
    return table, labels.new_empty(n if temperature is None else 0)


@torch.library.custom_op("calibrant::linear_gradient", mutates_args=())
def _pulled_back(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: Tensor,
    scale: float,
    softcap: float | None,
    dtype: torch.dtype,
    temperature: float | None,
    chunk: int,
    kernels: bool,
    wanted: list[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    plan = Plan(Finish(scale, softcap), dtype, temperature, chunk, kernels)
    rows = upstream.unbind(0)[: 1 if temperature is not None else len(DIFFERENTIABLE)]
    with torch.autocast(hidden.device.type, enabled=False):
        found = pull_back(
            Linear(hidden, weight, bias),
            labels,
            table,
            predicted,
            rows,
            plan,
            (wanted[0], wanted[1], wanted[2]),
        )
    nothing = hidden.new_empty(0)
    by_hidden, by_weight, by_bias = (nothing.clone() if each is None else each for each in found)
    return by_hidden, by_weight, by_bias


@_pulled_back.register_fake
def _(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: Tensor,
    scale: float,
    softcap: float | None,
    dtype: torch.dtype,
    temperature: float | None,
    chunk: int,
    kernels: bool,
    wanted: list[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    by_hidden, by_weight, by_bias = (
        torch.empty_like(part) if asked and part is not None else hidden.new_empty(0)
        for part, asked in zip((hidden, weight, bias), wanted, strict=True)
    )
    return by_hidden, by_weight, by_bias


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    hidden, weight, bias, labels, *ctx.settings = inputs
    ctx.save_for_backward(hidden, weight, bias, labels, *output)


def _backward(ctx: Any, upstream: Tensor, _: object) -> tuple[Tensor | None, ...]:
    wanted = list(ctx.needs_input_grad[:3])
    found = _pulled_back(*ctx.saved_tensors, upstream, *ctx.settings, wanted)
    asked = (each if want else None for each, want in zip(found, wanted, strict=True))
    return *asked, None, None, None, None, None, None, None


_looked.register_autograd(_backward, setup_context=_keep)


def row_statistics(linear: Linear, labels: Tensor, plan: Plan) -> dict[str, Tensor]:
    """Everything the forward pass finds, by the name `Predictions` gives it."""
    table, predicted = _looked(*linear, labels, *plan.finish, *plan[1:])
    rows = dict(zip(TABLE, table.unbind(0), strict=True))
    return {name: rows[name] for name in KEPT} | {"predicted": predicted}


def soft_rank(linear: Linear, labels: Tensor, plan: Plan) -> Tensor:
    """What `Predictions.soft_rank` defines."""
    table: Tensor = _looked(*linear, labels, *plan.finish, *plan[1:])[0]
    return table[0]
