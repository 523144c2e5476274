"""ESD of a sorted batch in one launch: three passes of one program, a block at a time.

Beyond some ten thousand samples to look at every pair takes longer than to sort, and up to several
times as many one program is done before torch has launched the operators that it replaces.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._launch import on_device_of
from ._scans import first_of_tie, last_of_tie

BLOCK = 2048


@triton.jit  # type: ignore[untyped-decorator]
def _esd(  # type: ignore[no-untyped-def]
    confidence,
    order,
    outcome,
    sums,
    firsts,
    value,
    by_confidence,
    by_outcome,
    n,
    BLOCK: tl.constexpr,
):
    """Sums of gaps up to each sample; from each on, of those sums; and the gradient from both."""
    gaps, suffix = sums, sums + n
    lane = tl.arange(0, BLOCK)
    carry = tl.zeros((), tl.float64)
    squares = tl.zeros((), tl.float64)
    known = tl.zeros((), tl.int32)
    for start in range(0, n, BLOCK):
        k = start + lane
        here = k < n
        c = tl.load(confidence + k, mask=here, other=0.0)
        y = tl.load(outcome + tl.load(order + k, mask=here, other=0), mask=here, other=0.0)
        gap = tl.where(here, (y - c).to(tl.float64), 0.0)
        first = first_of_tie(confidence, k, here, known)
        tl.store(gaps + k, carry + tl.cumsum(gap, axis=0), mask=here)
        tl.store(firsts + k, first, mask=here)
        # Each sample counts for all the others at or above it.
        squares += tl.sum(gap * gap * (n - 1 - first), axis=0)
        carry += tl.sum(gap, axis=0)
        known = tl.max(tl.where(here, first, 0), axis=0)
    tl.debug_barrier()
    total = tl.zeros((), tl.float64)
    carry = tl.zeros((), tl.float64)
    known = tl.zeros((), tl.int32) + n - 1
    for turn in range(0, tl.cdiv(n, BLOCK)):
        k = (tl.cdiv(n, BLOCK) - 1 - turn) * BLOCK + lane
        here = k < n
        c = tl.load(confidence + k, mask=here, other=0.0)
        y = tl.load(outcome + tl.load(order + k, mask=here, other=0), mask=here, other=0.0)
        last = last_of_tie(confidence, k, here, n, known)
        below = tl.load(gaps + last, mask=here, other=0.0) - (y - c).to(tl.float64)
        below = tl.where(here, below, 0.0)
        tl.store(suffix + k, carry + tl.cumsum(below, axis=0, reverse=True), mask=here)
        total += tl.sum(below * below, axis=0)
        carry += tl.sum(below, axis=0)
        known = tl.min(last, axis=0)
    tl.debug_barrier()
    count = n.to(tl.float64)
    triples = count * (count - 1) * (count - 2)
    for start in range(0, n, BLOCK):
        k = start + lane
        here = k < n
        place = tl.load(order + k, mask=here, other=0)
        c = tl.load(confidence + k, mask=here, other=0.0)
        gap = (tl.load(outcome + place, mask=here, other=0.0) - c).to(tl.float64)
        first = tl.load(firsts + k, mask=here, other=0)
        # What a sample's own sum is: the suffix from it less the suffix from the next.
        own = tl.load(suffix + k, mask=here, other=0.0)
        own -= tl.load(suffix + k + 1, mask=here & (k + 1 < n), other=0.0)
        above = tl.load(suffix + first, mask=here, other=0.0)
        gradient = 2.0 * (above - own - gap * (n - 1 - first)) / triples
        tl.store(by_outcome + place, gradient, mask=here)
        tl.store(by_confidence + place, -gradient, mask=here)
    tl.store(value, (total - squares) / triples)


def esd_with_gradient(confidence: Tensor, outcome: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ESD with its gradient by confidence and by outcome, as in docs/derivations/sorting.md."""
    n = len(confidence)
    ranked, order = confidence.sort()
    outcome = outcome.to(confidence.dtype).contiguous()
    sums = torch.empty(2 * n, dtype=torch.float64, device=confidence.device)
    firsts = torch.empty(n, dtype=torch.int32, device=confidence.device)
    value = confidence.new_empty(())
    by_confidence, by_outcome = torch.empty_like(outcome), torch.empty_like(outcome)
    with on_device_of(confidence):
        _esd[(1,)](
            ranked,
            order,
            outcome,
            sums,
            firsts,
            value,
            by_confidence,
            by_outcome,
            n,
            BLOCK=BLOCK,
            num_warps=16,
            num_stages=1,
        )
    return value, by_confidence, by_outcome
