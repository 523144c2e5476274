"""MMCE's quadratic form of a sorted batch in one launch: three passes of one program."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._launch import bits_of, on_device_of
from ._scans import decayed, first_of_tie, last_of_tie
from ._sorted import BLOCK


@triton.jit  # type: ignore[untyped-decorator]
def _form(  # type: ignore[no-untyped-def]
    place,
    order,
    charge,
    fields,
    ties,
    value,
    by_place,
    by_charge,
    steepness,
    n,
    BLOCK: tl.constexpr,
):
    """For each sample the decayed charges at or before it, at or after it, and both together."""
    steepness = steepness.to(tl.float64, bitcast=True)
    left, right, firsts, lasts = fields, fields + n, ties, ties + n
    lane = tl.arange(0, BLOCK)
    carry = tl.zeros((), tl.float64)
    known = tl.zeros((), tl.int32)
    for start in range(0, n, BLOCK):
        k = start + lane
        here = k < n
        r = tl.load(place + k, mask=here, other=0.0).to(tl.float64)
        before = tl.load(place + k - 1, mask=here & (k > 0), other=0.0).to(tl.float64)
        v = tl.load(charge + tl.load(order + k, mask=here, other=0), mask=here, other=0.0)
        share = tl.where(here & (k > 0), tl.exp((before - r) * steepness), 0.0)
        share, field = tl.associative_scan((share, v.to(tl.float64)), 0, decayed)
        field += share * carry
        first = first_of_tie(place, k, here, known)
        tl.store(left + k, field, mask=here)
        tl.store(firsts + k, first, mask=here)
        carry = tl.sum(tl.where(k == tl.minimum(start + BLOCK, n) - 1, field, 0.0), axis=0)
        known = tl.max(tl.where(here, first, 0), axis=0)
    carry = tl.zeros((), tl.float64)
    known = tl.zeros((), tl.int32) + n - 1
    for turn in range(0, tl.cdiv(n, BLOCK)):
        start = (tl.cdiv(n, BLOCK) - 1 - turn) * BLOCK
        k = start + lane
        here = k < n
        r = tl.load(place + k, mask=here, other=0.0).to(tl.float64)
        after = tl.load(place + k + 1, mask=here & (k + 1 < n), other=0.0).to(tl.float64)
        v = tl.load(charge + tl.load(order + k, mask=here, other=0), mask=here, other=0.0)
        share = tl.where(here & (k + 1 < n), tl.exp((r - after) * steepness), 0.0)
        share, field = tl.associative_scan((share, v.to(tl.float64)), 0, decayed, reverse=True)
        field += share * carry
        last = last_of_tie(place, k, here, n, known)
        tl.store(right + k, field, mask=here)
        tl.store(lasts + k, last, mask=here)
        carry = tl.sum(tl.where(k == start, field, 0.0), axis=0)
        known = tl.min(last, axis=0)
    tl.debug_barrier()
    total = tl.zeros((), tl.float64)
    for start in range(0, n, BLOCK):
        k = start + lane
        here = k < n
        own = tl.load(order + k, mask=here, other=0)
        v = tl.load(charge + own, mask=here, other=0.0).to(tl.float64)
        field = tl.load(left + k, mask=here, other=0.0) + tl.load(right + k, mask=here, other=0.0)
        field -= v
        total += tl.sum(v * field, axis=0)
        # Tied places pull neither way: what lies before the first of them, and after the last.
        first = tl.load(firsts + k, mask=here, other=0)
        last = tl.load(lasts + k, mask=here, other=0)
        pull = tl.load(right + last, mask=here, other=0.0)
        pull -= tl.load(charge + tl.load(order + last, mask=here, other=0), mask=here, other=0.0)
        pull -= tl.load(left + first, mask=here, other=0.0)
        pull += tl.load(charge + tl.load(order + first, mask=here, other=0), mask=here, other=0.0)
        tl.store(by_charge + own, 2.0 * field, mask=here)
        tl.store(by_place + own, 2.0 * steepness * v * pull, mask=here)
    tl.store(value, total)


def kernel_form_with_gradient(
    place: Tensor, charge: Tensor, *, bandwidth: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The form with its gradient by place and by charge, as in docs/derivations/sorting.md."""
    n = len(place)
    ranked, order = place.sort()
    charge = charge.contiguous()
    fields = torch.empty(2 * n, dtype=torch.float64, device=place.device)
    ties = torch.empty(2 * n, dtype=torch.int32, device=place.device)
    value = place.new_empty(())
    by_place, by_charge = torch.empty_like(charge), torch.empty_like(charge)
    with on_device_of(place):
        _form[(1,)](
            ranked,
            order,
            charge,
            fields,
            ties,
            value,
            by_place,
            by_charge,
            bits_of(1 / bandwidth),
            n,
            BLOCK=BLOCK,
            num_warps=16,
            num_stages=1,
        )
    return value, by_place, by_charge
