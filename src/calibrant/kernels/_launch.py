"""How a kernel is launched: on the device of its tensors, with settings in double precision."""

import struct
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def on_device_of(x: Tensor) -> AbstractContextManager[object]:
    """The device of `x` made current; nothing to do on a CPU, where kernels are interpreted."""
    if x.is_cuda and torch.cuda.device_count() > 1:
        return torch.cuda.device_of(x)
    return nullcontext()


def bits_of(x: float) -> int:
    """A float64 as an integer: a kernel would take a float as a float32, which has fewer digits."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])
