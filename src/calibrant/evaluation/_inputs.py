"""What `evaluate` takes: labels, weights and events; one sentence where they cannot be judged."""

from math import inf

import torch
from torch import Tensor

from .._checks import are_chances, first_outside, widest, within
from .._checks import check_labels_in_range as check_labels_in_range
from ._arrays import Numbers, check_real, tensor
from ._not_numbers import first_missing, which_index

# The fewest samples from which anything can be said about spread.
_FEWEST = 3
MOST_COUNTED = 2.0**53
"""Above it doubles hold no fractions."""
# A smaller share than this of the largest weight adds nothing to any sum, and has no cube.
_VANISHING = 1e-100


def class_indices(labels: Numbers, device: torch.device | None = None) -> Tensor:
    """Labels as a tensor; whoever passes names is told how they become indices."""
    try:
        told = tensor("labels", labels, device)
    except TypeError as wrong:
        raise TypeError(
            "labels must be class indices, whole numbers counted from 0; got "
            f"{which_index(labels)}."
        ) from wrong
    if isinstance(labels, Tensor):
        return told
    if told.numel() == 0:  # of nothing NumPy makes floating-point numbers
        return told.long()
    if told.ndim == 2:
        _check_column(labels, told)
    elif told.is_floating_point():
        if (row := first_missing(labels)) is not None:
            raise TypeError(
                f"labels must be integers, the index of each true class; got no value in row {row} "
                "(counted from 0). Leave such rows out, then pass np.asarray(labels, dtype=int)."
            )
        raise TypeError(
            f"labels must be integers, the index of each true class; got {told.dtype}. "
            "Pass np.asarray(labels, dtype=int) if they hold whole numbers."
        )
    return told


def _check_column(labels: Numbers, told: Tensor) -> None:
    """Lists and data frames have no method that makes one column of a table; arrays have."""
    if hasattr(labels, "argmax"):
        return
    remedy = "For one-hot labels pass np.asarray(labels).argmax(1)."
    if told.shape[1] == 1:
        remedy = "Pass np.ravel(labels)."
    raise ValueError(
        f"labels must hold one class index per sample; got shape {tuple(told.shape)}. {remedy}"
    )


def as_weights(weights: Numbers | None, like: Tensor) -> Tensor | None:
    """Weights in double precision, whatever numbers they were.

    One that vanishes beside the largest is zero.
    """
    if weights is None:
        return None
    told = tensor("weights", weights, like.device)
    check_real("weights", told)
    given = told.to(widest(like.device))
    if given.shape == (len(like),) and bool((given == 0).all()):
        raise ValueError("weights must not all be zero. Leave them out to count every sample once.")
    # Beyond these every number is whole, so that none is a count; and their squares overflow.
    highest = given.max() if given.numel() else given.new_zeros(())
    given = torch.where((given > 0) & (given < _VANISHING * highest), 0, given)
    return given / highest if MOST_COUNTED < highest < inf else given


def check_enough(n: int, where: str = "") -> None:
    """Fewer than three samples have no spread."""
    if n < _FEWEST:
        raise ValueError(
            f"evaluation needs at least {_FEWEST} samples{where}; got {n}. "
            "Gather more before measuring calibration."
        )


def check_no_nan(name: str, x: Tensor) -> None:
    """Name the first row that is not a number."""
    # The maximum of a row is NaN if anything in it is, and takes no second table.
    bad = x.isnan() if x.ndim == 1 or x.numel() == 0 else x.amax(dim=1).isnan()
    if bool(bad.any()):
        first = int(bad.nonzero()[0, 0])
        raise ValueError(
            f"{name} must hold numbers; got NaN in row {first} (counted from 0), the first of "
            f"{int(bad.sum())}. Leave such rows out, or find where they come from."
        )


def as_events(confidence: Numbers, outcome: Numbers) -> tuple[Tensor, Tensor]:
    """Chances between 0 and 1, and whether each event happened.

    What rounding has left beyond 0 or 1 is taken for that: a softmax may end at 1.0000001.
    """
    sure = tensor("confidence", confidence)
    right = tensor("outcome", outcome, sure.device)
    check_real("outcome", right)
    _check_events(sure, right)
    return within(sure), right


def _check_events(confidence: Tensor, outcome: Tensor) -> None:
    if confidence.ndim != 1:
        remedy = "For logits or a table of probabilities use evaluate."
        if confidence.shape[1:] == (1,):
            remedy = "Pass np.ravel(confidence), or confidence.ravel() of torch."
        raise ValueError(
            "confidence must hold one number per event; "
            f"got shape {tuple(confidence.shape)}. {remedy}"
        )
    if not confidence.is_floating_point():
        raise ValueError(
            f"confidence must be floating point, from 0 to 1; got {confidence.dtype}. Pass "
            "np.asarray(confidence, dtype=float); if these are outcomes, they come second."
        )
    if outcome.shape != confidence.shape:
        raise ValueError(
            f"outcome must hold one entry per confidence, {len(confidence)} in all; "
            f"got shape {tuple(outcome.shape)}."
        )
    check_no_nan("confidence", confidence)
    if not are_chances(confidence):
        raise ValueError(
            f"confidence must lie between 0 and 1; got {first_outside(confidence)}. For "
            "percentages divide by 100; for log-odds pass 1 / (1 + np.exp(-confidence)), or "
            "confidence.sigmoid() of torch."
        )
    judged = (outcome == 0) | (outcome == 1)
    if not bool(judged.all()):
        row = int((~judged).nonzero()[0, 0])
        raise ValueError(
            "outcome must be 0 or 1, whether each event happened; "
            f"got {outcome[row].item():.3g} in row {row} (counted from 0). To judge "
            "classes pass predicted == labels; leave out rows where it is not known."
        )
