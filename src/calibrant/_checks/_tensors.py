"""What kind of tensor it is, where it is, and whether its values may be looked at."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)
# Kinds of numbers that NumPy has too.
_OF_NUMPY = {
    *(torch.float32, torch.float64, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8),
    *(torch.uint64, torch.uint32, torch.uint16, torch.uint8),
}
# Numbers that one thread has compared before others are awake.
_FEW = 2**22


def widest(device: torch.device) -> torch.dtype:
    """The widest floating-point type of a device."""
    return torch.float32 if device.type == "mps" else torch.float64


def is_transformed(x: Tensor) -> bool:
    """Whether `x` stands in for a tensor inside `vmap`, `grad` or another function transform.

    Or for many gradients at once, which `torch.autograd` maps over in a way of its own.
    """
    functorch = torch._C._functorch
    return bool(functorch.is_functorch_wrapped_tensor(x) or functorch.is_legacy_batchedtensor(x))


def is_transforming() -> bool:
    """Whether such a transform is under way, even of tensors other than those at hand."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_readable(x: Tensor) -> bool:
    """Whether looking at values costs nothing: on a device it waits, in a graph it breaks."""
    recorded = (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack() > 0  # somebody looks at every operator
    )
    return x.is_cpu and not recorded and not is_transformed(x)


def is_plain(x: Tensor) -> bool:
    """Whether `x` is plain memory of the CPU, which others than torch may read."""
    return (
        (type(x) is Tensor or type(x) is torch.nn.Parameter)
        # Inside a transform even constants have no memory to be read.
        and not is_transforming()
        and is_readable(x)
        and x.layout == torch.strided
        and not x.is_neg()
    )


def numbers_of(x: Tensor) -> NDArray[Any] | None:
    """The memory of `x` as NumPy sees it, where it is plain memory of the CPU.

    NumPy has one thread. Of less than some million numbers that is as well: to wake those of
    torch takes long, and very long where cores are busy.
    """
    if not is_plain(x) or x.dtype not in _OF_NUMPY:
        return None
    numbers: NDArray[Any] = x.detach().numpy()
    return numbers


def extremes(x: Tensor) -> tuple[float, float]:
    """The least and the largest of at least one number; NaN if there is one among them."""
    numbers = numbers_of(x) if x.numel() <= _FEW else None
    if numbers is not None:
        return np.minimum.reduce(numbers, None).item(), np.maximum.reduce(numbers, None).item()
    # torch does not compare all kinds of whole numbers.
    like = x.detach() if x.is_floating_point() else x.detach().long()
    # Together, so that a device is waited for once.
    low, high = torch.stack(like.aminmax()).tolist()
    return low, high


def are_up_to(most: int, x: Tensor) -> bool:
    """Whether one look at each of many numbers tells that all lie between 0 and `most`.

    A yes is certain; after a no their extremes tell. The bits of numbers that are not negative are
    in order as whole numbers, and a sign or NaN is above them all: so the largest is enough.
    """
    numbers = numbers_of(x) if x.numel() <= _FEW else None
    return numbers is not None and numbers.size > 0 and all_up_to(most, numbers)


def all_up_to(most: int, numbers: NDArray[Any]) -> bool:
    """The same of at least one number that NumPy has."""
    kind, last = _last_bits(most, numbers.dtype)
    return bool(np.maximum.reduce(numbers.view(kind), axis=None) <= last)


@lru_cache(maxsize=32)
def _last_bits(most: int, kind: "np.dtype[Any]") -> tuple["np.dtype[Any]", int]:
    """As what whole numbers a kind is compared, and the last that is not above `most`."""
    bits = np.dtype(f"u{kind.itemsize}")
    if kind.kind == "f":
        return bits, np.array(most, dtype=kind).view(bits).item()
    return bits, most if kind.kind == "b" else min(most, np.iinfo(kind).max)


def check_tensor(name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a torch tensor; got {type(x).__name__}. Pass torch.as_tensor({name})."
        )


def check_not_masked(name: str, x: object) -> None:
    """Nothing is masked: to read an array is to forget its mask."""
    if not isinstance(x, np.ma.MaskedArray) or not np.ma.is_masked(x):
        return
    rows = ".any(axis=1)" if x.ndim == 2 else ""
    raise ValueError(
        f"{name} must have no masked entries; got {int(np.ma.getmaskarray(x).sum())} of {x.size}. "
        f"Leave their rows out of everything: kept = ~np.ma.getmaskarray({name}){rows}, then "
        f"{name}[kept], and the same of the others."
    )


def check_device(name: str, x: Tensor, logits: Tensor) -> None:
    if x.device != logits.device:
        raise ValueError(
            f"{name} must be on the device of logits, {logits.device}; got {x.device}. "
            f"Pass {name}.to(logits.device)."
        )
