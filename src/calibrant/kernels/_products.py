"""Products of hidden states and classifier, some of the logits at a time."""

from collections.abc import Iterator

import torch
from torch import Tensor

_LEAST_BYTES = {"cpu": 2**25, "cuda": 2**28}
# What the matrix units take at once.
_TILE = 128


def default_chunk(hidden: Tensor) -> int:
    """Bytes of logits held at a time, unless somebody says how many.

    As many as the hidden states take, which are there anyway, and enough for products to run at
    full speed: 256 MiB, or 32 MiB on a CPU.
    """
    least = _LEAST_BYTES.get(hidden.device.type, 2**28)
    return max(least, hidden.numel() * hidden.element_size())


def slices(count: int, bytes_each: int, chunk: int) -> Iterator[slice]:
    """As few parts as fit into a chunk, of nearly one size; at least one thing in each."""
    at_once = max(1, min(count, chunk // max(1, bytes_each)))
    if at_once < count:
        parts = -(-count // at_once)
        even = -(-count // parts)
        at_once = min(at_once, -(-even // _TILE) * _TILE)
    for start in range(0, count, at_once):
        yield slice(start, min(start + at_once, count))


class Products:
    """Products of one dtype, written into the same memory one after the other."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self._room = torch.empty(0, dtype=dtype, device=device)

    def of(self, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """A row per hidden state, a column per row of the weight; the last one is overwritten."""
        shape = (len(hidden), len(weight))
        if self._room.numel() < shape[0] * shape[1]:
            self._room = self._room.new_empty(shape[0] * shape[1])
        room = self._room[: shape[0] * shape[1]].view(shape)
        if bias is None:
            return torch.mm(hidden, weight.T, out=room)
        return torch.addmm(bias, hidden, weight.T, out=room)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add a product to a total that may be wider than its factors, without rounding it first."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    elif total.is_cuda and total.dtype == torch.float32:
        torch.addmm(total, left, right, out_dtype=torch.float32, out=total)
    else:
        total.addmm_(left.to(total.dtype), right.to(total.dtype))


def write_product(target: Tensor, left: Tensor, right: Tensor) -> None:
    """A product into memory that may be wider than its factors."""
    if target.dtype == left.dtype:
        torch.mm(left, right, out=target)
    elif target.is_cuda and target.dtype == torch.float32:
        torch.mm(left, right, out_dtype=torch.float32, out=target)
    else:
        wide = torch.promote_types(target.dtype, left.dtype)
        target.copy_(left.to(wide) @ right.to(wide))
