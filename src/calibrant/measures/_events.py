"""Where events enter a measure: their form is checked once, for every measure alike."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from torch import Tensor

from .._checks import check_event_values, check_events, did_you_mean, widest
from .._tables import as_floats, events_of
from ..criteria import BY_PARTS

OfEvents = TypeVar("OfEvents", bound=Callable[..., Tensor])


def of_events(measure: OfEvents) -> OfEvents:
    """A measure that says what is wrong with its input, and takes 0/1 outcomes of any type."""
    known = [p.name for p in signature(measure).parameters.values() if p.kind is p.KEYWORD_ONLY]

    @wraps(measure)
    def checked(
        confidence: Tensor,
        outcome: Tensor | None = None,
        *,
        weights: Tensor | None = None,
        **settings: Any,
    ) -> Tensor:
        if outcome is None:
            raise TypeError(
                f"{measure.__name__} takes a confidence and an outcome for each event. "
                f"To judge predictions, lift it: top_label({measure.__name__})."
            )
        for name in settings:
            if name not in known:
                raise TypeError(
                    f"{measure.__name__} has no setting {name!r}; it takes {', '.join(known)}."
                    f"{did_you_mean(name, known)}"
                )
        check_events(confidence, outcome, weights)
        twin = BY_PARTS.get(checked)
        events = None if twin is None else events_of(confidence, outcome, weights)
        value = None if twin is None or events is None else twin(events, **settings)
        if value is not None:
            return value
        check_event_values(confidence, outcome)
        if weights is not None:
            settings["weights"] = weights.to(widest(weights.device))
        if outcome.is_floating_point():
            outcome = outcome.to(confidence.dtype)
        else:
            outcome = as_floats(outcome, confidence.dtype)
        return measure(confidence, outcome, **settings)

    return checked  # type: ignore[return-value]
