"""What a last layer and its hidden states must look like."""

import torch
from torch import Tensor

from .._checks import check_tensor


def check_linear(
    hidden: Tensor, classifier: Tensor, labels: Tensor, bias: Tensor | None, weights: Tensor | None
) -> None:
    """Hidden states with labels, and a last layer that takes them."""
    for name, x in (("hidden", hidden), ("classifier", classifier), ("labels", labels)):
        check_tensor(name, x)
    if not hidden.is_floating_point() or hidden.ndim < 2 or classifier.ndim != 2:
        raise ValueError(
            "hidden and classifier must be floating point of shapes (..., width) and "
            f"(classes, width); got {hidden.dtype} of shape {tuple(hidden.shape)} and "
            f"{tuple(classifier.shape)}. The order is (hidden, classifier, labels)."
        )
    if classifier.shape[1] != hidden.shape[-1] or len(classifier) < 2:
        raise ValueError(
            f"classifier must have a row of {hidden.shape[-1]} numbers, as many as a hidden state, "
            f"for each of at least two classes; got shape {tuple(classifier.shape)}. "
            "Pass the weight of the last nn.Linear as it is."
        )
    for name, each in (("labels", labels), ("weights", weights)):
        if each is not None and each.shape != hidden.shape[:-1]:
            raise ValueError(
                f"{name} must have the shape of hidden without its last dimension, "
                f"{tuple(hidden.shape[:-1])}; got {tuple(each.shape)}."
            )
    if bias is not None and bias.shape != classifier.shape[:1]:
        raise ValueError(
            f"bias must hold one number per class, {len(classifier)} in all; "
            f"got shape {tuple(bias.shape)}. Pass the bias of the last nn.Linear as it is."
        )
    for name, part in (("classifier", classifier), ("bias", bias)):
        if part is None:
            continue
        if part.device != hidden.device:
            raise ValueError(
                f"{name} must be on the device of hidden, {hidden.device}; got {part.device}. "
                f"Pass {name}.to(hidden.device)."
            )
        if part.dtype != hidden.dtype and not torch.is_autocast_enabled(hidden.device.type):
            raise TypeError(
                f"{name} must have the dtype of hidden, {hidden.dtype}, outside autocast; "
                f"got {part.dtype}. Pass {name}.to(hidden.dtype)."
            )
