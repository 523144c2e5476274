"""Probabilities in place of logits, and what a zero among them stands for."""

import torch
from torch import Tensor

from .._checks import HALF
from ._as_logits import as_logits

# What a zero counts as at most, where a fit has met none and knows nothing of their rounding.
_UNSEEN = 1e-7
# One less a chance is known to this many roundings.
_ROUNDINGS = 4


def only_heard(
    probabilities: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    class_dim: int,
    ignore_index: int | None,
    *,
    scores: bool,
) -> tuple[Tensor, Tensor]:
    """Nothing in particular said where a label is ignored or the weight is zero; and the rest.

    What stands at such a place may be anything, and must not matter. The rest has classes last.
    """
    last = probabilities if scores else probabilities.movedim(class_dim, -1)
    places = last.shape if scores else last.shape[:-1]
    heard = torch.ones(places, dtype=torch.bool, device=last.device)
    if ignore_index is not None and labels.shape == places:
        heard = labels.long() != ignore_index  # of narrow integers -100 is another
    if weights is not None and weights.shape == places[: weights.ndim]:
        heard = heard & (weights > 0).reshape(*weights.shape, *[1] * (len(places) - weights.ndim))
    if bool(heard.all()) or not last.is_floating_point():
        return probabilities, last
    nothing = 0.5 if scores else 1 / last.shape[-1]
    told = torch.where(heard if scores else heard[..., None], last, nothing)
    return (told if scores else told.movedim(-1, class_dim)), last[heard]


def smallest_told(probabilities: Tensor, class_dim: int, *, scores: bool) -> float:
    """What a probability of zero counts as, by those beside it that are not zero.

    A forest of a hundred trees tells chances in hundredths. Its zero counts as if there had been
    one vote more, shared among the classes: for two of them 1/202, and where a single tree votes
    1/4. Log-odds of zeros then stand beside the others and do not drown them.

    - `scores`: whether each number is the chance of an event of its own.

    >>> votes = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.6, 0.4]])
    >>> round(1 / smallest_told(votes, 1, scores=False))
    22
    """
    if not probabilities.numel() or not probabilities.is_floating_point():
        return _UNSEEN
    told, classes = [probabilities], 2 if scores else probabilities.shape[class_dim]
    if scores:
        other = 1 - probabilities
        rounding = _ROUNDINGS * torch.finfo(other.dtype).eps
        told.append(torch.where(other < rounding, 0, other))
    vote = min(torch.where(part > 0, part, 1).amin().item() for part in told)
    least = vote / (1 + vote) / classes
    return least if any(bool((part == 0).any()) for part in told) else min(least, _UNSEEN)


def logits_of(
    probabilities: Tensor, class_dim: int, *, scores: bool, smallest: float | None
) -> Tensor:
    """The same as `as_logits`, whatever the layout, and of rows that still sum to one.

    - `smallest`: what a smaller probability counts as; the others make room for it.
    """
    wide = probabilities.float() if probabilities.dtype in HALF else probabilities
    if scores:
        return as_logits(wide.reshape(-1), smallest=smallest).reshape(wide.shape)
    last = wide.movedim(class_dim, -1)
    rows = last.reshape(-1, last.shape[-1])
    logits = as_logits(rows)
    if smallest is not None:
        low = rows < smallest
        counts = low.sum(dim=1, keepdim=True)
        kept = torch.where(low, 0, rows).sum(dim=1, keepdim=True)
        room = torch.where(counts > 0, (1 - counts * smallest) / kept, 1)
        logits = torch.where(low, logits.new_tensor(smallest).log(), logits + room.log())
    return logits.reshape(last.shape).movedim(-1, class_dim)
