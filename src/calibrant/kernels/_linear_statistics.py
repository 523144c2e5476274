"""Statistics of logits that are never all there, on the graph of hidden states and classifier."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear as product

from ..predictions import Predictions
from ._linear_passes import Linear, Plan, look, pull_back
from ._stand_ins import stands_in
from ._table import DIFFERENTIABLE, KEPT

Gradients = tuple[Tensor | None, Tensor | None, Tensor | None, None, None]


def row_statistics(linear: Linear, labels: Tensor, plan: Plan) -> dict[str, Tensor]:
    """Everything the forward pass found, by the name `Predictions` gives it."""
    *rows, predicted = _Looked.apply(*linear, labels, plan)  # type: ignore[no-untyped-call]
    return {**dict(zip(KEPT, rows, strict=True)), "predicted": predicted}


def soft_rank(linear: Linear, labels: Tensor, plan: Plan) -> Tensor:
    """What `Predictions.soft_rank` defines."""
    rank: Tensor = _Looked.apply(*linear, labels, plan)[0]  # type: ignore[no-untyped-call]
    return rank


class _Looked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, plan: Plan
    ) -> tuple[Tensor, ...]:
        # Products are in the precision the plan names, whatever the surroundings.
        with torch.autocast(hidden.device.type, enabled=False):
            table, predicted = look(Linear(hidden, weight, bias), labels, plan)
        ctx.plan = plan
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(hidden, weight, bias, labels, table, predicted)
        if plan.temperature is not None:
            return (table[0],)
        rows = table[: len(KEPT)].unbind(0)
        ctx.mark_non_differentiable(rows[-1], predicted)
        return *rows, predicted

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> Gradients:
        hidden, weight, bias, labels, table, predicted = ctx.saved_tensors
        linear, plan = Linear(hidden, weight, bias), ctx.plan
        given = upstream[: 1 if plan.temperature is not None else len(DIFFERENTIABLE)]
        if all(each is None for each in given):
            return None, None, None, None, None
        if torch.is_grad_enabled() or any(stands_in(each) for each in given if each is not None):
            # Somebody differentiates the gradient, or wants many: it is derived in operators, from
            # all logits.
            return *_by_definition(linear, labels, given, plan), None, None
        with torch.autocast(hidden.device.type, enabled=False):
            found = pull_back(
                linear, labels, table, predicted, given, plan, ctx.needs_input_grad[:3]
            )
        return *found, None, None


def _by_definition(
    linear: Linear, labels: Tensor, upstream: tuple[Tensor | None, ...], plan: Plan
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    parts = [part for part in linear if part is not None]

    def statistics_of(*parts: Tensor) -> tuple[Tensor, ...]:
        plain = predictions_of(Linear(*parts, *[None] * (3 - len(parts))), labels, None, plan)
        if plan.temperature is not None:
            return (plain.soft_rank(plan.temperature),)
        names = zip(DIFFERENTIABLE, upstream, strict=True)
        return tuple(getattr(plain, name) for name, each in names if each is not None)

    given = tuple(each for each in upstream if each is not None)
    found = torch.func.vjp(statistics_of, *parts)[1](given)
    return found[0], found[1], found[2] if len(found) == 3 else None


def predictions_of(
    linear: Linear, labels: Tensor, weights: Tensor | None, plan: Plan
) -> Predictions:
    """The definition: ordinary predictions, whose logits are all there."""
    logits = plan.finish.applied(product(*linear.of(plan.dtype)))
    return Predictions._unchecked(logits, labels, weights)
