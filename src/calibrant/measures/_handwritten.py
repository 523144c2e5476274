"""Measures whose gradient is written by hand, because it is cheaper than recording theirs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .._checks import is_transforming

Definition = Callable[[Tensor, Tensor], Tensor]
"""The measure in torch operators: `(confidence, outcome)` in, its value out."""

WithGradient = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""The same, with its gradient by confidence and by outcome."""


@dataclass(frozen=True)
class Twin:
    """A faster form.

    - `with_gradient`: what computes it.
    - `takes`: whether it is in charge of these confidences.

    Both get the settings of the definition by keyword.
    """

    with_gradient: Callable[..., tuple[Tensor, Tensor, Tensor]]
    takes: Callable[..., bool]


TWINS: dict[Callable[..., Tensor], Twin] = {}
"""Faster twins by the definition they are tested against; the kernels enter themselves here."""


def hand_written(
    confidence: Tensor, outcome: Tensor, definition: Definition, with_gradient: WithGradient
) -> Tensor:
    """The value of a measure, on the graph, keeping only the gradient and not the work.

    `definition` stays in charge wherever the shortcut would not do: it is what a compiler
    sees, what gives the value alone, and what second derivatives are taken of.
    """
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return definition(confidence, outcome)
    value: Tensor
    if is_transforming():
        # The form that transforms need takes Python some time to call, so only they call it.
        value = _Transformable.apply(confidence, outcome, definition, with_gradient)[0]  # type: ignore[no-untyped-call]
    else:
        with_gradient = _twin_of(definition, confidence) or with_gradient
        value = _HandWritten.apply(confidence, outcome, definition, with_gradient)[0]  # type: ignore[no-untyped-call]
    return value


def _twin_of(definition: Definition, confidence: Tensor) -> WithGradient | None:
    plain: Callable[..., Tensor] = definition
    settings: dict[str, Any] = {}
    if isinstance(definition, partial):
        plain, settings = definition.func, definition.keywords
    twin = TWINS.get(plain)
    if twin is None or not twin.takes(confidence, **settings):
        return None
    return partial(twin.with_gradient, **settings) if settings else twin.with_gradient


class _HandWritten(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        confidence: Tensor,
        outcome: Tensor,
        definition: Definition,
        with_gradient: WithGradient,
    ) -> tuple[Tensor, Tensor, Tensor]:
        output = with_gradient(confidence, outcome)
        _keep(ctx, (confidence, outcome, definition, with_gradient), output)
        return output

    @staticmethod
    def backward(
        ctx: Any, upstream: Tensor | None, *_: None
    ) -> tuple[Tensor | None, Tensor | None, None, None]:
        if upstream is None:
            return None, None, None, None
        confidence, outcome, by_confidence, by_outcome = ctx.saved_tensors
        if torch.is_grad_enabled():
            # Somebody differentiates the gradient: it must be recorded, so it is derived anew.
            pull_back = torch.func.vjp(ctx.definition, confidence, outcome)[1]
            by_confidence, by_outcome = pull_back(upstream)
            return by_confidence, by_outcome, None, None
        wanted = ctx.needs_input_grad
        return (
            upstream * by_confidence if wanted[0] else None,
            upstream * by_outcome if wanted[1] else None,
            None,
            None,
        )


class _Transformable(torch.autograd.Function):
    """The same where `vmap`, `grad` and their like can see it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        confidence: Tensor, outcome: Tensor, definition: Definition, with_gradient: WithGradient
    ) -> tuple[Tensor, Tensor, Tensor]:
        return with_gradient(confidence, outcome)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        _keep(ctx, inputs, output)

    backward = _HandWritten.backward


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    confidence, outcome, ctx.definition, _ = inputs
    _, *gradients = output
    ctx.mark_non_differentiable(*gradients)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(confidence, outcome, *gradients)
