"""Who finds the statistics of rows, if not their definitions."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

Row = Callable[[str], Tensor]
"""A statistic of rows that kernels find, by its name."""


@dataclass(frozen=True)
class RowKernels:
    """A faster way to the statistics of rows: all of them in one pass over the logits.

    - `take`: whether they are in charge of these logits.
    - `statistics`: logits and labels in, statistics by the name of their property out.
    - `soft_rank`: logits, labels, a temperature and the other statistics in, the soft rank out.
    - `names`: of the statistics it finds, where it does not find all.
    """

    take: Callable[[Tensor], bool]
    statistics: Callable[[Tensor, Tensor], dict[str, Tensor]]
    soft_rank: Callable[[Tensor, Tensor, float, Row], Tensor]
    names: frozenset[str] | None = None


ROW_KERNELS: list[RowKernels] = []
"""Kernels by preference; they enter themselves here. Without any, definitions compute."""
