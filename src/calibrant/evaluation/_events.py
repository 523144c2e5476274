"""Forecasts of events, taken from predictions or given as a pair."""

from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions

Forecasts: TypeAlias = Predictions | tuple[Any, Any]
"""Predictions, whose top label is judged, or a pair `(confidence, outcome)`."""


def events(forecasts: Forecasts) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """How sure, and whether it happened: two vectors on the CPU, the outcomes in float64.

    >>> events(([0.9, 0.6], [True, False]))
    (tensor([0.9000, 0.6000]), tensor([1., 0.], dtype=torch.float64))
    """
    if isinstance(forecasts, Predictions):
        refuse_weights(forecasts)
        return forecasts.confidence.detach().cpu(), forecasts.correct.detach().cpu().double()
    if len(forecasts) != 2:
        raise ValueError(
            "forecasts must be Predictions or a pair (confidence, outcome); "
            f"got a tuple of {len(forecasts)}."
        )
    confidence, outcome = (torch.as_tensor(part).detach().cpu() for part in forecasts)
    if confidence.ndim != 1 or confidence.shape != outcome.shape or len(confidence) == 0:
        raise ValueError(
            "confidence and outcome must be vectors of one length, at least 1; "
            f"got shapes {tuple(confidence.shape)} and {tuple(outcome.shape)}."
        )
    if not confidence.is_floating_point():
        raise TypeError(
            f"confidence must be floating point; got {confidence.dtype}. "
            "The order is (confidence, outcome)."
        )
    if not bool(((confidence >= 0) & (confidence <= 1)).all()):
        raise ValueError(
            "confidence must lie between 0 and 1; got "
            f"{confidence.min().item():g} to {confidence.max().item():g}. "
            "For logits pass Predictions(logits, labels)."
        )
    if not bool(((outcome == 0) | (outcome == 1)).all()):
        raise ValueError(
            "outcome must be 0 or 1, whether each event happened; got "
            f"{outcome.double().min().item():g} to {outcome.double().max().item():g}."
        )
    return confidence, outcome.double()


def refuse_weights(predictions: Predictions) -> None:
    """What rests on samples drawn alike has no form for samples that count unequally."""
    if predictions.weights is not None:
        raise ValueError(
            "predictions must not have weights here: the guarantee is for samples that count "
            "alike. Pass Predictions(logits, labels)."
        )
