"""What kind of tensor it is, where it is, and whether its values may be looked at."""

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def is_transformed(x: Tensor) -> bool:
    """Whether `x` stands in for a tensor inside `vmap`, `grad` or another function transform."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(x))


def is_transforming() -> bool:
    """Whether such a transform is under way, even of tensors other than those at hand."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def is_readable(x: Tensor) -> bool:
    """Whether looking at values costs nothing: on a device it waits, in a graph it breaks."""
    recorded = torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None
    return x.device.type == "cpu" and not recorded and not is_transformed(x)


def check_tensor(name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} must be a torch tensor; got {type(x).__name__}. Pass torch.as_tensor({name})."
        )


def check_device(name: str, x: Tensor, logits: Tensor) -> None:
    if x.device != logits.device:
        raise ValueError(
            f"{name} must be on the device of logits, {logits.device}; got {x.device}. "
            f"Pass {name}.to(logits.device)."
        )
