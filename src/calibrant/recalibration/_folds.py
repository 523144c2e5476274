"""Parts of the predictions that take turns to be held out."""

from collections.abc import Iterator
from math import ceil

import torch
from torch import Tensor

from ..predictions import Predictions
from ._inputs import rows

# Samples of one forecast, and their share of all, that may still be copies of one sample.
_MOST_COPIES, _MOST_OF_ALL = 10, 0.01


def folds_of(
    predictions: Predictions, folds: int, judges: int | None = None
) -> Iterator[tuple[Predictions, Predictions]]:
    """For each of `folds` parts, what to fit on and the part to judge on.

    - `judges`: only as many parts as hold so many samples, copies of a sample counting once.

    The parts depend on the predictions alone: neither the order of the samples nor (unless
    forecasts are coarse) the names of the classes changes them, copies of a sample stay together
    (so that a sample is never judged by a fit to its copy), and every class is spread over the
    parts.

    >>> _ = torch.manual_seed(0)
    >>> predictions = Predictions(torch.randn(10, 3), torch.arange(10) % 3)
    >>> [(len(rest), len(held)) for rest, held in folds_of(predictions, 5)]
    [(8, 2), (8, 2), (8, 2), (8, 2), (8, 2)]
    """
    dealt = _dealt(predictions)
    part, distinct = dealt % folds, int(dealt.max()) + 1
    turns = folds if judges is None else ceil(judges * folds / distinct)
    for k in range(min(int(part.max()) + 1, turns)):
        held = part == k
        yield rows(predictions, ~held), rows(predictions, held)


def fold_index(predictions: Predictions, folds: int) -> Tensor:
    """Which part each sample belongs to, from 0; fewer parts where too few samples differ."""
    return _dealt(predictions) % folds


def _dealt(predictions: Predictions) -> Tensor:
    """The turn in which each sample is dealt, the same for copies."""
    labels = predictions.labels
    which = _told_apart(predictions)
    count = int(which.max()) + 1
    key = _scattered(count, which)
    first_of_class = key.new_full((predictions.classes,), count)
    first_of_class = first_of_class.scatter_reduce(0, labels, key, "amin")
    # A class's samples lie side by side and are dealt in turn.
    place = first_of_class[labels] * (count + 1) + key
    dealt: Tensor = place.unique(return_inverse=True)[1]
    return dealt


def _told_apart(predictions: Predictions) -> Tensor:
    """A number for each sample, the same for copies: those of one forecast and one truth.

    Unless more than ten, and more than one in a hundred of all, share a forecast: that is coarse,
    as the votes of a few trees are. Its samples are dealt one by one, since a part with only the
    right ones of a forecast would judge nothing fairly.
    """
    logits, labels = predictions.logits, predictions.labels
    truth = logits.gather(1, labels[:, None])[:, 0]
    # Selected from the row and not computed, so no rounding depends on the order of classes.
    told = torch.stack([logits.amax(dim=1), logits.amin(dim=1)], dim=1)
    _, forecast, shared = told.unique(dim=0, return_inverse=True, return_counts=True)
    traits = torch.cat([truth[:, None], told], dim=1)
    which: Tensor = traits.unique(dim=0, return_inverse=True)[1]
    coarse = shared[forecast] > max(_MOST_COPIES, _MOST_OF_ALL * len(logits))
    if not bool(coarse.any()):
        return which
    alone = rows(predictions, coarse)
    seen = [alone.labels[:, None], alone.logits]
    if alone.weights is not None:
        seen.append(alone.weights[:, None])
    # In an order of their own, so that the order in which they came is irrelevant.
    _, alike = torch.cat([x.to(logits) for x in seen], dim=1).unique(dim=0, return_inverse=True)
    which[coarse] = len(logits) + alike.argsort().argsort()
    numbered: Tensor = which.unique(return_inverse=True)[1]
    return numbered


def _scattered(count: int, which: Tensor) -> Tensor:
    """The places of a fixed shuffle, so that neighbours in value are not neighbours in turn."""
    shuffle = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return shuffle.to(which.device)[which]
