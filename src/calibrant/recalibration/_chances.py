"""Probabilities in place of logits, and what a zero among them stands for."""

import torch
from torch import Tensor

from ._as_logits import as_logits

# What a zero counts as at most, where a fit has met none and knows nothing of their rounding.
_UNSEEN = 1e-7
# One less a chance is known to this many roundings.
_ROUNDINGS = 4


def smallest_told(probabilities: Tensor, class_dim: int, *, scores: bool) -> float:
    """What a probability of zero counts as, by those beside it that are not zero.

    A forest of a hundred trees tells chances in hundredths, so its zero is any chance below one
    of them: half of it for two classes, and in general what was told least, shared among the
    classes. Log-odds of its zeros then stand beside the others and do not drown them.

    - `scores`: whether each number is the chance of an event of its own.

    >>> votes = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.6, 0.4]])
    >>> round(smallest_told(votes, 1, scores=False), 3)
    0.05
    """
    if not probabilities.numel() or not probabilities.is_floating_point():
        return _UNSEEN
    told, classes = [probabilities], 2 if scores else probabilities.shape[class_dim]
    if scores:
        other = 1 - probabilities
        rounding = _ROUNDINGS * torch.finfo(other.dtype).eps
        told.append(torch.where(other < rounding, 0, other))
    least = min(torch.where(part > 0, part, 1).amin().item() for part in told) / classes
    return least if any(bool((part == 0).any()) for part in told) else min(least, _UNSEEN)


def logits_of(
    probabilities: Tensor, class_dim: int, *, scores: bool, smallest: float | None
) -> Tensor:
    """The same as `as_logits`, whatever the layout."""
    if scores:
        flat = as_logits(probabilities.reshape(-1), smallest=smallest)
        return flat.reshape(probabilities.shape)
    last = probabilities.movedim(class_dim, -1)
    rows = as_logits(last.reshape(-1, last.shape[-1]), smallest=smallest)
    return rows.reshape(last.shape).movedim(-1, class_dim)
