"""Curves that are level between steps, one for each of several events."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.floating[Any]]


class Curve(NamedTuple):
    """Where a curve steps, ascending; its levels, one more; the weight of samples behind each."""

    steps: Floats
    levels: Floats
    mass: Floats

    def tamed(self, classes: int) -> "Curve":
        r"""Levels no nearer to 0 and 1 than samples can speak for.

        Where nothing happened a level says zero, whose logarithm is infinite. By Laplace's rule
        of succession $N$ samples without a hit leave $1 / (N + 2)$, here shared among the classes.
        """
        least = 1 / (classes * (self.mass + 2))
        return Curve(self.steps, self.levels.clip(least, 1 - least), self.mass)


# Numbers looked up at once; a search keeps an index for each.
_AT_ONCE = 2**22


def stacked(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Tensor, Tensor]:
    """Curves as two tables, one row each, as `looked_up` takes them.

    Steps that a curve does not have are at infinity. There are one less than a power of two, so
    that every search halves them evenly.
    """
    most = max(len(steps) for steps, _ in curves)
    width = 2 ** most.bit_length() - 1
    steps = np.full((len(curves), width), np.inf)
    levels = np.empty((len(curves), width + 1))
    for row, (at, level) in enumerate(curves):
        steps[row, : len(at)] = at
        levels[row, : len(level)] = level
        levels[row, len(level) :] = level[-1]
    return torch.from_numpy(steps), torch.from_numpy(levels)


def looked_up(x: Tensor, steps: Tensor, *levels: Tensor) -> tuple[Tensor, ...]:
    """The level of each column's curve at `x`, in each table; on a step, the one to its left.

    A search by halving in plain arithmetic, which every exporter knows, and which needs no more
    memory than a few numbers for each entry of `x`. One row of steps serves all columns.

    >>> steps, levels = stacked([(np.array([0.0, 1.0]), np.array([0.1, 0.5, 0.9]))])
    >>> looked_up(torch.tensor([[-1.0], [1.0], [3.0]]), steps, levels)[0].T
    tensor([[0.1000, 0.5000, 0.9000]], dtype=torch.float64)
    """
    rows = max(1, _AT_ONCE // x.shape[1])
    if not torch.compiler.is_compiling() and len(x) > rows:
        parts = [looked_up(part, steps, *levels) for part in x.split(rows)]
        return tuple(torch.cat(column) for column in zip(*parts, strict=True))
    width = steps.shape[1]
    first = torch.arange(len(steps), device=x.device)
    flat, place = steps.to(x.dtype).flatten(), torch.zeros_like(x, dtype=torch.int64)
    stride = (width + 1) // 2
    while stride:
        passed = flat[first * width + place + (stride - 1)] < x
        place = torch.where(passed, place + stride, place)
        stride //= 2
    place = first * (width + 1) + place
    return tuple(table.flatten()[place] for table in levels)
