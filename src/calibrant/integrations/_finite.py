"""Losses that are not finite stop a run before its optimiser sees them."""

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from ..training._sound_loss import check_finite


def finite_numbers(values: Mapping[str, Tensor], step: int) -> dict[str, float]:
    """Every loss by its name, and perhaps the norm of the `gradient`: numbers, or an error."""
    parts = [value.detach().float() for value in values.values()]
    numbers = dict(zip(values, torch.stack(parts).tolist(), strict=True))
    together = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    check_finite(numbers, f"step {step}", together=together, device=parts[0].device)
    return numbers


def gradient_norm(model: nn.Module) -> Tensor:
    """Of all parameters that have a gradient; those spread over processes are left out."""
    gradients = [each.grad for each in model.parameters() if each.grad is not None]
    return get_total_norm([each for each in gradients if not hasattr(each, "full_tensor")])
