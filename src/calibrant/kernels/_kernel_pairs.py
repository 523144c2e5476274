"""MMCE's quadratic form of a training batch in two launches: every pair looked at, none stored."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._launch import bits_of, on_device_of
from ._table import MOST_PAIRED, arithmetic

# Samples a program looks after, and how many others it compares them with at once.
_ROWS, _COLUMNS = 16, 128


@triton.jit  # type: ignore[untyped-decorator]
def _fields(  # type: ignore[no-untyped-def]
    place,
    charge,
    by_place,
    by_charge,
    terms,
    steepness,
    n,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """For each sample the charges of all, decayed by distance, and how that sum moves with it."""
    dtype = terms.dtype.element_ty
    steepness = steepness.to(tl.float64, bitcast=True).to(dtype)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = i < n
    r = tl.load(place + i, mask=here, other=0.0).to(dtype)
    v = tl.load(charge + i, mask=here, other=0.0).to(dtype)
    # Added up column by column: sums of few numbers, added up in pairs, lose few digits.
    every_field = tl.zeros((ROWS, COLUMNS), dtype)
    every_pull = tl.zeros((ROWS, COLUMNS), dtype)
    for start in range(0, n, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        there = j < n
        other = tl.load(place + j, mask=there, other=0.0).to(dtype)
        weight = tl.load(charge + j, mask=there, other=0.0).to(dtype)
        ahead = other[None, :] - r[:, None]
        felt = weight[None, :] * tl.exp(-tl.abs(ahead) * steepness)
        every_field += felt
        # Tied places pull neither way.
        every_pull += tl.where(ahead > 0, felt, tl.where(ahead < 0, -felt, 0.0))
    field, pull = tl.sum(every_field, axis=1), tl.sum(every_pull, axis=1)
    tl.store(by_charge + i, 2.0 * field, mask=here)
    tl.store(by_place + i, 2.0 * steepness * v * pull, mask=here)
    tl.store(terms + tl.program_id(0), tl.sum(v * field, axis=0))


@triton.jit  # type: ignore[untyped-decorator]
def _total(terms, value, blocks, BLOCKS: tl.constexpr):  # type: ignore[no-untyped-def]
    block = tl.arange(0, BLOCKS)
    parts = tl.load(terms + block, mask=block < blocks, other=0.0).to(tl.float64)
    tl.store(value, tl.sum(parts, axis=0))


def kernel_form_with_gradient(
    place: Tensor, charge: Tensor, *, bandwidth: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The form with its gradient by place and by charge, as in docs/derivations/sorting.md."""
    n = len(place)
    blocks = triton.cdiv(n, _ROWS)
    place, charge = place.contiguous(), charge.contiguous()
    terms = torch.empty(blocks, dtype=arithmetic(place.dtype), device=place.device)
    value = place.new_empty(())
    by_place, by_charge = torch.empty_like(place), torch.empty_like(charge)
    with on_device_of(place):
        _fields[(blocks,)](
            place,
            charge,
            by_place,
            by_charge,
            terms,
            bits_of(1 / bandwidth),
            n,
            ROWS=_ROWS,
            COLUMNS=_COLUMNS,
        )
        _total[(1,)](terms, value, blocks, BLOCKS=MOST_PAIRED // _ROWS)
    return value, by_place, by_charge
