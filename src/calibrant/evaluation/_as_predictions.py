"""Predictions of what a person passes, looked at before anything is measured."""

from torch import Tensor

from .._checks import (
    EXCESS,
    are_chances,
    check_flag,
    check_labels_in_range,
    check_not_probabilities,
    check_probabilities,
    first_outside,
)
from ..predictions import Predictions
from ._inputs import check_enough, check_no_nan


def as_predictions(
    table: Tensor, labels: Tensor, *, probabilities: bool, name: str = "logits", fewest: int = 3
) -> Predictions:
    """Predictions of logits, or of probabilities where that is said; every row is a forecast.

    - `name`: of the table, where a sentence is about it.
    - `fewest`: rows that are enough, where these are a part of what will be judged.
    """
    check_flag("probabilities", probabilities)
    if table.is_floating_point():
        _check_shape(name, table, probabilities)
        if len(table) < fewest:
            check_enough(len(table))
        check_no_nan("probabilities" if probabilities else name, table)
        if probabilities:
            _check_chances(table)
        else:
            check_not_probabilities(name, table, _SAY_SO)
    else:
        raise TypeError(
            f"{'probabilities' if probabilities else name} must be floating point; got "
            f"{table.dtype}. Pass np.asarray({name}, dtype=float), or {name}.double() of torch; if "
            f"these are labels, the order is ({name}, labels)."
        )
    build = Predictions.from_probabilities if probabilities else Predictions
    predictions = build(table, labels)
    check_labels_in_range(predictions.labels, predictions.classes)
    check_confidences(predictions.confidence)
    _check_not_above_one(predictions.confidence)
    return predictions


def _check_shape(name: str, table: Tensor, probabilities: bool) -> None:
    """A row per sample and a column per class; advice that suits arrays and tensors alike."""
    shape = tuple(table.shape)
    if table.ndim > 2:
        raise ValueError(
            f"{name} must have shape (n, classes); got {shape}. For pixels or tokens bring the "
            f"classes last, then pass {name}.reshape(-1, {name}.shape[-1]) and labels.reshape(-1)."
        )
    if probabilities and (table.ndim == 0 or shape[1:] == (1,)):
        remedy = f" For chances of class 1 pass {name}[:, 0]." if shape else ""
        raise ValueError(
            f"probabilities must have shape (n, classes) or (n,); got {shape}.{remedy}"
        )
    if not probabilities and (table.ndim < 2 or shape[1] == 1):
        column = name if table.ndim < 2 else f"{name}[:, 0]"
        raise ValueError(
            f"{name} must have shape (n, classes), of two classes at least; got {shape}. For one "
            f"score z = {column} per sample, the log-odds of class 1, pass "
            "np.stack([np.zeros_like(z), z], axis=1), or torch.stack with dim=1."
        )


def check_confidences(confidence: Tensor) -> None:
    """Name the first row that is no forecast: of NaN or infinity, or with every class ruled out."""
    bad = confidence.isnan()
    if bool(bad.any()):
        raise ValueError(
            "predictions must give every row a confidence; got NaN for row "
            f"{int(bad.nonzero()[0, 0])} (counted from 0), the first of {int(bad.sum())}. "
            "Leave such rows out, or find where they come from: NaN, or infinite logits."
        )


def _check_not_above_one(confidence: Tensor) -> None:
    """No event is surer than certain, though the sum of a row may be off by as much."""
    above = (confidence > 1 + EXCESS).nonzero()
    if len(above):
        row = int(above[0, 0])
        raise ValueError(
            f"probabilities must lie between 0 and 1; got {confidence[row].item():.4g} in row "
            f"{row} (counted from 0). Divide each row by its sum."
        )


def _check_chances(table: Tensor) -> None:
    """Each row sums to one, or each number is the chance of class 1."""
    if table.ndim == 2:
        check_probabilities(table, "leave out probabilities=True")  # every row, also of many
        return
    if not are_chances(table):
        raise ValueError(
            f"probabilities of class 1 must lie between 0 and 1; got {first_outside(table)}. If "
            "these are logits, pass 1 / (1 + np.exp(-logits)), or logits.sigmoid() of torch."
        )


_SAY_SO = "Pass probabilities=True, or as_logits(probabilities)."
