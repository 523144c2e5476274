"""Statistics of rows on the CPU, where gradients are asked: some rows at a time, both ways.

Nothing is as large as the logits but their gradient.
"""

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .._checks import is_plain
from .._tables import blocks_of
from ..predictions import Row, RowKernels
from . import _block_rows, _switch
from ._passes import Passes
from ._row_statistics import CHANNEL, rank_through, row_statistics
from ._soft_rank import soft_rank
from ._table import RANK_TABLE, TABLE, Ranked, arithmetic

# Below this a table of log-probabilities stays in the cache, and torch operators, which need no
# Python on the way back, are done first.
_WORTH_IT = 2**18

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _takes(logits: Tensor) -> bool:
    """Whether these are worth blocks, and a gradient is recorded on plain memory of the CPU."""
    return (
        _switch._choice != "definition"
        and logits.numel() >= _WORTH_IT
        and logits.requires_grad
        and torch.is_grad_enabled()
        and logits.dtype in _FLOATS
        and is_plain(logits)
        and forward_ad.unpack_dual(logits).tangent is None
    )


def _statistics(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    table = logits.new_empty(len(TABLE), len(logits), dtype=arithmetic(logits.dtype))
    predicted = labels.new_empty(len(logits), dtype=torch.int64)
    for rows, some in blocks_of(logits):
        table[:, rows], predicted[rows] = _block_rows.statistics(some, labels[rows])
    return table, predicted


def _gradient(
    logits: Tensor,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: tuple[Tensor | None, ...],
    *,
    rank: Ranked | None = None,
    in_place: bool = False,
) -> Tensor:
    found = logits if in_place else torch.empty_like(logits)
    for rows, some in blocks_of(logits):
        _block_rows.write_gradient(
            found[rows],
            some,
            labels[rows],
            table[:, rows],
            predicted[rows],
            tuple(None if each is None else each[rows] for each in upstream),
            rank=None if rank is None else rank.of(rows),
        )
    return found


def _ranks(
    logits: Tensor, labels: Tensor, temperature: float, known: Tensor | None = None
) -> Tensor:
    table = logits.new_empty(RANK_TABLE, len(logits), dtype=arithmetic(logits.dtype))
    for rows, some in blocks_of(logits):
        own = None if known is None else known[:, rows]
        table[:, rows] = _block_rows.ranks(some, labels[rows], temperature, known=own)
    return table


def _rank_gradient(
    logits: Tensor, labels: Tensor, table: Tensor, upstream: Tensor, temperature: float
) -> Tensor:
    found = torch.empty_like(logits)
    whole = Ranked(upstream, table, temperature)
    for rows, some in blocks_of(logits):
        _block_rows.write_rank_gradient(found[rows], some, labels[rows], whole.of(rows))
    return found


_BY_BLOCKS = Passes(_statistics, _gradient, _ranks, _rank_gradient)


def _row_statistics(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    return row_statistics(logits, labels, _BY_BLOCKS)


def _soft_rank(logits: Tensor, labels: Tensor, temperature: float, row: Row) -> Tensor:
    rank = rank_through(row(CHANNEL), logits, labels, temperature)
    return soft_rank(logits, labels, temperature, _BY_BLOCKS) if rank is None else rank


ON_CPU_GRAPH = RowKernels(_takes, _row_statistics, _soft_rank)
"""All statistics in one pass, and one gradient of the logits for all of them."""
