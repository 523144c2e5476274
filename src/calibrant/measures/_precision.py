"""Sums in double precision: vectors are short next to the logits they came from."""

import torch
from torch import Tensor


def widest(device: torch.device) -> torch.dtype:
    """The widest floating-point type of a device."""
    return torch.float32 if device.type == "mps" else torch.float64


def widened(*vectors: Tensor) -> tuple[Tensor, ...]:
    """The same vectors in the widest type, so that a million terms add up exactly enough."""
    return tuple(vector.to(widest(vector.device)) for vector in vectors)
