"""Who finds the statistics of rows, if not their definitions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

Row = Callable[[str], Tensor]
"""A statistic of rows that kernels find, by its name."""


@dataclass(frozen=True)
class RowKernels:
    """A faster way to the statistics of rows: all of them in one pass over the logits, or some.

    - `take`: whether they are in charge of these logits.
    - `statistics`: logits and labels in, statistics by the name of their property out.
    - `soft_rank`: logits, labels, a temperature and the other statistics in, the soft rank out.
    - `names`: of the statistics it finds, where it does not find all.
    - `on_request`: those that are found one by one, when they are asked for: logits, labels and
      the other statistics in. `mark`: the statistic that is there once one has been: from then on
      these kernels answer, with gradients on or off, since they know whether the logits are
      still what they were.
    """

    take: Callable[[Tensor], bool]
    statistics: Callable[[Tensor, Tensor], dict[str, Tensor]]
    soft_rank: Callable[[Tensor, Tensor, float, Row], Tensor]
    names: frozenset[str] | None = None
    on_request: dict[str, Callable[[Tensor, Tensor, Row], Tensor]] = field(default_factory=dict)
    mark: str | None = None


ROW_KERNELS: list[RowKernels] = []
"""Kernels by preference; they enter themselves here. Without any, definitions compute."""
