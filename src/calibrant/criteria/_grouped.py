"""Lifts of measures and of criteria alike: by group, and the root."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from jaxtyping import Int
from torch import Tensor

from .._checks import check_callable, check_groups
from ..predictions import Predictions
from ._lifts import Lift, for_each, judge
from ._roots import root

Scalar = TypeVar("Scalar", bound=Callable[..., Tensor])


def by_group(groups: Int[Tensor, " n"]) -> Callable[[Scalar], Scalar]:
    """Judge each group of samples on its own, and average the groups.

    A model may be calibrated overall and not for some group of people; here a small group
    counts as much as a large one.

    - `groups`: the group of each sample, any integers.

    Returns a lift of measures and of criteria, both of which must have a weighted form. Over
    several processes lift the criterion, `across_ranks(by_group(groups)(top_label(ece)))`, with
    the groups of this process's samples.

    >>> from calibrant import dca
    >>> groups = torch.tensor([0, 0, 1])
    >>> confidence, outcome = torch.tensor([0.5, 0.5, 0.9]), torch.tensor([1.0, 0.0, 0.0])
    >>> by_group(groups)(dca)(confidence, outcome)
    tensor(0.4500)
    """
    check_groups(groups)
    return _ByGroup(groups, groups.unique()[:, None] == groups)


def rooted(inner: Scalar) -> Scalar:
    r"""The square root of a measure or criterion, $\sqrt{\max(x, 0)}$, safe to train through.

    The weights published for ESD belong to `rooted(esd)`: the authors' training code takes
    the root although their equation 11 does not.

    >>> from calibrant import esd
    >>> confidence = torch.tensor([0.9, 0.9, 0.9, 0.9])
    >>> rooted(esd)(confidence, torch.tensor([1.0, 0.0, 0.0, 0.0]))
    tensor(0.6000)
    """
    return cast(Scalar, _Rooted(check_callable("inner", inner)))


@dataclass(frozen=True, repr=False)
class _Rooted(Lift):
    inner: Callable[..., Tensor]

    def __call__(self, *judged: Any, **settings: Any) -> Tensor:
        return root(self.inner(*judged, **settings))


@dataclass(frozen=True)
class _ByGroup:
    groups: Tensor
    members: Tensor

    def __call__(self, inner: Scalar) -> Scalar:
        return cast(Scalar, _Grouped(check_callable("inner", inner), self.groups, self.members))


@dataclass(frozen=True, repr=False)
class _Grouped(Lift):
    inner: Callable[..., Tensor]
    groups: Tensor
    members: Tensor

    def __call__(self, *judged: Any, weights: Tensor | None = None) -> Tensor:
        if isinstance(judged[0], Predictions):
            return self._of_predictions(judged[0])
        confidence, outcome = judged
        return _mean_over_groups(
            lambda mask: judge(
                self.inner, confidence, outcome, mask if weights is None else mask * weights
            ),
            self.members,
            confidence,
            weights,
        )

    def _of_predictions(self, predictions: Predictions) -> Tensor:
        everyone = predictions.of_all_ranks(self.groups)
        members = self.members
        if everyone is not self.groups:
            members = everyone.unique()[:, None] == everyone
        if predictions.labels_per_sample is not None:
            members = members.repeat_interleave(predictions.labels_per_sample, dim=1)
        return _mean_over_groups(
            lambda mask: self.inner(predictions.reweighted(mask)),
            members,
            predictions.confidence,
            predictions.weights,
        )


def _mean_over_groups(
    judge_group: Callable[[Tensor], Tensor], members: Tensor, like: Tensor, weights: Tensor | None
) -> Tensor:
    if members.shape[1] != len(like):
        raise ValueError(
            f"groups must hold one entry per sample, {len(like)} in all; got {members.shape[1]}. "
            "Build by_group anew for each batch."
        )
    masks = members.to(like)
    present = (masks if weights is None else masks * weights).sum(dim=1) > 0
    values = torch.where(present, for_each(judge_group, masks), 0)
    return values.sum() / present.sum().clamp(min=1)
