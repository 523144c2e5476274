"""One entry of each row, named by its class: read, found among some columns, and added to."""

import torch
from torch import Tensor

from ._tiles import Part


def entry(table: Tensor, column: Tensor) -> Tensor:
    """The entry of each row in the column that is named for it."""
    return table.gather(1, column[:, None]).squeeze(1)


def place(column: Tensor, part: Part, width: int) -> tuple[Tensor, Tensor | None]:
    """Where a class stands in each row, and whether it does, if that can be asked."""
    if part.classes is None:
        return column[:, None], None
    found = column[:, None] - part.first
    inside = (found >= 0) & (found < width)
    return torch.where(inside, found, 0), inside


def add_at(table: Tensor, column: Tensor, added: Tensor, part: Part) -> None:
    """Add to one entry of each row, where it lies among these columns."""
    where, inside = place(column, part, table.shape[1])
    table.scatter_add_(1, where, added if inside is None else torch.where(inside, added, 0))
