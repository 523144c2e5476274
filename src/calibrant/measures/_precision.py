"""Sums in double precision: vectors are short next to the logits they came from."""

from math import frexp

from jaxtyping import Float
from torch import Tensor

from .._checks import widest


def widened(*vectors: Tensor) -> tuple[Tensor, ...]:
    """The same vectors in the widest type, so that a million terms add up exactly enough."""
    return tuple(vector.to(widest(vector.device)) for vector in vectors)


def in_proportion(weights: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The same weights, the largest about one: sums and cubes of them have room in every type.

    Divided by a power of two, which changes no digit.
    """
    _, power = frexp(float(weights.amax())) if weights.numel() else (0.0, 0)
    return weights * 2.0 ** -max(min(power, 1022), -1022)
