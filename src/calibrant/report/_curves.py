"""Curves over all samples in the order of confidence, thinned to what an eye can see."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..measures._order import Ascending
from ._bins import clopper_pearson, effective


@dataclass(frozen=True)
class Cumulative:
    r"""Running accuracy and confidence: Figure 4 of the ESD paper.

    At each quantile $q$ of confidence $\alpha$:

    - `accuracy`: $\frac1n \sum_i \mathbf 1\{C_i \le \alpha\} Y_i$,
    - `confidence`: $\frac1n \sum_i \mathbf 1\{C_i \le \alpha\} C_i$,
    - `spread`: how far a calibrated model's accuracy strays from its confidence there, 95 times
      in 100.
    """

    quantile: list[float]
    accuracy: list[float]
    confidence: list[float]
    spread: list[float]


@dataclass(frozen=True)
class RiskCoverage:
    """The share of wrong answers among the most confident, by how many are kept.

    - `low`, `high`: Clopper and Pearson's interval at each coverage.
    """

    coverage: list[float]
    risk: list[float]
    low: list[float]
    high: list[float]


def cumulative(
    confidence: Tensor, outcome: Tensor, *, weights: Tensor | None = None, points: int = 120
) -> Cumulative:
    """The running sums at some of the confidences, tied samples entering together.

    - `weights`: how much each sample counts, by default alike.

    >>> curve = cumulative(torch.tensor([0.6, 0.8]), torch.tensor([0.0, 1.0]))
    >>> curve.quantile, curve.accuracy, [round(c, 2) for c in curve.confidence]
    ([0.0, 0.5, 1.0], [0.0, 0.0, 0.5], [0.0, 0.3, 0.7])
    """
    ascending = Ascending.of(confidence)
    sure, right = confidence.double(), outcome.double()
    mass = torch.ones_like(sure) if weights is None else weights
    n = mass.sum()

    def running(x: Tensor) -> Tensor:
        return x[ascending.source].cumsum(0)

    at = _some(ascending.last_tied.unique_consecutive(), points)
    columns = [(running(mass * x)[at] / n).tolist() for x in (torch.ones_like(sure), right, sure)]
    spread = 1.96 * running(mass.square() * sure * (1 - sure))[at].sqrt() / n
    return Cumulative(*([0.0, *x] for x in (*columns, spread.tolist())))


def risk_coverage(
    confidence: Tensor,
    outcome: Tensor,
    *,
    weights: Tensor | None = None,
    level: float = 0.95,
    points: int = 120,
) -> RiskCoverage:
    """The risk among the most confident answers, tied ones kept or dropped together.

    - `weights`: how much each sample counts, by default alike.

    >>> curve = risk_coverage(torch.tensor([0.6, 0.8]), torch.tensor([0.0, 1.0]))
    >>> curve.coverage, curve.risk
    ([0.5, 1.0], [0.0, 0.5])
    """
    ascending, right = Ascending.of(-confidence), outcome.double()
    mass = torch.ones_like(right) if weights is None else weights
    at = _some(ascending.last_tied.unique_consecutive(), points)

    def running(x: Tensor) -> Tensor:
        return x[ascending.source].cumsum(0)[at]

    wrong, kept = running(mass * (1 - right)), running(mass)
    low, high = clopper_pearson(*effective(wrong, kept, running(mass.square())), level)
    some = kept > 0  # the surest may count for nothing
    columns = (kept / mass.sum(), wrong / kept, low, high)
    return RiskCoverage(*(column[some].tolist() for column in columns))


def _some(places: Tensor, points: int) -> Tensor:
    """At most so many of them, evenly spread, the last among them."""
    if len(places) <= points:
        return places
    return places[torch.linspace(0, len(places) - 1, points).round().long()]
