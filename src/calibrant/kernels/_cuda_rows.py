"""Statistics of rows on CUDA: eager code launches the kernels, a compiler is given operators."""

import torch
from torch import Tensor

from ..predictions import Row, RowKernels
from . import _operators
from ._passes import Passes
from ._row_statistics import CHANNEL, rank_through, row_statistics
from ._soft_rank import soft_rank
from ._switch import in_charge
from ._table import KEPT

# Below this a pass over the logits is over before Python has launched the next, and torch
# operators, which need no Python on the way back, are done first.
_WORTH_IT = 2**24


def _takes(logits: Tensor) -> bool:
    return in_charge(logits, least=_WORTH_IT)


def _passes() -> Passes:
    # Imported when first needed: a machine without a GPU need not have Triton.
    from ._rank_gradients import rank_gradient
    from ._ranks import ranks
    from ._row_gradients import gradient
    from ._rows import statistics

    return Passes(KEPT, statistics, gradient, ranks, rank_gradient)


def _row_statistics(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    if torch.compiler.is_compiling():
        return _operators.row_statistics(logits, labels)
    return row_statistics(logits, labels, _passes())


def _soft_rank(logits: Tensor, labels: Tensor, temperature: float, row: Row) -> Tensor:
    if torch.compiler.is_compiling():
        return _operators.soft_rank(logits, labels, temperature)
    rank = rank_through(row(CHANNEL), logits, labels, temperature)
    return soft_rank(logits, labels, temperature, _passes()) if rank is None else rank


ON_CUDA = RowKernels(_takes, _row_statistics, _soft_rank)
"""All statistics in one pass."""
