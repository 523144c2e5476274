"""Statistics of rows on the CPU, where gradients are asked: some rows at a time, both ways.

Nothing is as large as the logits but their gradient. What takes a second look at the logits is
found only where it is asked for.
"""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from .._checks import is_plain
from .._tables._blocks import blocks
from ..predictions import Row, RowKernels
from . import _switch
from ._cpu_blocks import Rooms, ranks, write_gradient, write_statistics
from ._passes import Passes
from ._row_statistics import CHANNEL, rank_through, row_statistics
from ._slopes import Slopes, slopes_of
from ._soft_rank import soft_rank
from ._stand_ins import stands_in
from ._table import KEPT, Ranked, arithmetic

# Below this tables of log-probabilities stay in the cache, and torch operators, which need no
# Python on the way back, are done first.
_WORTH_IT = 2**20
# Caches that a block fills: every operator takes its time to begin, and much more where threads
# are brought together at its end. Two megabytes, and 32 for all threads.
_ALONE, _TOGETHER = 4, 64

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
        and not stands_in(logits)
    )


def _takes_some(logits: Tensor) -> bool:
    # Logits that are written over can have one gradient only, which is that of everything.
    return not _switch._in_place and _takes(logits)


def _blocks(logits: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Some rows after others, each row in one piece: equal rows are then added up alike."""
    dtype = arithmetic(logits.dtype)
    for rows in blocks(logits, _ALONE if torch.get_num_threads() == 1 else _TOGETHER):
        yield rows, logits.detach()[rows].to(dtype).contiguous()


def _statistics(names: tuple[str, ...], logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    table = logits.new_empty(len(names), len(logits), dtype=arithmetic(logits.dtype))
    predicted = labels.new_empty(len(logits), dtype=torch.int64)
    found, rooms = dict(zip(names, table, strict=True)), Rooms()
    for rows, z in _blocks(logits):
        some = {name: each[rows] for name, each in found.items()}
        write_statistics(some, predicted[rows], z, labels[rows], rooms)
    found["confidence"].exp_()
    found["correct"].copy_(predicted == labels)
    return table, predicted


def _gradient(
    names: tuple[str, ...],
    logits: Tensor,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: tuple[Tensor | None, ...],
    *,
    rank: Ranked | None = None,
    in_place: bool = False,
) -> Tensor:
    named = zip(names, upstream, strict=False)  # the last has no gradient
    given = {name: each for name, each in named if each is not None}
    known = dict(zip(names, table, strict=True))
    slopes = slopes_of(known, given, labels, predicted, logits.shape[1])
    return _written(logits if in_place else torch.empty_like(logits), logits, labels, slopes, rank)


def _written(
    found: Tensor, logits: Tensor, labels: Tensor, slopes: Slopes, rank: Ranked | None
) -> Tensor:
    rooms = Rooms()
    for rows, z in _blocks(logits):
        of_rank = None if rank is None else rank.of(rows)
        write_gradient(found[rows], z, labels[rows], slopes.of(rows), of_rank, rooms)
    return found


def _ranks(
    logits: Tensor, labels: Tensor, temperature: float, known: Tensor | None = None
) -> Tensor:
    table = logits.new_empty(1, len(logits), dtype=arithmetic(logits.dtype))
    rooms = Rooms()
    for rows, z in _blocks(logits):
        table[0, rows] = ranks(z, labels[rows], temperature, rooms)
    return table


def _rank_gradient(
    logits: Tensor, labels: Tensor, table: Tensor, upstream: Tensor, temperature: float
) -> Tensor:
    nothing_else = Slopes(torch.zeros_like(upstream))
    rank = Ranked(upstream, table, temperature)
    return _written(torch.empty_like(logits), logits, labels, nothing_else, rank)


def _passes(*names: str) -> Passes:
    return Passes(
        names, partial(_statistics, names), partial(_gradient, names), _ranks, _rank_gradient
    )


_FIRST = _passes("true_log_prob", "confidence", "mean_log_prob", "correct")
_ALL = _passes(*KEPT)


def _soft_rank(logits: Tensor, labels: Tensor, temperature: float, row: Row) -> Tensor:
    rank = rank_through(row(CHANNEL), logits, labels, temperature)
    return soft_rank(logits, labels, temperature, _ALL) if rank is None else rank


ON_CPU_GRAPH = (
    RowKernels(
        _takes_some,
        partial(row_statistics, passes=_FIRST),
        _soft_rank,
        frozenset({*_FIRST.finds, "predicted", CHANNEL, "soft_rank"}),
    ),
    RowKernels(_takes, partial(row_statistics, passes=_ALL), _soft_rank),
)
"""What most objectives ask for in one pass; with entropy or squares all statistics in one."""
