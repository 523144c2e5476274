"""Arrays, lists and tensors, made into tensors; one sentence where they cannot be."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._checks import check_not_masked
from ._not_numbers import how_to_count

Numbers = Tensor | NDArray[Any] | Sequence[Any]


def tensor(name: str, x: Numbers, device: torch.device | None = None) -> Tensor:
    """A tensor as it is, an array or a list as a tensor that shares its memory where it can.

    Arrays in the byte order of another machine become those of this one.
    """
    if isinstance(x, Tensor):
        check_held(name, x)
        return x.detach()
    check_not_masked(name, x)
    if isinstance(x, list | tuple) and any(isinstance(each, Tensor) for each in x):
        return _stacked(name, x).to(device)
    try:
        array = np.asarray(x, order="C")
        array = array.astype(array.dtype.newbyteorder("="), copy=not array.flags.writeable)
        return torch.as_tensor(array, device=device)
    except RuntimeError as wrong:  # tensors on a graph, in lists of lists
        raise TypeError(
            f"{name} must be a torch tensor or a NumPy array of numbers; got lists of tensors. "
            f"Pass torch.stack([torch.stack(row) for row in {name}])."
        ) from wrong
    except (TypeError, ValueError) as wrong:
        raise TypeError(
            f"{name} must be a torch tensor or a NumPy array of numbers; "
            f"got {type(x).__name__}{how_to_count(name, x)}."
        ) from wrong


def _stacked(name: str, x: Sequence[Any]) -> Tensor:
    """A list of tensors as one, without the graph that any of them is on."""
    try:
        told = torch.stack([torch.as_tensor(each).detach() for each in x])
    except (RuntimeError, TypeError, ValueError) as wrong:
        raise TypeError(
            f"{name} must be a torch tensor, or a list of tensors of one shape; got a "
            f"{type(x).__name__} of others. Pass torch.cat({name}) if they are batches."
        ) from wrong
    return tensor(name, told)


def check_real(name: str, x: Tensor) -> None:
    """A number of two parts cannot be judged by one of them."""
    if x.is_complex():
        raise TypeError(
            f"{name} must hold real numbers; got {x.dtype}. Pass np.real({name}) if the imaginary "
            "part means nothing."
        )


def check_held(name: str, x: Tensor) -> None:
    """A tensor whose every entry is somewhere."""
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be dense; got {x.layout}. Pass {name}.to_dense().")
    if x.is_meta:
        raise ValueError(
            f"{name} must hold numbers; got a tensor on the meta device, which holds none. Pass "
            "what the model says on a device that computes."
        )
