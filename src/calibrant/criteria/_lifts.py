"""Which events a measure judges: lifts that turn a measure into a criterion."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import one_hot

from .._checks import check_norm
from ..predictions import Predictions
from ._roots import root

Criterion = Callable[[Predictions], Tensor]
"""Predictions in, one number out."""

Measure = Callable[..., Tensor]
"""`(confidence, outcome)` in, one number out; settings, such as `weights`, by keyword."""

Scalar = TypeVar("Scalar", bound=Callable[..., Tensor])

# Columns judged at once times samples: bounds the memory of a lift over many classes.
_AT_ONCE = 2**22


def top_label(measure: Measure) -> Criterion:
    """Judge only the predicted class: is it right as often as it says?

    >>> from calibrant import Predictions, ece
    >>> predictions = Predictions(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    >>> top_label(ece)(predictions)
    tensor(0.4251)
    """
    apply = _with_weights(measure)

    @wraps(measure)
    def criterion(predictions: Predictions) -> Tensor:
        return apply(predictions.confidence, predictions.correct, predictions.weights)

    return criterion


def class_wise(measure: Measure, *, norm: float = 1) -> Criterion:
    """Judge every class in turn against the rest (every label, when there are several).

    - `norm`: 1 averages the classes, 2 takes the root of their mean square: with
      `partial(ece, norm=2, binning="mass")` inside, the latter is marginal calibration error.

    All classes are judged at once. The measure must be one that `torch.vmap` can map.

    >>> from calibrant import Predictions, dca
    >>> predictions = Predictions(torch.eye(3), torch.tensor([0, 1, 1]))
    >>> class_wise(dca)(predictions)
    tensor(0.2222)
    """
    check_norm(norm)
    apply = _with_weights(measure)

    @wraps(measure)
    def criterion(predictions: Predictions) -> Tensor:
        chances, happened = predictions.marginals
        values = _for_each(
            lambda chance, outcome: apply(chance, outcome, predictions.marginal_weights),
            chances.T.contiguous(),
            happened.T.contiguous(),
        )
        return values.mean() if norm == 1 else root((values.abs() ** norm).mean(), norm)

    return criterion


def per_class(measure: Measure) -> Criterion:
    """Judge the predicted class separately for each class predicted.

    Of all the answers "cat" given with 80% confidence, are 80% cats? Each class counts by
    its share of the predictions. The measure must have a weighted form.

    Gupta & Ramdas, "Top-label calibration and multiclass-to-binary reductions", ICLR 2022.
    """
    apply = _with_weights(measure)

    @wraps(measure)
    def criterion(predictions: Predictions) -> Tensor:
        confidence, correct = predictions.confidence, predictions.correct
        members = one_hot(predictions.predicted, predictions.classes).T.to(confidence)
        if predictions.weights is not None:
            members = members * predictions.weights
        values = _for_each(lambda mask: apply(confidence, correct, mask), members)
        mass = members.sum(dim=1)
        mean = (mass * values).sum() / mass.sum().clamp(min=torch.finfo(mass.dtype).tiny)
        return mean.to(confidence.dtype)

    return criterion


def by_group(groups: Int[Tensor, " n"]) -> Callable[[Scalar], Scalar]:
    """Judge each group of samples on its own, and average the groups.

    A model may be calibrated overall and not for some group of people; here a small group
    counts as much as a large one.

    - `groups`: the group of each sample, any integers.

    Returns a lift of measures and of criteria, both of which must have a weighted form.

    >>> from calibrant import dca
    >>> groups = torch.tensor([0, 0, 1])
    >>> confidence, outcome = torch.tensor([0.5, 0.5, 0.9]), torch.tensor([1.0, 0.0, 0.0])
    >>> by_group(groups)(dca)(confidence, outcome)
    tensor(0.4500)
    """
    if groups.ndim != 1 or groups.is_floating_point():
        raise ValueError(
            "groups must hold one integer per sample; "
            f"got {groups.dtype} of shape {tuple(groups.shape)}."
        )
    members = groups.unique()[:, None] == groups

    def lift(inner: Scalar) -> Scalar:
        apply: Callable[..., Tensor] = _with_weights(inner)

        def of_predictions(predictions: Predictions) -> Tensor:
            everyone = predictions.of_all_ranks(groups)
            here = everyone is groups
            return _mean_over_groups(
                lambda mask: inner(predictions.reweighted(mask)),
                members if here else everyone.unique()[:, None] == everyone,
                predictions.confidence,
                predictions.weights,
            )

        @wraps(inner)
        def grouped(*judged: Any, weights: Tensor | None = None) -> Tensor:
            if isinstance(judged[0], Predictions):
                return of_predictions(judged[0])
            return _mean_over_groups(
                lambda mask: apply(*judged, mask if weights is None else mask * weights),
                members,
                judged[0],
                weights,
            )

        return grouped  # type: ignore[return-value]

    return lift


def _mean_over_groups(
    judge: Callable[[Tensor], Tensor], members: Tensor, like: Tensor, weights: Tensor | None
) -> Tensor:
    if members.shape[1] != len(like):
        raise ValueError(
            f"groups must hold one entry per sample, {len(like)} in all; got {members.shape[1]}. "
            "Build by_group anew for each batch."
        )
    masks = members.to(like)
    present = (masks if weights is None else masks * weights).sum(dim=1) > 0
    return (present * _for_each(judge, masks)).sum() / present.sum().clamp(min=1)


def rooted(inner: Scalar) -> Scalar:
    r"""The square root of a measure or criterion, $\sqrt{\max(x, 0)}$, safe to train through.

    The weights published for ESD belong to `rooted(esd)`: the authors' training code takes
    the root although their equation 11 does not.

    >>> from calibrant import esd
    >>> confidence = torch.tensor([0.9, 0.9, 0.9, 0.9])
    >>> rooted(esd)(confidence, torch.tensor([1.0, 0.0, 0.0, 0.0]))
    tensor(0.6000)
    """

    @wraps(inner)
    def root_of(*args: Any, **settings: Any) -> Tensor:
        return root(inner(*args, **settings))

    return root_of  # type: ignore[return-value]


def _for_each(judge: Callable[..., Tensor], *rows: Tensor) -> Tensor:
    """What `judge` says of each row, all at once, in memory bounded by `_AT_ONCE`."""
    at_once = max(1, _AT_ONCE // max(rows[0].shape[1], 1))
    if len(rows[0]) <= at_once:
        return torch.vmap(judge)(*rows)
    blocks = zip(*(row.split(at_once) for row in rows), strict=True)
    return torch.cat([torch.vmap(judge)(*block) for block in blocks])


def _with_weights(measure: Callable[..., Tensor]) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Pass the weights on where there are any, or say that the measure cannot take them."""
    takes = _takes_weights(measure)
    name = getattr(measure, "__name__", repr(measure))

    def apply(confidence: Tensor, outcome: Tensor, weights: Tensor | None) -> Tensor:
        if weights is None:
            return measure(confidence, outcome)
        if not takes:
            raise ValueError(
                f"{name} has no weighted form: it must take the keyword weights to be used with "
                "sample weights, per_class or by_group. Leave the weights out."
            )
        return measure(confidence, outcome, weights=weights)

    return apply


def _takes_weights(measure: Callable[..., Tensor]) -> bool:
    parameters = signature(measure).parameters.values()
    return any(p.name == "weights" or p.kind is Parameter.VAR_KEYWORD for p in parameters)
