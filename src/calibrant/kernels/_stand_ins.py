"""Tensors that have no plain memory of their own."""

from torch import Tensor
from torch.autograd import forward_ad

from .._checks import is_transformed


def stands_in(x: Tensor) -> bool:
    """Whether `x` is no plain tensor but one of a function transform, or a dual number."""
    return is_transformed(x) or forward_ad.unpack_dual(x).tangent is not None
