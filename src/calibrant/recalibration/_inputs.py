"""What a recalibrator takes, made into predictions; one sentence where it cannot be."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._checks import (
    check_not_chances,
    check_not_masked,
    check_not_probabilities,
    first_beyond,
    widest,
)
from ..predictions import Predictions
from ._form import Form

Numbers = Tensor | NDArray[Any] | Sequence[Any]

_OF_CHANCES = "Pass probabilities=True, to fit and to transform."
# Of a trained model no log-odds all lie between 0 and 1, however little they differ.
_TRAINED = 0.0


def as_tensor(name: str, x: Numbers, device: torch.device | None = None) -> Tensor:
    """A tensor as it is, an array or a list as a tensor that shares its memory where it can."""
    if isinstance(x, Tensor):
        return x
    check_not_masked(name, x)
    try:
        array = np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x)
        return torch.as_tensor(array if array.flags.writeable else array.copy(), device=device)
    except (TypeError, ValueError) as wrong:
        raise TypeError(
            f"{name} must be a torch tensor or a NumPy array of numbers; "
            f"got {type(x).__name__}. Pass np.asarray({name}, dtype=float)."
        ) from wrong


def to_predictions(
    logits: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    class_dim: int,
    ignore_index: int | None,
    multilabel: bool,
    *,
    sure: bool = False,
) -> tuple[Predictions, Form]:
    """Rows of logits with their labels, in any layout, and what that layout was.

    - `sure`: that these are logits; otherwise some that look like probabilities are refused.
    """
    if weights is not None:
        weights = weights.to(widest(weights.device))
    if logits.ndim < 3 and ignore_index is None:
        _check_finite(logits)
    if multilabel:
        if ignore_index is not None:
            raise ValueError(
                "several labels per sample have no label to ignore; got "
                f"ignore_index={ignore_index}. Where some targets are unknown, fit "
                "scores[known] and targets[known] as binary scores."
            )
        if not sure:
            check_not_chances("scores", logits, _OF_CHANCES, spread=_TRAINED)
        return Predictions._of_several(logits, labels, weights), Form(2, 1, True)
    if logits.ndim == 1:
        if not sure:
            check_not_chances("scores", logits, _OF_CHANCES, spread=_TRAINED)
        if ignore_index is not None and labels.shape == logits.shape:
            kept = labels.long() != ignore_index  # of narrow integers -100 is another
            logits, labels = logits[kept], labels[kept]
            weights = weights[kept] if weights is not None else None
            _check_finite(logits)
        return Predictions._of_odds(logits, labels, weights), Form(2)
    if logits.ndim == 2 and class_dim in (1, -1) and ignore_index is None:
        check_not_probabilities("logits", logits, _OF_CHANCES)
        predictions = Predictions(logits, labels, weights=weights)
    else:
        predictions = Predictions.flatten(
            logits, labels, class_dim=class_dim, ignore_index=ignore_index, weights=weights
        )
        _check_finite(predictions.logits)  # whatever stands at ignored positions
        check_not_probabilities("logits", predictions.logits, _OF_CHANCES)
    return predictions, Form(predictions.classes, class_dim)


def counted(predictions: Predictions) -> Predictions:
    """Without the samples of weight zero, which might as well be absent."""
    weights = predictions.weights
    if weights is None or bool((weights > 0).all()):
        return predictions
    kept = weights > 0
    if not bool(kept.any()):
        raise ValueError("weights must not all be zero. Leave them out to count every sample once.")
    return rows(predictions, kept)


def rows(predictions: Predictions, kept: Tensor) -> Predictions:
    """Some rows of the predictions, by mask or by index."""
    weights = predictions.weights
    return Predictions._unchecked(
        predictions.logits[kept],
        predictions.labels[kept],
        None if weights is None else weights[kept],
    )


def with_logits(predictions: Predictions, logits: Tensor) -> Predictions:
    """The same samples, labels and weights, said with other logits."""
    said = Predictions._unchecked(logits, predictions.labels, predictions.weights)
    object.__setattr__(said, "labels_per_sample", predictions.labels_per_sample)
    return said


def check_labels_in_range(labels: Tensor, classes: int) -> None:
    """Also on a device, where `Predictions` does not look."""
    low, high = (int(extreme) for extreme in labels.aminmax())
    if low < 0 or high >= classes:
        raise ValueError(
            f"labels must lie between 0 and {classes - 1}, since there are {classes} classes; "
            f"got {first_beyond(labels, classes)}. Name ignored positions by ignore_index."
        )


def _check_finite(logits: Tensor) -> None:
    # A sum is not finite where an entry is not: one fast pass, and no table of truth values.
    if not logits.is_floating_point() or bool(logits.sum().isfinite()):
        return
    bad = ~logits.isfinite()
    if not bool(bad.any()):
        return
    first = [int(i) for i in bad.nonzero()[0]]
    raise ValueError(
        f"logits must be finite; got {logits[tuple(first)].item()} at {tuple(first)} (counted from "
        f"0), the first of {int(bad.sum())}. Leave such rows out; where minus infinity rules a "
        "class out, pass logits.clamp(min=-1e4)."
    )
