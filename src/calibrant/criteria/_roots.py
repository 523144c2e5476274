"""Roots that can be trained through."""

from typing import Any

import torch
from torch import Tensor, where

from .._checks import is_transforming

# Below this a root is followed along a straight line: its true slope grows without bound.
FLOOR = 1e-12


def root(x: Tensor, order: float = 2.0) -> Tensor:
    r"""The root $\max(x, 0)^{1/p}$, exact in value and bounded in gradient.

    - `order`: which root, $p \ge 1$.

    The gradient is exact above $10^{-12}$, constant between there and zero, and zero at or
    below zero, where an unbiased estimate may fall.

    >>> x = torch.tensor([4.0, 0.0, -1.0], requires_grad=True)
    >>> root(x).sum().backward()
    >>> x.grad
    tensor([0.2500, 0.0000, 0.0000])
    """
    if torch.compiler.is_compiling():
        return _in_operators(x, order)
    # The form that transforms need takes Python some time to call, so only they call it.
    form = _Transformable if is_transforming() else _Root
    taken: Tensor = form.apply(x, order)  # type: ignore[no-untyped-call]
    return taken


def _in_operators(x: Tensor, order: float) -> Tensor:
    """The same for a compiler, which merges small operators but stumbles over functions."""
    positive = where(x > 0, x, 0 * x)
    curved = x.clamp(min=FLOOR) ** (1 / order)
    straight = positive * (FLOOR ** (1 / order - 1) / order)
    trained = where(x > FLOOR, curved, straight)
    return trained + (positive ** (1 / order) - trained).detach()


class _Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, order: float) -> Tensor:
        ctx.order = order
        ctx.save_for_backward(x)
        return _of_positive(x, order)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        slope = x.clamp(min=FLOOR) ** (1 / ctx.order - 1) / ctx.order
        return where(x > 0, upstream * slope, 0), None


class _Transformable(torch.autograd.Function):
    """The same where `vmap`, `grad` and their like can see it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, order: float) -> Tensor:
        return _of_positive(x, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        x, ctx.order = inputs
        ctx.save_for_backward(x)

    backward = _Root.backward


def _of_positive(x: Tensor, order: float) -> Tensor:
    return x.clamp(min=0) ** (1 / order)
