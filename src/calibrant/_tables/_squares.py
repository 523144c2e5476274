"""The sum of the squares of each row of a table."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ._blocks import blocks, by_rows, in_numpy, side_by_side

# Caches a core fills at a time: a block is read once, and little is kept of it.
_READ = 8
# NumPy adds number to number. Of more than these at once the last digits would suffer.
_COLUMNS = 128


def squares_of_rows(table: Float[Tensor, "n classes"]) -> Float[Tensor, " n"]:
    """Where only values are asked of plain memory, without a table of squares."""
    if not in_numpy(table):
        return by_rows(lambda rows: rows.square().sum(dim=1), table)
    numbers = table.numpy(force=True)
    found = np.zeros(len(numbers), dtype=numbers.dtype)

    def add(rows: slice) -> None:
        for first in range(0, numbers.shape[1], _COLUMNS):
            some = numbers[rows, first : first + _COLUMNS]
            found[rows] += np.einsum("ij,ij->i", some, some)

    side_by_side(add, list(blocks(table, _READ)))
    return torch.from_numpy(found)
