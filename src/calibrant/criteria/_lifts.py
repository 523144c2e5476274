"""Which events a measure judges: lifts that turn a measure into a criterion."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Any

import torch
from torch import Tensor

from .._checks import check_callable, check_norm
from ..predictions import Predictions, is_class
from ._roots import root

Criterion = Callable[[Predictions], Tensor]
"""Predictions in, one number out."""

Measure = Callable[..., Tensor]
"""`(confidence, outcome)` in, one number out; settings, such as `weights`, by keyword."""

Twin = Callable[..., Tensor | None]

BY_CLASS: dict[Measure, Twin] = {}
"""Faster twins of measures over all classes; measures enter theirs here.

Predictions in, the settings of the measure by keyword; a value per class out, or nothing where
the definition must be asked.
"""

BY_PARTS: dict[Measure, Twin] = {}
"""Faster twins of measures of long columns, which are read some after others.

`Events` in, the settings of the measure by keyword; its value out, or nothing where the definition
must be asked.
"""

# Columns judged at once times samples: bounds the memory of a lift over many classes.
_AT_ONCE = 2**22


def top_label(measure: Measure) -> Criterion:
    """Judge only the predicted class: is it right as often as it says?

    >>> from calibrant import Predictions, ece
    >>> predictions = Predictions(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    >>> top_label(ece)(predictions)
    tensor(0.4251)

    Settings are bound with `functools.partial`: `top_label(partial(ece, bins=20))`.
    """
    return _TopLabel(check_callable("measure", measure))


def class_wise(measure: Measure, *, norm: float = 1) -> Criterion:
    """Judge every class in turn against the rest (every label, when there are several).

    - `norm`: 1 averages the classes, 2 takes the root of their mean square: with
      `partial(ece, norm=2, binning="mass")` inside, the latter is marginal calibration error.

    All classes are judged at once. The measure must be one that `torch.vmap` can map: torch
    operators, without an `if` on values.

    >>> from calibrant import Predictions, dca
    >>> predictions = Predictions(torch.eye(3), torch.tensor([0, 1, 1]))
    >>> class_wise(dca)(predictions)
    tensor(0.2222)
    """
    check_norm(norm)
    return _ClassWise(check_callable("measure", measure), norm)


def per_class(measure: Measure) -> Criterion:
    """Judge the predicted class separately for each class predicted.

    Of all the answers "cat" given with 80% confidence, are 80% cats? Each class counts by
    its share of the predictions. The measure must have a weighted form, finite also when all
    weights are zero, as they are for a class that is never predicted.

    Gupta & Ramdas, "Top-label calibration and multiclass-to-binary reductions", ICLR 2022.
    """
    return _PerClass(check_callable("measure", measure))


class Lift:
    """A measure or criterion made from another, which shows in its name."""

    inner: Callable[..., Tensor]

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}({name_of(self.inner)})"


@dataclass(frozen=True, repr=False)
class _TopLabel(Lift):
    inner: Measure

    def __call__(self, predictions: Predictions, /) -> Tensor:
        twin = _twin(BY_PARTS, self.inner)
        events = None if twin is None else predictions.events
        value = None if twin is None or events is None else twin(events)
        if value is not None:
            return value
        return judge(self.inner, predictions.confidence, predictions.correct, predictions.weights)


@dataclass(frozen=True, repr=False)
class _ClassWise(Lift):
    inner: Measure
    norm: float

    def __call__(self, predictions: Predictions, /) -> Tensor:
        twin = _twin(BY_CLASS, self.inner)
        values = None if twin is None else twin(predictions)
        if values is None:
            values = self._one_by_one(predictions)
        if self.norm == 1:
            return values.mean()
        return root((values.abs() ** self.norm).mean(), self.norm)

    def _one_by_one(self, predictions: Predictions) -> Tensor:
        chances, happened = predictions.marginals
        weights = predictions.marginal_weights
        return for_each(
            lambda chance, outcome: judge(self.inner, chance, outcome, weights),
            chances.T.contiguous(),
            happened.T.contiguous(),
        )


@dataclass(frozen=True, repr=False)
class _PerClass(Lift):
    inner: Measure

    def __call__(self, predictions: Predictions, /) -> Tensor:
        confidence, correct = predictions.confidence, predictions.correct
        members = is_class(predictions.predicted, predictions.classes, confidence.dtype).T
        if predictions.weights is not None:
            members = members * predictions.weights
        values = for_each(lambda mask: judge(self.inner, confidence, correct, mask), members)
        mass = members.sum(dim=1)
        terms = torch.where(mass > 0, mass * values, 0)
        return (terms.sum() / mass.sum().clamp(min=torch.finfo(mass.dtype).tiny)).to(confidence)


def judge(measure: Measure, confidence: Tensor, outcome: Tensor, weights: Tensor | None) -> Tensor:
    """Pass the weights on where there are any, or say that the measure cannot take them."""
    if weights is None:
        return measure(confidence, outcome)
    if not _takes_weights(measure):
        raise ValueError(
            f"{name_of(measure)} has no weighted form: it must take the keyword weights to be used "
            "with sample weights, per_class or by_group. Leave the weights out."
        )
    return measure(confidence, outcome, weights=weights)


def for_each(judge_row: Callable[..., Tensor], *rows: Tensor) -> Tensor:
    """What `judge_row` says of each row, all at once, in memory bounded by `_AT_ONCE`."""
    at_once = max(1, _AT_ONCE // max(rows[0].shape[1], 1))
    if len(rows[0]) <= at_once:
        return torch.vmap(judge_row)(*rows)
    blocks = zip(*(row.split(at_once) for row in rows), strict=True)
    return torch.cat([torch.vmap(judge_row)(*block) for block in blocks])


def name_of(criterion: Callable[..., Any]) -> str:
    """What a person calls it: its name, or how it was made."""
    if isinstance(criterion, partial):
        settings = ", ".join(f"{name}={value!r}" for name, value in criterion.keywords.items())
        return f"partial({name_of(criterion.func)}, {settings})"
    return getattr(criterion, "__name__", None) or repr(criterion)


def _twin(twins: dict[Measure, Twin], measure: Measure) -> Twin | None:
    """The faster twin of a measure with its settings, if it has one that takes them."""
    bound = measure if isinstance(measure, partial) else partial(measure)
    if not isinstance(bound.func, Hashable) or bound.args or "weights" in bound.keywords:
        return None
    twin = twins.get(bound.func)
    if twin is None:
        return None
    if bound.keywords and not bound.keywords.keys() <= signature(bound.func).parameters.keys():
        return None  # of a setting that it does not have the measure itself will speak
    return partial(twin, **bound.keywords)


def _takes_weights(measure: Measure) -> bool:
    parameters = signature(measure).parameters.values()
    return any(p.name == "weights" or p.kind is Parameter.VAR_KEYWORD for p in parameters)
