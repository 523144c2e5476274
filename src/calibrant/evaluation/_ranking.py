"""What confidence is good for: telling right answers from wrong ones."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..measures._order import Ascending
from ..measures._precision import widened


@dataclass(frozen=True)
class Levels:
    """The distinct confidences in ascending order, and totals at each of them.

    - `source`: where each place of the ascending order was filled from.
    - `ends`: the last place of each level.
    """

    source: Int[Tensor, " n"]
    ends: Int[Tensor, " levels"]

    @staticmethod
    def of(confidence: Float[Tensor, " n"]) -> "Levels":
        """Sort once; every resample has the same order."""
        ascending = Ascending.of(confidence)
        return Levels(ascending.source, ascending.last_tied.unique_consecutive())

    def running(self, x: Float[Tensor, "... n"]) -> Float[Tensor, "... levels"]:
        """Sum of everything at or below each level."""
        running = x[..., self.source].cumsum(-1)
        # Without ties every place ends a level, and there is nothing to pick.
        return running if len(self.ends) == len(self.source) else running[..., self.ends]

    def totals(self, x: Float[Tensor, "... n"]) -> Float[Tensor, "... levels"]:
        """Sum of everything at each level."""
        running = self.running(x)
        return running.diff(dim=-1, prepend=torch.zeros_like(running[..., :1]))


def auroc(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    weights: Float[Tensor, "*draws n"] | None = None,
    levels: Levels | None = None,
) -> Float[Tensor, "*draws"]:
    r"""Chance that a right answer is more confident than a wrong one, ties counted half.

    - `weights`: how much each sample counts; rows of weights give one value each.
    - `levels`: the order of the confidences where it is known already.

    One half where there is no such pair, every answer being right or every one wrong: nothing was
    told apart, and the interval of `evaluate` goes from 0 to 1.

    >>> auroc(torch.tensor([0.6, 0.7, 0.8, 0.9]), torch.tensor([0.0, 1.0, 0.0, 1.0]))
    tensor(0.7500, dtype=torch.float64)

    Hanley & McNeil, "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve", Radiology 1982.
    """
    (happened,) = widened(outcome)
    counted = torch.ones_like(happened) if weights is None else widened(weights)[0]
    levels = Levels.of(confidence) if levels is None else levels
    right, wrong = levels.totals(counted * happened), levels.totals(counted * (1 - happened))
    below = wrong.cumsum(-1) - wrong / 2
    pairs = right.sum(-1) * wrong.sum(-1)
    share = (right * below).sum(-1) / torch.where(pairs > 0, pairs, 1)
    return torch.where(pairs > 0, share, 0.5)


def risk_coverage_area(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    weights: Float[Tensor, "*draws n"] | None = None,
    levels: Levels | None = None,
) -> Float[Tensor, "*draws"]:
    r"""Error rate among the answers kept, averaged over how many are kept.

    $$\frac1n \sum_i \frac{\sum_{j : C_j \ge C_i} (1 - Y_j)}{|\{j : C_j \ge C_i\}|}$$

    - `weights`, `levels`: as in `auroc`.

    Tied answers are kept or dropped together, so the order of samples is irrelevant.

    >>> risk_coverage_area(torch.tensor([0.6, 0.7, 0.8, 0.9]), torch.tensor([0.0, 1.0, 0.0, 1.0]))
    tensor(0.3333, dtype=torch.float64)

    Geifman & El-Yaniv, "Selective Classification for Deep Neural Networks", NeurIPS 2017.
    """
    (happened,) = widened(outcome)
    counted = torch.ones_like(happened) if weights is None else widened(weights)[0]
    levels = Levels.of(confidence) if levels is None else levels
    # (`torch.broadcast_shapes` would load a compiler's algebra, which takes a second.)
    mass = levels.totals(torch.broadcast_tensors(counted, happened)[0])
    wrong = levels.totals(counted * (1 - happened))
    kept, missed = (x.flip(-1).cumsum(-1).flip(-1) for x in (mass, wrong))
    risk = missed / torch.where(kept > 0, kept, 1)
    total = mass.sum(-1)
    return (mass * risk).sum(-1) / torch.where(total > 0, total, 1)
