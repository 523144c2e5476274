"""The bins of a reliability diagram, each with an interval for its accuracy."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from .._checks import check_bins
from ..measures._binned import Binning, assign_bins


@dataclass(frozen=True)
class Bin:
    """Samples of similar confidence.

    - `low`, `high`: the edges of a bin of equal width, (low, high]; of a bin of equal mass the
      least and the greatest confidence in it.
    - `count`: how many; `confidence`: their mean; `accuracy`: the share that was right.
    - `accuracy_low`, `accuracy_high`: Clopper and Pearson's interval for that share.
    - `mass`: of all samples, the share that these are, by weight.
    """

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    mass: float

    @property
    def gap(self) -> float:
        """Confidence less accuracy: above zero where the model claims too much."""
        return self.confidence - self.accuracy

    def to_dict(self) -> dict[str, float]:
        """Plain numbers."""
        return asdict(self)


def reliability_bins(
    confidence: Tensor,
    outcome: Tensor,
    *,
    bins: int = 15,
    binning: Binning = "width",
    level: float = 0.95,
    weights: Tensor | None = None,
) -> list[Bin]:
    """The bins that hold anything, in order of confidence; cut as `ece` cuts them.

    - `weights`: how much each sample counts, by default alike.

    >>> sure, right = torch.tensor([0.9, 0.95, 0.3]), torch.tensor([1.0, 0.0, 0.0])
    >>> [(one.count, one.accuracy) for one in reliability_bins(sure, right, bins=2)]
    [(1, 0.0), (2, 0.5)]
    """
    check_bins(bins)
    bin_of = assign_bins(confidence, bins=bins, binning=binning, weights=weights)
    sure, right = confidence.double(), outcome.double()
    one_each = torch.ones_like(sure)
    mass = one_each if weights is None else weights

    def total(x: Tensor) -> Tensor:
        return torch.zeros(bins, dtype=torch.float64).index_add(0, bin_of, x)

    counts, held = total(one_each), total(mass)
    hits, claimed = total(mass * right), total(mass * sure)
    lowest = torch.ones(bins, dtype=torch.float64).scatter_reduce(0, bin_of, sure, "amin")
    highest = torch.zeros(bins, dtype=torch.float64).scatter_reduce(0, bin_of, sure, "amax")
    lows, highs = clopper_pearson(*effective(hits, held, total(mass.square())), level)
    found = []
    for k in held.nonzero()[:, 0].tolist():
        edges = (k / bins, (k + 1) / bins)
        if binning == "mass":
            edges = (lowest[k].item(), highest[k].item())
        count, own = int(counts[k]), held[k].item()
        shares = (claimed[k].item() / own, hits[k].item() / own)
        ends = (lows[k].item(), highs[k].item())
        found.append(Bin(*edges, count, *shares, *ends, own / held.sum().item()))
    return found


def effective(hits: Tensor, mass: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
    r"""As many hits and samples, all of weight 1, as tell as much about a share.

    - `hits`, `mass`, `squares`: sums of the weights of hits, of all weights and of their squares.

    >>> effective(torch.tensor(6.0), torch.tensor(8.0), torch.tensor(16.0))  # four of weight 2
    (tensor(3.), tensor(4.))

    Kish, "Survey Sampling", 1965: $n = (\sum w)^2 / \sum w^2$.
    """
    n = torch.where(squares > 0, mass.square() / squares.clamp(min=1e-300), 0.0)
    # Of samples of weight 1 these are whole numbers, and stay so.
    return torch.where(mass > 0, hits * n / mass.clamp(min=1e-300), 0.0), n


def clopper_pearson(hits: Tensor, counts: Tensor, level: float) -> tuple[Tensor, Tensor]:
    """An interval for a share that holds it at least as often as `level` says.

    >>> low, high = clopper_pearson(torch.tensor([0.0]), torch.tensor([10.0]), 0.95)
    >>> round(low.item(), 3), round(high.item(), 3)
    (0.0, 0.308)

    Clopper & Pearson, Biometrika 1934.
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    k, n, tail = hits.double(), counts.double(), (1 - level) / 2
    misses = n - k
    # Where nothing, or everything, was a hit the end of the interval is 0 or 1.
    low = betaincinv(k.clamp(min=0.5).numpy(), (misses + 1).numpy(), tail)
    high = betaincinv((k + 1).numpy(), misses.clamp(min=0.5).numpy(), 1 - tail)
    return (
        torch.where(k > 0, torch.from_numpy(low), 0.0),
        torch.where(misses > 0, torch.from_numpy(high), 1.0),
    )
