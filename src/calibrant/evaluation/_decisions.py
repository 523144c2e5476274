"""Acting on confidence: where to draw the line between answering and passing on."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from .._checks import check_share
from ._events import Forecasts, events, of_one_argument
from ._table import counted


@dataclass(frozen=True, repr=False)
class Threshold:
    """Answer where confidence is at least `threshold`; pass on the rest.

    - `threshold`: as it is, not rounded.
    - `risk`: at most this share of the answers is wrong, with probability `level`.
    - `coverage`: this share of the samples seen is answered.
    - `least_coverage`: at least this share of new samples is answered, with probability `level`;
      `None` where a risk was asked for, which promises nothing about that.
    - `n`: how many samples the promises rest on.
    - `level`: how often, over samples like these, each of them is kept.
    """

    threshold: float
    risk: float
    coverage: float
    least_coverage: float | None
    n: int
    level: float

    def to_dict(self) -> dict[str, float | None]:
        """Plain numbers."""
        return asdict(self)

    def __repr__(self) -> str:
        least = self.least_coverage
        new = "" if least is None else f", at least {100 * least:.3g}% of new ones"
        return (
            f"Threshold({self.threshold}, risk at most {self.risk:.3g}, {100 * self.coverage:.3g}% "
            f"of {counted(self.n, 'sample')} answered{new}, level {100 * self.level:g}%)"
        )


@of_one_argument
def threshold_for(
    forecasts: Forecasts,
    *,
    risk: float | None = None,
    coverage: float | None = None,
    level: float = 0.95,
) -> Threshold:
    r"""The confidence from which to answer, with a promise that holds for finite samples.

    - `forecasts`: held-out predictions, whose top label is judged, or `(confidence, outcome)`.
    - `risk`: the largest share of wrong answers; gives the lowest threshold that keeps it.
    - `coverage`: the least share to answer; gives the highest threshold that does.
    - `level`: how often, over samples like this one, the promise is kept.

    Samples must be drawn independently from where the threshold will be used; nothing else is
    assumed, not even that confidence is any good.

    *Risk.* Given the $k$-th highest confidence, the samples above it are drawn independently
    from all that lie above it, so their errors are binomial and "the risk there exceeds
    `risk`" is tested exactly, as Clopper and Pearson do. Tests run from strict to lax and stop
    at the first that fails, from each of the starts $k = n, n/2, n/4, \dots$ that could pass,
    which share the error probability equally: learn then test, by fixed sequences. Where many
    confidences are tied, the promise also needs risk not to rise with the threshold. Do not
    round the threshold: it lies just above a confidence that must be passed on.

    *Coverage.* The share below the $r$-th lowest confidence is at most that of the $r$-th
    lowest of $n$ uniform numbers; the largest $r$ is taken that keeps it below
    $1 - \mathrm{coverage}$ often enough. The risk reported is Clopper and Pearson's bound.

    >>> confidence = torch.linspace(0, 1, 1000)
    >>> right = torch.arange(1000) % 2 + (confidence > 0.5) > 0  # all, in the upper half
    >>> found = threshold_for((confidence, right), risk=0.1)
    >>> round(found.threshold, 2), round(found.coverage, 2)
    (0.42, 0.58)

    Angelopoulos et al., "Learn then Test", 2021; Geifman & El-Yaniv, "Selective Classification
    for Deep Neural Networks", NeurIPS 2017; Clopper & Pearson, Biometrika 1934.
    """
    shares = {"risk": risk, "coverage": coverage, "level": level}
    for name, share in shares.items():
        if share is not None:
            check_share(name, share)
    confidence, outcome = events(forecasts)
    descending, source = confidence.sort(descending=True, stable=True)
    wrong = 1 - outcome[source]
    if risk is not None and coverage is None:
        return _for_risk(descending, wrong, risk, level)
    if coverage is not None and risk is None:
        return _for_coverage(descending, wrong, coverage, level)
    raise ValueError(
        f"threshold_for needs either risk or coverage; got risk={risk}, coverage={coverage}."
    )


def _for_risk(descending: Tensor, wrong: Tensor, risk: float, level: float) -> Threshold:
    from scipy.special import bdtr  # type: ignore[import-untyped]

    n = len(descending)
    # How many lie strictly above each place and, last of all, above none: everyone.
    above = torch.cat([torch.searchsorted(-descending, -descending), torch.tensor([n])])
    above = above.unique()
    above = above[above > 0]
    errors = wrong.cumsum(0)[above - 1]
    chance = torch.from_numpy(bdtr(errors.numpy(), above.numpy(), risk))
    starts = [n >> s for s in range(n.bit_length()) if (1 - risk) ** (n >> s) <= 1 - level]
    passed = chance <= (1 - level) / max(len(starts), 1)
    reached = 0
    for start in starts:
        first = int(torch.searchsorted(above, start))
        failures = (~passed[first:]).nonzero()
        last = first + int(failures[0]) if len(failures) else len(above)
        if last > first:
            reached = max(reached, int(above[last - 1]))
    if reached == 0:
        raise ValueError(
            f"no threshold keeps the risk at {risk:g} with probability {level:g} on these {n} "
            f"samples, of which {int(wrong.sum())} are wrong. Give more samples or allow more risk."
        )
    # Strictly above the next confidence: the next number up, in the precision of the scores.
    lowest = descending.new_zeros(()) if reached == n else _next_up(descending[reached])
    return Threshold(lowest.item(), risk, reached / n, None, n, level)


def _for_coverage(descending: Tensor, wrong: Tensor, coverage: float, level: float) -> Threshold:
    from scipy.special import bdtrc, bdtri

    n = len(descending)
    ranks = torch.arange(n)
    # At least r of n uniform numbers fall below 1 - coverage, for r from 1.
    kept = torch.from_numpy(bdtrc(ranks.double().numpy(), n, 1 - coverage)) >= level
    rank = int(kept.sum())
    threshold = descending[n - rank].item() if rank else 0.0
    answered = int((descending >= threshold).sum())
    # The sample at the threshold was chosen for its place: let it count as wrong.
    errors = int(wrong[:answered].sum()) + int(rank > 0 and not bool(wrong[answered - 1]))
    bound = float(bdtri(errors, answered, 1 - level)) if errors < answered else 1.0
    return Threshold(threshold, bound, answered / n, coverage, n, level)


def _next_up(x: Tensor) -> Tensor:
    return torch.nextafter(x, torch.full_like(x, 2.0))
