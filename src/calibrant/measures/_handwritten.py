"""Measures whose gradient is written by hand, because it is cheaper than recording theirs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .._checks import is_transformed

Definition = Callable[[Tensor, Tensor], Tensor]
"""The measure in torch operators: `(confidence, outcome)` in, its value out."""

WithGradient = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]
"""The same, with its gradient by confidence and by outcome."""


@dataclass(frozen=True)
class Twin:
    """A faster form on CUDA, for as many samples as it is faster for."""

    with_gradient: WithGradient
    up_to: int

    def takes(self, confidence: Tensor) -> bool:
        """Whether these are numbers on a GPU, not a stand-in of a function transform."""
        return (
            confidence.is_cuda and len(confidence) <= self.up_to and not is_transformed(confidence)
        )


TWINS: dict[Definition, Twin] = {}
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
    twin = TWINS.get(definition)
    if twin is not None and twin.takes(confidence):
        with_gradient = twin.with_gradient
    value: Tensor = _HandWritten.apply(  # type: ignore[no-untyped-call]
        confidence, outcome, definition, with_gradient
    )[0]
    return value


class _HandWritten(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        confidence: Tensor, outcome: Tensor, definition: Definition, with_gradient: WithGradient
    ) -> tuple[Tensor, Tensor, Tensor]:
        return with_gradient(confidence, outcome)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        confidence, outcome, ctx.definition, _ = inputs
        _, *gradients = output
        ctx.mark_non_differentiable(*gradients)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(confidence, outcome, *gradients)

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
