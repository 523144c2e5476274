"""Scans over a sorted batch, a block at a time, as the kernels of sorted samples need them."""

import triton
import triton.language as tl


@triton.jit
def _larger(a, b):  # type: ignore[no-untyped-def]
    return tl.maximum(a, b)


@triton.jit
def _smaller(a, b):  # type: ignore[no-untyped-def]
    return tl.minimum(a, b)


@triton.jit
def first_of_tie(values, k, here, known):  # type: ignore[no-untyped-def]
    """Index of the first of the samples tied with each; `known` is that of the block before."""
    own = tl.load(values + k, mask=here, other=0.0)
    before = tl.load(values + k - 1, mask=here & (k > 0), other=0.0)
    starts = tl.where((k == 0) | (own != before), k, 0)
    return tl.maximum(tl.associative_scan(starts, 0, _larger), known)


@triton.jit
def last_of_tie(values, k, here, n, known):  # type: ignore[no-untyped-def]
    """Index of the last of the samples tied with each; `known` is that of the block after."""
    own = tl.load(values + k, mask=here, other=0.0)
    after = tl.load(values + k + 1, mask=here & (k + 1 < n), other=0.0)
    ends = tl.where((k + 1 >= n) | (own != after), tl.minimum(k, n - 1), n - 1)
    return tl.minimum(tl.associative_scan(ends, 0, _smaller, reverse=True), known)


@triton.jit
def decayed(share_a, sum_a, share_b, sum_b):  # type: ignore[no-untyped-def]
    """One stretch of a sum that decays from sample to sample, and then another."""
    return share_a * share_b, sum_b + share_b * sum_a
