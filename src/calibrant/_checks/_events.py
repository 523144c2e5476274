"""Confidences with what happened."""

from torch import Tensor

from ._labels import check_weight_values
from ._tensors import are_up_to, check_tensor, extremes, is_readable


def check_events(confidence: Tensor, outcome: Tensor, weights: Tensor | None = None) -> None:
    """Two vectors of one length on one device, and perhaps as many weights.

    Their values are left to `check_event_values`, or to whoever reads them.
    """
    check_tensor("confidence", confidence)
    if not confidence.is_floating_point() or confidence.ndim != 1:
        raise ValueError(
            "confidence must be a vector of floating-point numbers, the chance given to each "
            f"event; got {confidence.dtype} of shape {tuple(confidence.shape)}. "
            "For logits and labels use a criterion, such as top_label(ece), of Predictions."
        )
    for name, x in (("outcome", outcome), ("weights", weights)):
        if x is None:
            continue
        check_tensor(name, x)
        if x.shape != confidence.shape:
            raise ValueError(
                f"{name} must hold one number per confidence, {len(confidence)} in all; "
                f"got shape {tuple(x.shape)}."
            )
        if x.device != confidence.device:
            raise ValueError(
                f"{name} must be on the device of confidence, {confidence.device}; "
                f"got {x.device}. Pass {name}.to(confidence.device)."
            )
    if weights is not None:
        check_weight_values(weights)


def check_event_values(confidence: Tensor, outcome: Tensor) -> None:
    """Numbers between 0 and 1, up to some rounding."""
    for name, x in (("confidence", confidence), ("outcome", outcome)):
        if is_readable(x) and x.numel() and not are_up_to(1, x):
            low, high = extremes(x)
            if low < -1e-3 or high > 1 + 1e-3:
                raise ValueError(
                    f"{name} must lie between 0 and 1; got {low:g} to {high:g}. A confidence is a "
                    "probability, not a logit; an outcome is 1 where the event happened, else 0."
                )
