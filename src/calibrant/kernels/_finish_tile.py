"""The same in a kernel, of the tile it holds."""

from functools import cache

import triton
import triton.language as tl

from ._finish import Finish
from ._launch import bits_of


@triton.jit  # type: ignore[untyped-decorator]
def finished(z, inside, scale, cap, SCALED: tl.constexpr, CAPPED: tl.constexpr):  # type: ignore[no-untyped-def]
    """Logits of a tile of products; what lies outside stays minus infinity."""
    if SCALED:
        z = z * scale.to(tl.float64, bitcast=True).to(z.dtype)
    if CAPPED:
        cap = cap.to(tl.float64, bitcast=True).to(z.dtype)
        x = z / cap
        e = tl.exp(-2.0 * tl.abs(x))
        size = cap * ((1.0 - e) / (1.0 + e))
        z = tl.where(inside, tl.where(x < 0, -size, size), float("-inf"))
    return z


@triton.jit  # type: ignore[untyped-decorator]
def pulled_back(gradient, z, scale, cap, SCALED: tl.constexpr, CAPPED: tl.constexpr):  # type: ignore[no-untyped-def]
    """The gradient of a tile of products from that of its logits `z`."""
    if CAPPED:
        t = z / cap.to(tl.float64, bitcast=True).to(z.dtype)
        gradient = gradient * (1.0 - t * t)
    if SCALED:
        gradient = gradient * scale.to(tl.float64, bitcast=True).to(z.dtype)
    return gradient


@cache
def settings(finish: Finish) -> dict[str, int | bool]:
    """What a kernel is told of it."""
    return {
        "scale": bits_of(finish.scale),
        "cap": bits_of(finish.softcap or 1.0),
        "SCALED": finish.scale != 1,
        "CAPPED": finish.softcap is not None,
    }
