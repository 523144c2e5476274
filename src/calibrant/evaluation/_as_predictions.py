"""Predictions of what a person passes, looked at before anything is measured."""

from torch import Tensor

from .._checks import check_not_probabilities, check_probabilities
from ..predictions import Predictions
from ._inputs import check_labels_in_range, check_no_nan


def as_predictions(
    table: Tensor, labels: Tensor, *, probabilities: bool, name: str = "logits"
) -> Predictions:
    """Predictions of logits, or of probabilities where that is said; every row is a forecast.

    - `name`: of the table, where a sentence is about it.
    """
    if table.is_floating_point():
        check_no_nan("probabilities" if probabilities else name, table)
        if probabilities:
            _check_not_logits(table)
        elif table.ndim == 2:
            check_not_probabilities(name, table, _SAY_SO)
    build = Predictions.from_probabilities if probabilities else Predictions
    predictions = build(table, labels)
    if probabilities:
        check_probabilities(predictions.probs)  # every row, also of a table of many
    check_labels_in_range(predictions.labels, predictions.classes)
    check_confidences(predictions.confidence)
    return predictions


def check_confidences(confidence: Tensor) -> None:
    """Name the first row that is no forecast: of NaN or infinity, or with every class ruled out."""
    bad = confidence.isnan()
    if bool(bad.any()):
        raise ValueError(
            "predictions must give every row a confidence; got NaN for row "
            f"{int(bad.nonzero()[0, 0])} (counted from 0), the first of {int(bad.sum())}. "
            "Leave such rows out, or find where they come from: NaN, or infinite logits."
        )


def _check_not_logits(table: Tensor) -> None:
    if table.numel() == 0:
        return
    low, high = (extreme.item() for extreme in table.aminmax())
    if low < 0 or high > _MOST:
        remedy = (
            "leave out probabilities=True."
            if table.ndim == 2
            else "pass 1 / (1 + np.exp(-logits))."
        )
        raise ValueError(
            "probabilities must not be negative and each row must sum to one; got values from "
            f"{low:.3g} to {high:.3g}. If these are logits, {remedy}"
        )


_SAY_SO = "Pass probabilities=True, or as_logits(probabilities)."
# Rounding takes a probability a little above one, and logits go much further.
_MOST = 1.1
