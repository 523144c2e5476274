"""Confidences with what happened."""

from torch import Tensor

from ._labels import check_weight_values
from ._tensors import are_up_to, check_tensor, extremes, is_readable

# By how much rounding may take a chance beyond 0 or 1, whoever is told of it: as much as the last
# digit of half precision.
EXCESS = 1e-3


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
    """Numbers between 0 and 1, up to some rounding, which are taken as they are."""
    for name, x in (("confidence", confidence), ("outcome", outcome)):
        if is_readable(x) and x.numel() and not are_up_to(1, x):
            low, high = extremes(x)
            if low < -EXCESS or high > 1 + EXCESS:
                raise ValueError(
                    f"{name} must lie between 0 and 1; got {first_outside(x)}. A confidence is a "
                    "probability, not a logit; an outcome is 1 where the event happened, else 0."
                )


def are_chances(x: Tensor) -> bool:
    """Whether all lie between 0 and 1, up to some rounding; NaN does not."""
    if x.numel() == 0 or are_up_to(1, x):
        return True
    low, high = extremes(x)
    return low >= -EXCESS and high <= 1 + EXCESS


def within(x: Tensor) -> Tensor:
    """Chances without what rounding has left beyond 0 and 1; themselves where there is none."""
    if x.numel() == 0 or are_up_to(1, x):
        return x
    low, high = extremes(x)
    return x if low >= 0 and high <= 1 else x.clamp(0, 1)


def first_outside(x: Tensor) -> str:
    """The first number that is no chance, and its row; asked for where there is one.

    >>> import torch
    >>> first_outside(torch.tensor([1.0000001, 0.5, 1.01, 2.0]))
    '1.01 in row 2 (counted from 0), the first of 2'
    """
    numbers = x.detach().double()
    bad = ~((numbers >= -EXCESS) & (numbers <= 1 + EXCESS))
    row, several = int(bad.nonzero()[0, 0]), int(bad.sum())
    first = f", the first of {several:,}" if several > 1 else ""
    return f"{numbers[row].item():.6g} in row {row} (counted from 0){first}"
