"""What logits are judged against, and how much each sample counts."""

from math import inf

from torch import Tensor

from ._tensors import are_up_to, check_device, check_tensor, extremes, is_readable


def check_labels(labels: Tensor, logits: Tensor) -> None:
    """One class index per row, on the device of the logits."""
    check_tensor("labels", labels)
    rows, classes = logits.shape
    if labels.shape != (rows,):
        remedy = ""
        if labels.shape == (rows, 1):
            remedy = " Pass labels.squeeze(1)."
        elif labels.ndim > 1:
            remedy = " For one-hot labels pass labels.argmax(1); for several labels per sample use "
            remedy += "Predictions.from_multilabel, or evaluate_events of all chances and labels."
        raise ValueError(
            f"labels must hold one class index per row of logits, {rows} in all; "
            f"got shape {tuple(labels.shape)}.{remedy}"
        )
    if labels.is_floating_point() or labels.is_complex():
        raise TypeError(
            f"labels must be integers, the index of each true class; got {labels.dtype}. "
            "Pass labels.long() if they hold whole numbers."
        )
    check_device("labels", labels, logits)
    if is_readable(labels) and not are_up_to(classes - 1, labels):
        check_labels_in_range(labels, classes)


def check_labels_in_range(labels: Tensor, classes: int) -> None:
    """Indices of classes, wherever they are: on a device this waits for it."""
    low, high = (int(extreme) for extreme in extremes(labels))
    if low < 0 or high >= classes:
        _, label = _beyond(labels, classes)
        raise ValueError(
            f"labels must lie between 0 and {classes - 1}, since there are {classes} classes; "
            f"got {first_beyond(labels, classes)}. Classes count from 0. To leave out samples of "
            f"label {label}, pass logits[labels != {label}] and labels[labels != {label}]; "
            "Predictions.flatten and Penalised take ignore_index."
        )


def first_beyond(labels: Tensor, classes: int) -> str:
    """The first label that is no class, and its row; asked for where there is one.

    >>> import torch
    >>> first_beyond(torch.tensor([0, 2, 7]), 2)
    '2 in row 1 (counted from 0)'
    """
    row, label = _beyond(labels, classes)
    return f"{label} in row {row} (counted from 0)"


def _beyond(labels: Tensor, classes: int) -> tuple[int, int]:
    every = labels.long()
    row = int(((every < 0) | (every >= classes)).nonzero()[0, 0])
    return row, int(every[row])


def check_targets(targets: Tensor, scores: Tensor) -> None:
    """A zero or a one for every score."""
    check_tensor("scores", scores)
    check_tensor("targets", targets)
    if scores.ndim != 2 or scores.shape != targets.shape:
        raise ValueError(
            "scores and targets must share the shape (n, labels); "
            f"got {tuple(scores.shape)} and {tuple(targets.shape)}. "
            "For class indices use Predictions(logits, labels)."
        )
    if is_readable(targets) and not bool(((targets == 0) | (targets == 1)).all()):
        raise ValueError(
            f"targets must be 0 or 1; got {targets.min().item():g} to {targets.max().item():g}. "
            "Where some targets are unknown, use Predictions.from_binary on the known ones."
        )


def check_weights(weights: Tensor | None, logits: Tensor) -> None:
    """One number per row that says how much it counts."""
    if weights is None:
        return
    check_tensor("weights", weights)
    if weights.shape != logits.shape[:1]:
        raise ValueError(
            f"weights must hold one number per sample, {len(logits)} in all; "
            f"got shape {tuple(weights.shape)}."
        )
    if not weights.is_floating_point():
        raise ValueError(
            f"weights must be floating point; got {weights.dtype}. Pass weights.float()."
        )
    check_device("weights", weights, logits)
    check_weight_values(weights)


def check_weight_values(weights: Tensor) -> None:
    if not is_readable(weights) or weights.numel() == 0:
        return
    low, high = extremes(weights)
    # NaN is within no limits.
    if not (low >= 0 and high < inf):
        raise ValueError(
            f"weights must be finite and not negative; got {low:g} to {high:g}. "
            "Set the weight of a sample to leave out to zero."
        )


def check_groups(groups: Tensor) -> None:
    """One integer per sample."""
    check_tensor("groups", groups)
    if groups.ndim != 1 or groups.is_floating_point():
        raise ValueError(
            "groups must hold one integer per sample; "
            f"got {groups.dtype} of shape {tuple(groups.shape)}."
        )
