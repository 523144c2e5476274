"""Two isotonic chances for every sample: had it happened, and had it not."""

from typing import Any, ClassVar, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..predictions import Predictions
from ._isotonic import pooled
from ._odds import log_odds
from ._one_vs_rest import StepCurves, events
from ._report import Outcome
from ._steps import Floats, looked_up, stacked

# Odds this near to a fitted sample's are taken to be tied with it, whatever the rounding.
_TIED = 1e-5


class VennAbers(StepCurves):
    r"""Inductive Venn–Abers prediction: an interval that holds a calibrated chance.

    For odds $s$, isotonic regression is fitted twice, with the sample $(s, 0)$ added and with
    $(s, 1)$ added; at $s$ they give $p_0 < p_1$, one of which is calibrated whatever the law of
    the data. The chance is the value between them that risks least in log-loss,

    $$p = \frac{p_1}{1 - p_0 + p_1}$$

    so it is never 0 or 1, and needs no clip. `interval` gives $p_0$ and $p_1$.

    The added sample has weight one. For more than two classes each is predicted against the rest,
    and the chances are made to sum to one. Both curves are worked out beforehand for all $s$,
    after one sort a class; eight numbers or more per sample are kept for it.

    >>> _ = torch.manual_seed(0)
    >>> scores, labels = torch.randn(500), torch.arange(500) % 2
    >>> venn = VennAbers().fit(scores, labels, folds=0)
    >>> low, high = venn.interval(scores)
    >>> bool((low < venn.predict_proba(scores)).all() and (venn.predict_proba(scores) < high).all())
    True

    Vovk, Petej & Fedorova, "Large-scale probabilistic predictors with and without guarantees of
    validity", NeurIPS 2015.
    """

    learnt: ClassVar[tuple[str, ...]] = ("steps_", "levels_", "lower_", "upper_")

    lower_: Tensor
    upper_: Tensor

    def _fit(self, predictions: Predictions) -> Outcome:
        found = [venn_abers_curves(*event) for event in events(predictions)]
        device = predictions.logits.device
        steps, lower = stacked([(steps, low) for steps, low, _ in found])
        _, upper = stacked([(steps, high) for steps, _, high in found])
        self._learn(
            steps_=steps.to(device),
            levels_=(upper / (1 - lower + upper)).to(device),
            lower_=lower.to(device),
            upper_=upper.to(device),
        )
        return Outcome()

    @overload
    def interval(self, logits: Tensor) -> tuple[Tensor, Tensor]: ...
    @overload
    def interval(self, logits: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def interval(
        self, logits: Tensor | NDArray[Any]
    ) -> tuple[Tensor, Tensor] | tuple[NDArray[Any], NDArray[Any]]:
        """The chances $p_0$ and $p_1$, of the shape and kind of `predict_proba`.

        - `logits`: `(n, classes)`, or `(n,)` where it was fitted so. Every class by itself: over
          the classes they do not sum to one.
        """
        self._fitted_form()
        if not isinstance(logits, Tensor):
            with torch.no_grad():
                low, high = self.interval(self._beside(logits))
            return low.cpu().numpy(), high.cpu().numpy()
        odds = logits[:, None] if logits.ndim == 1 else log_odds(logits)
        dtype = logits.dtype
        low, high = looked_up(odds, self.steps_, self.lower_.to(dtype), self.upper_.to(dtype))
        if logits.ndim == 1:
            return low[:, 0], high[:, 0]
        if low.shape[1] == 1:
            return torch.cat([1 - high, low], dim=1), torch.cat([1 - low, high], dim=1)
        return low, high


def venn_abers_curves(
    odds: Floats, happened: NDArray[np.bool_], weights: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Where both curves step, and the levels of $p_0$ and of $p_1$."""
    x, hits, mass = pooled(odds, happened, weights)
    x = x.astype(np.float64)
    # Before each of the distinct odds, at it, and so on; last, after all of them.
    place = np.arange(2 * len(x) + 1) // 2
    at = np.arange(len(place)) % 2 == 1
    own_hits, own_mass = np.zeros(len(place)), np.zeros(len(place))
    own_hits[at], own_mass[at] = hits, mass
    low, high = (
        _with_one_more(hits, mass, own_hits + outcome, own_mass + 1, place, at)
        for outcome in (0.0, 1.0)
    )
    room = np.diff(x, prepend=-np.inf, append=np.inf) / 3
    tied = np.minimum(_TIED * (1 + np.abs(x)), np.minimum(room[:-1], room[1:]))
    return np.stack([x - tied, x + tied], axis=1).reshape(-1), low, high


def _with_one_more(
    hits: Floats,
    mass: Floats,
    hit: Floats,
    weight: Floats,
    place: NDArray[np.intp],
    at: NDArray[np.bool_],
) -> Floats:
    """The isotonic level of a sample added at each place, for all places at once.

    An added sample pools with the blocks to its left while they are higher and with those to its
    right while they are lower. Those are the last blocks of a fit to all that lies left, and the
    first blocks of a fit to all that lies right.
    """
    from_left, from_right = (
        _last_block(hits, mass),
        _last_block(mass[::-1] - hits[::-1], mass[::-1]),
    )
    n = len(hits)
    above = np.r_[0.0, np.cumsum(hits)], np.r_[0.0, np.cumsum(mass)]
    start_of = np.r_[0, from_left]  # of the block that ends before a place
    end_of = np.r_[n - from_right[::-1], n]  # of the block that begins at a place
    left, right = place.copy(), place + at
    hit, weight = hit.copy(), weight.copy()
    moving = np.arange(len(place))
    while len(moving):
        near, next_to = left[moving], right[moving]
        further, beyond = start_of[near], end_of[next_to]
        level = hit[moving] / weight[moving]
        left_hits, left_mass = (a[near] - a[further] for a in above)
        right_hits, right_mass = (a[beyond] - a[next_to] for a in above)
        takes_left = (near > 0) & (left_hits > level * left_mass)
        takes_right = (next_to < n) & (right_hits < level * right_mass)
        hit[moving] += takes_left * left_hits + takes_right * right_hits
        weight[moving] += takes_left * left_mass + takes_right * right_mass
        left[moving] = np.where(takes_left, further, near)
        right[moving] = np.where(takes_right, beyond, next_to)
        moving = moving[takes_left | takes_right]
    return hit / weight


def _last_block(hits: Floats, mass: Floats) -> NDArray[np.intp]:
    """For each sample, where the last block begins of an isotonic fit to it and all before."""
    starts = np.empty(len(hits), dtype=np.intp)
    stack: list[tuple[float, float, int]] = []
    for k, (hit, weight) in enumerate(zip(hits.tolist(), mass.tolist(), strict=True)):
        start = k
        while stack and stack[-1][0] * weight >= hit * stack[-1][1]:
            more, heavier, start = stack.pop()
            hit, weight = hit + more, weight + heavier
        stack.append((hit, weight, start))
        starts[k] = start
    return starts
