"""Logits: a row of real numbers per sample, which are not probabilities."""

from torch import Tensor

from ._probabilities import check_not_probabilities
from ._tensors import check_tensor, is_readable


def check_logits(logits: Tensor) -> None:
    """One row of real numbers per sample, one column per class, which are not probabilities."""
    check_table("logits", logits)
    if is_readable(logits):
        remedy = "Use Predictions.from_probabilities(probabilities, labels)."
        check_not_probabilities("logits", logits, remedy)


def check_table(name: str, logits: Tensor) -> None:
    """One row of real numbers per sample, one column per class."""
    check_tensor(name, logits)
    if not logits.is_floating_point():
        raise TypeError(
            f"{name} must be floating point; got {logits.dtype}. "
            f"Pass {name}.float(); if these are labels, the order is (logits, labels)."
        )
    if logits.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n, classes); got {tuple(logits.shape)}. "
            "For pixels or tokens use Predictions.flatten; for one score per sample, "
            "Predictions.from_binary."
        )
    rows, classes = logits.shape
    if rows == 0:
        raise ValueError(
            f"predictions must hold at least one sample; got {name} of shape {(rows, classes)}. "
            "Skip empty batches, for instance with DataLoader(drop_last=True)."
        )
    if classes < 2:
        raise ValueError(
            f"{name} must have a column for each of at least two classes; got {classes}. "
            "For one score per sample use Predictions.from_binary(logits.squeeze(1), labels); "
            "for one chance, Predictions.from_probabilities(chance.squeeze(1), labels)."
        )


def check_shapes(logits: Tensor, labels: Tensor, weights: Tensor | None, class_dim: int) -> None:
    """Labels shaped like logits without the class dimension."""
    check_tensor("logits", logits)
    check_tensor("labels", labels)
    if not -logits.ndim <= class_dim < logits.ndim or logits.ndim < 2:
        raise ValueError(
            f"class_dim must name a dimension of logits of shape {tuple(logits.shape)}; "
            f"got {class_dim}. It is 1 for (n, classes, d1, ...) and -1 for tokens."
        )
    expected = list(logits.shape)
    del expected[class_dim]
    for name, x in (("labels", labels), ("weights", weights)):
        if x is not None and list(x.shape) != expected:
            raise ValueError(
                f"{name} must have the shape of logits without dimension {class_dim}, "
                f"{tuple(expected)}; got {tuple(x.shape)}. Set class_dim to the dimension that "
                f"holds the classes; logits have shape {tuple(logits.shape)}."
            )
