"""Columns of whole numbers compared and converted, by NumPy where it can.

Waking torch's threads takes longer than that, and much longer where cores are busy.
"""

import numpy as np
import torch
from torch import Tensor

from .._checks import numbers_of

# What NumPy calls the kinds of floating point that it has too.
_KINDS = {torch.float32: np.float32, torch.float64: np.float64}


def as_floats(whole: Tensor, dtype: torch.dtype) -> Tensor:
    """Integers or truth values, which have no gradient, as floating point."""
    numbers = numbers_of(whole) if dtype in _KINDS else None
    return whole.to(dtype) if numbers is None else torch.from_numpy(numbers.astype(_KINDS[dtype]))


def same_class(index: Tensor, labels: Tensor, dtype: torch.dtype) -> Tensor:
    """1 where both name the same class, else 0."""
    named, truth = numbers_of(index), numbers_of(labels)
    if named is None or truth is None or dtype not in _KINDS:
        return (index == labels).to(dtype)
    return torch.from_numpy((named == truth).astype(_KINDS[dtype]))
