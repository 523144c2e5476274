"""ESD of a training batch in two launches: every pair is looked at, and none is stored.

Sorting takes fewer operations, but launches that wait for each other, and a scan that one program
makes; pairs are looked at by all multiprocessors at once.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._launch import on_device_of
from ._table import MOST_PAIRED, arithmetic

# Samples a program looks after, and how many others it compares them with at once.
_ROWS, _COLUMNS = 16, 128


@triton.jit  # type: ignore[untyped-decorator]
def _sums_below(  # type: ignore[no-untyped-def]
    confidence, outcome, scratch, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """For each sample the gaps of the others at or below it, and its share of the total."""
    below, terms = scratch, scratch + n
    dtype = scratch.dtype.element_ty
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = i < n
    c = tl.load(confidence + i, mask=here, other=0.0)
    gap = (tl.load(outcome + i, mask=here, other=0.0) - c).to(dtype)
    # Added up column by column: a sum over each tile would cost more than the tile, and sums of
    # few numbers, added up in pairs at the end, lose few digits.
    gaps = tl.zeros((ROWS, COLUMNS), dtype)
    squares = tl.zeros((ROWS, COLUMNS), dtype)
    for start in range(0, n, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        there = j < n
        # What lies beyond the last sample has no gap.
        other = tl.load(confidence + j, mask=there, other=0.0)
        other_gap = (tl.load(outcome + j, mask=there, other=0.0) - other).to(dtype)
        lower = tl.where(other[None, :] <= c[:, None], 1.0, 0.0).to(dtype)
        gaps += lower * other_gap[None, :]
        squares += lower * (other_gap * other_gap)[None, :]
    # A sample is at or below itself, and not one of the others.
    own = gap.to(tl.float64)
    sums = tl.sum(gaps, axis=1).to(tl.float64) - own
    spread = tl.sum(squares, axis=1).to(tl.float64) - own * own
    tl.store(below + i, sums, mask=here)
    term = tl.where(here, sums * sums - spread, 0.0)
    tl.store(terms + tl.program_id(0), tl.sum(term, axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def _gradient(  # type: ignore[no-untyped-def]
    confidence,
    outcome,
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
    below, terms = scratch, scratch + n
    dtype = scratch.dtype.element_ty
    count = n.to(tl.float64)
    triples = count * (count - 1) * (count - 2)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = i < n
    c = tl.load(confidence + i, mask=here, other=0.0)
    gap = (tl.load(outcome + i, mask=here, other=0.0) - c).to(tl.float64)
    total = tl.zeros((ROWS, COLUMNS), dtype)
    above = tl.zeros((ROWS, COLUMNS), dtype)
    for start in range(0, n, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        there = j < n
        # What lies beyond the last sample is above none.
        other = tl.load(confidence + j, mask=there, other=float("-inf"))
        sums = tl.load(below + j, mask=there, other=0.0)
        higher = tl.where(other[None, :] >= c[:, None], 1.0, 0.0).to(dtype)
        total += higher * sums[None, :]
        above += higher
    others = tl.sum(total, axis=1).to(tl.float64) - tl.load(below + i, mask=here, other=0.0)
    squares = gap * (tl.sum(above, axis=1).to(tl.float64) - 1)
    gradient = 2.0 * (others - squares) / triples
    tl.store(by_outcome + i, gradient, mask=here)
    tl.store(by_confidence + i, -gradient, mask=here)
    if tl.program_id(0) == 0:
        block = tl.arange(0, BLOCKS)
        parts = tl.load(terms + block, mask=block * ROWS < n, other=0.0).to(tl.float64)
        tl.store(value, tl.sum(parts, axis=0) / triples)


def esd_with_gradient(confidence: Tensor, outcome: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ESD with its gradient by confidence and by outcome, as in docs/derivations/sorting.md."""
    n = len(confidence)
    blocks = triton.cdiv(n, _ROWS)
    confidence, outcome = confidence.contiguous(), outcome.to(confidence.dtype).contiguous()
    scratch = torch.empty(n + blocks, dtype=arithmetic(confidence.dtype), device=confidence.device)
    value = confidence.new_empty(())
    by_confidence, by_outcome = torch.empty_like(confidence), torch.empty_like(confidence)
    with on_device_of(confidence):
        _sums_below[(blocks,)](confidence, outcome, scratch, n, ROWS=_ROWS, COLUMNS=_COLUMNS)
        _gradient[(blocks,)](
            confidence,
            outcome,
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
