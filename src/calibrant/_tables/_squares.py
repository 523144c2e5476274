"""The sum of the squares of each row of a table."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ._blocks import blocks, by_rows, in_numpy, side_by_side

# Caches a core fills at a time: a block is read once, and little is kept of it.
_READ = 8
# A dot product adds number to number in some dozens of lanes: of more columns than these the last
# digits would suffer. Of columns that lie apart it is slow.
_COLUMNS = 4096


def squares_of_rows(table: Float[Tensor, "n classes"]) -> Float[Tensor, " n"]:
    """Where only values are asked of plain memory, without a table of squares."""
    if table.shape[1] > _COLUMNS or not in_numpy(table) or not table.is_contiguous():
        return by_rows(lambda rows: rows.square().sum(dim=1), table)
    numbers = table.numpy(force=True)
    found = np.empty(len(numbers), dtype=numbers.dtype)

    def add(rows: slice) -> None:
        np.vecdot(numbers[rows], numbers[rows], out=found[rows])

    side_by_side(add, list(blocks(table, _READ)))
    return torch.from_numpy(found)
