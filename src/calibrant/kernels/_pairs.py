"""ESD of a training batch in two launches: every pair is looked at, and none is stored.

Sorting takes fewer operations, but some thirty launches, and at the size of a batch launches
are all it costs.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._launch import on_device_of
from ._table import MOST_PAIRED

# Samples a program looks after, and how many others it compares them with at once.
_ROWS, _COLUMNS = 16, 256


@triton.jit  # type: ignore[untyped-decorator]
def _sums_below(  # type: ignore[no-untyped-def]
    confidence, outcome, scratch, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """For each sample the gaps of the others at or below it, and its share of the total."""
    below, own, terms = scratch, scratch + n, scratch + 2 * n
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = i < n
    c = tl.load(confidence + i, mask=here, other=0.0)
    gap = (tl.load(outcome + i, mask=here, other=0.0) - c).to(tl.float64)
    # Added up pair by pair: a sum over each tile would cost more than the tile.
    total = tl.zeros((ROWS, COLUMNS), tl.float64)
    above = tl.zeros((ROWS, COLUMNS), tl.int32)
    for start in range(0, n, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        there = j < n
        other = tl.load(confidence + j, mask=there, other=0.0)
        other_gap = (tl.load(outcome + j, mask=there, other=0.0) - other).to(tl.float64)
        pair = (i[:, None] != j[None, :]) & there[None, :]
        lower = pair & (other[None, :] <= c[:, None])
        total += tl.where(lower, other_gap[None, :], 0.0)
        above += (pair & (other[None, :] >= c[:, None])).to(tl.int32)
    sums = tl.sum(total, axis=1)
    own_squares = gap * tl.sum(above, axis=1)
    tl.store(below + i, sums, mask=here)
    tl.store(own + i, own_squares, mask=here)
    term = tl.where(here, sums * sums - gap * own_squares, 0.0)
    tl.store(terms + tl.program_id(0), tl.sum(term, axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def _gradient(  # type: ignore[no-untyped-def]
    confidence,
    scratch,
    value,
    by_confidence,
    by_outcome,
    n,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """For each sample the sums of the others at or above it; the first block adds the value."""
    below, own, terms = scratch, scratch + n, scratch + 2 * n
    count = n.to(tl.float64)
    triples = count * (count - 1) * (count - 2)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = i < n
    c = tl.load(confidence + i, mask=here, other=0.0)
    total = tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(0, n, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        there = j < n
        other = tl.load(confidence + j, mask=there, other=0.0)
        sums = tl.load(below + j, mask=there, other=0.0)
        pair = (i[:, None] != j[None, :]) & there[None, :]
        higher = pair & (other[None, :] >= c[:, None])
        total += tl.where(higher, sums[None, :], 0.0)
    gradient = 2.0 * (tl.sum(total, axis=1) - tl.load(own + i, mask=here, other=0.0)) / triples
    tl.store(by_outcome + i, gradient, mask=here)
    tl.store(by_confidence + i, -gradient, mask=here)
    if tl.program_id(0) == 0:
        block = tl.arange(0, BLOCKS)
        parts = tl.load(terms + block, mask=block * ROWS < n, other=0.0)
        tl.store(value, tl.sum(parts, axis=0) / triples)


def esd_with_gradient(confidence: Tensor, outcome: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ESD with its gradient by confidence and by outcome, as in docs/derivations/sorting.md."""
    n = len(confidence)
    blocks = triton.cdiv(n, _ROWS)
    confidence, outcome = confidence.contiguous(), outcome.to(confidence.dtype).contiguous()
    scratch = torch.empty(2 * n + blocks, dtype=torch.float64, device=confidence.device)
    value = confidence.new_empty(())
    by_confidence, by_outcome = torch.empty_like(confidence), torch.empty_like(confidence)
    with on_device_of(confidence):
        _sums_below[(blocks,)](confidence, outcome, scratch, n, ROWS=_ROWS, COLUMNS=_COLUMNS)
        _gradient[(blocks,)](
            confidence,
            scratch,
            value,
            by_confidence,
            by_outcome,
            n,
            ROWS=_ROWS,
            COLUMNS=_COLUMNS,
            BLOCKS=MOST_PAIRED // _ROWS,
        )
    return value, by_confidence, by_outcome
