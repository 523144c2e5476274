"""Forecasts of events, taken from predictions or given as a pair."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions
from ._inputs import as_events

Forecasts: TypeAlias = Predictions | tuple[Any, Any]
"""Predictions, whose top label is judged, or a pair `(confidence, outcome)`."""


_OF_TABLES = (
    "For logits pass Predictions(logits, labels), for a table of probabilities "
    "Predictions.from_probabilities(probabilities, labels), of tensors."
)

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


def of_one_argument(judge: Callable[Arguments, Found]) -> Callable[Arguments, Found]:
    """The same, and whoever passes `(logits, labels)` or a pair as two is told how to as one."""

    @wraps(judge)
    def judged(*told: Arguments.args, **settings: Arguments.kwargs) -> Found:
        if len(told) > 1:
            raise TypeError(
                f"{judge.__name__} takes Predictions or a pair (confidence, outcome) as one "
                f"argument; got {len(told)}. Put a pair in brackets of its own. {_OF_TABLES}"
            )
        return judge(*told, **settings)

    return judged


def events(forecasts: Forecasts) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """How sure, and whether it happened: two vectors on the CPU, the outcomes in float64.

    >>> events(([0.9, 0.6], [True, False]))
    (tensor([0.9000, 0.6000], dtype=torch.float64), tensor([1., 0.], dtype=torch.float64))
    """
    if isinstance(forecasts, Predictions):
        refuse_weights(forecasts)
        forecasts = forecasts.confidence, forecasts.correct
    if not isinstance(forecasts, tuple | list) or len(forecasts) != 2:
        raise TypeError(
            "forecasts must be Predictions or a pair (confidence, outcome); got "
            f"{type(forecasts).__name__}. {_OF_TABLES}"
        )
    if getattr(forecasts[0], "ndim", 1) == 2:
        raise ValueError(
            "forecasts must be Predictions or a pair (confidence, outcome), one number per event; "
            f"got shape {tuple(forecasts[0].shape)} for the first. {_OF_TABLES}"
        )
    confidence, outcome = (each.cpu() for each in as_events(*forecasts))
    if len(confidence) == 0:
        raise ValueError("forecasts must hold at least one event; got none.")
    return confidence, outcome.double()


def refuse_weights(predictions: Predictions) -> None:
    """What rests on samples drawn alike has no form for samples that count unequally."""
    if predictions.weights is not None:
        raise ValueError(
            "predictions must not have weights here: the guarantee is for samples that count "
            "alike. Pass Predictions(logits, labels)."
        )
