"""What is read off the rows of a table."""

import numpy as np
import torch
from torch import Tensor

from .._checks import widest
from .._tables import Vector, in_numpy

# Numbers whose logarithms one thread has found before others are awake.
_FEW = 2**17
# Zeros and ones that float32 adds up without rounding, in whatever order.
_EXACT = 2**24


def entropy_of(probs: Tensor, log_probs: Tensor) -> Tensor:
    # A class ruled out by a logit of minus infinity has no share in the entropy.
    return (probs * torch.where(probs > 0, -log_probs, 0)).sum(dim=1)


def log_of(probabilities: Tensor, *, in_place: bool = False) -> Tensor:
    """Logarithms, a zero's being that of the smallest normal number.

    - `in_place`: whether nobody else has these probabilities, so that they may be overwritten.
    """
    if probabilities.numel() <= _FEW and in_numpy(probabilities):
        given = probabilities.numpy(force=True)
        return torch.from_numpy(log_of_numbers(given, out=given if in_place else None))
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()


def log_of_numbers(given: Vector, *, out: Vector | None) -> Vector:
    """The same as NumPy has it."""
    smallest = np.finfo(given.dtype).tiny
    # To ask whether any is that small takes less than to compare and write each.
    if np.minimum.reduce(given, None, initial=smallest) != smallest:  # as NaN is not
        given = np.maximum(given, smallest, out=out)
    return np.log(given, out=out)


def is_class(index: Tensor, classes: int, dtype: torch.dtype) -> Tensor:
    """One in the column that `index` names for each row, and zeros beside it."""
    # Compared, since torch's `one_hot` looks at values, which transforms and devices cannot.
    return (index[:, None] == torch.arange(classes, device=index.device)).to(dtype)


def column_of(table: Tensor, index: Tensor) -> Tensor:
    """The entry of each row in the column that `index` names for it."""
    # Squeezed, not indexed: the gradient of an index is a table of zeros to be filled.
    return table.gather(1, index[:, None]).squeeze(1)


def count_of(zeros_and_ones: Tensor) -> Tensor:
    """How many are ones, exactly, in the widest type."""
    # In their own type first, which reads each once and copies none.
    counts = [part.sum() for part in zeros_and_ones.split(_EXACT)]
    return torch.stack(counts).to(widest(zeros_and_ones.device)).sum()
