"""Calibration error over as many bins as keep the accuracy rising."""

from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from .._checks import check_norm, is_transformed
from ._binned import Binning, bin_totals, gap_norm
from ._events import of_events

Array = NDArray[Any]

# Bins looked at together: a few candidates when bins are many, many when they are few.
_BINS_AT_ONCE = 2**15


@of_events
def sweep_ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    norm: float = 2,
    binning: Binning = "mass",
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Calibration error over as many bins as keep the accuracy rising with the confidence.

    With one bin more, some bin would be less accurate than the one below it, which for a
    sensible model can only be noise. With that number of bins $b$,

    $$\Bigl(\sum_b \frac{n_b}{n} \bigl|\bar Y_b - \bar C_b\bigr|^p\Bigr)^{1/p}$$

    - `confidence`: probability given to each event, $C$.
    - `outcome`: whether it happened, $Y$.
    - `norm`: $p$. `binning`: equal `"mass"` or equal `"width"`, as in `ece`, with its rules for
      ties and for edges.
    - `weights`: how much each sample counts. Bins of equal mass hold equal weight.

    One bin is tried, then two, and so on up to one fewer than there are samples; the last
    number before the first failure is used. Empty bins are passed over. One or two samples
    share one bin; without any the value is zero. As the number of bins jumps with the data so
    does the value; the gradient is that of the bins as they stand.

    Takes $O(n \log n)$ time on the CPU, wherever the data are: a million samples of a noisy
    model take about half a second. Outcomes that rise with the confidence throughout, such as
    all correct, are recognised at once. In between, only bins between the first and the last
    disorder are looked at; fractional outcomes or ties with disorder at both ends and none
    between can still take $O(n^2)$.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> sweep_ece(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.1541)

    Roelofs et al., "Mitigating Bias in Calibration Error Estimation", AISTATS 2022.
    <https://arxiv.org/abs/2012.08668>
    """
    check_norm(norm)
    if binning not in get_args(Binning):
        raise ValueError(f'binning must be "width" or "mass"; got {binning!r}.')
    fixed = None if weights is None else weights.detach()
    bin_of = sweep_bins(confidence.detach(), outcome.detach(), fixed, binning)
    mass, gap = bin_totals(bin_of, max(len(confidence), 1), outcome - confidence, weights=weights)
    return gap_norm(mass, gap, norm).to(confidence.dtype)


def _monotone_bins(
    confidence: Tensor, outcome: Tensor, weights: Tensor | None, binning: str
) -> Tensor:
    """The bin of each sample, from 0, among the most bins whose accuracies rise."""
    value, happened = (x.detach().cpu().double().numpy() for x in (confidence, outcome))
    counted = np.ones_like(value) if weights is None else weights.detach().cpu().double().numpy()
    present = counted > 0
    bin_of = np.zeros(len(value), dtype=np.int64)
    if present.sum() > 2:
        levels = _Levels(
            value[present], happened[present], counted[present], binning, confidence.dtype
        )
        bin_of[present] = levels.bins(levels.most_rising())
    return torch.from_numpy(bin_of).to(confidence.device)


# An operator of its own, because the search goes as far as the data say: a compiler calls it
# without looking inside.
monotone_bins = torch.library.custom_op("calibrant::monotone_bins", _monotone_bins, mutates_args=())


def sweep_bins(confidence: Tensor, outcome: Tensor, weights: Tensor | None, binning: str) -> Tensor:
    """The bin of each sample that the sweep ends with."""
    given = [x for x in (confidence, outcome, weights) if x is not None]
    if torch.compiler.is_compiling() or any(map(is_transformed, given)):
        chosen: Tensor = monotone_bins(confidence, outcome, weights, binning)
        return chosen
    # Called plainly, the function saves the seconds that a first call of an operator takes.
    return _monotone_bins(confidence, outcome, weights, binning)


@monotone_bins.register_fake
def _(confidence: Tensor, outcome: Tensor, weights: Tensor | None, binning: str) -> Tensor:
    return torch.empty_like(confidence, dtype=torch.int64)


@monotone_bins.register_vmap
def _(info: Any, dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
    rows = [
        [x if dim is None else x.select(dim, row) for x, dim in zip(args, dims, strict=True)]
        for row in range(info.batch_size)
    ]
    return torch.stack([monotone_bins(*row) for row in rows]), 0


class _Levels:
    """The distinct confidences in ascending order: cuts fall between them, never inside."""

    def __init__(
        self, value: Array, happened: Array, counted: Array, binning: str, dtype: torch.dtype
    ) -> None:
        self.samples, self.binning, self.dtype = len(value), binning, dtype
        self.values, self.level_of = np.unique(value, return_inverse=True)
        mass = np.bincount(self.level_of, weights=counted)
        hits = np.bincount(self.level_of, weights=counted * happened)
        # Whole numbers add up exactly; anything else deserves a little patience.
        self.whole = bool((mass == np.rint(mass)).all() and (hits == np.rint(hits)).all())
        self.whole &= mass.sum() * self.samples < 2**62  # products must fit
        self.slack = 0.0 if self.whole else 1e-9
        self.mass, self.hits = (np.concatenate([[0.0], x.cumsum()]) for x in (mass, hits))
        self.place = self.mass[:-1] / self.mass[-1] if binning == "mass" else self.values
        accuracy = hits / mass
        self.drops = np.flatnonzero(accuracy[1:] < accuracy[:-1] - self.slack)

    def cut(self, bin: Array, bins: Array) -> Array:
        """The first level of a bin, when there are so many bins."""
        if self.binning == "width":
            # Rounding twice, first to float64, gives the correctly rounded quotient.
            edge = torch.from_numpy(bin / bins).to(self.dtype).double().numpy()
            level = np.searchsorted(self.values, edge, side="right")
        elif self.whole:
            rank = -(-bin * int(self.mass[-1]) // bins)
            level = np.searchsorted(self.mass[:-1], rank)
        else:
            level = np.searchsorted(self.mass[:-1], (bin / bins - 1e-12) * self.mass[-1])
        return np.where(bin <= 0, 0, np.where(bin >= bins, len(self.values), level))

    def bins(self, bins: int) -> Array:
        """The bin of each sample."""
        cuts = self.cut(np.arange(1, bins), np.array(bins))
        return np.searchsorted(cuts, self.level_of, side="right")

    def most_rising(self) -> int:
        """The last number of bins before the first whose accuracies fall somewhere."""
        best, limit = 1, self.samples - 1
        if len(self.drops) == 0:
            return limit
        while best < limit:
            tried = np.arange(best + 1, min(2 * best, best + 4096, limit) + 1)
            low, high = self.disorder(tried)
            width = int((high - low).max()) + 1
            few = slice(max(1, _BINS_AT_ONCE // width))
            rising = self.rising(tried[few, None], low[few, None] + np.arange(width + 1))
            if not rising.all():
                return best + int(rising.argmin())
            best += len(rising)
        return best

    def disorder(self, bins: Array) -> tuple[Array, Array]:
        """First and last bin that matter: below the first drop and above the last all rise."""
        low, high = (self.place[self.drops[[0, -1]] + [1, 0]][:, None] * bins).astype(np.int64)
        # The filled bins next to those two: others between them may be empty.
        before = np.maximum(self.cut(low - 1, bins) - 1, 0)
        after = np.minimum(self.cut(high + 2, bins), len(self.values) - 1)
        low, high = (self.place[level] * bins for level in (before, after))
        return np.maximum(low.astype(np.int64) - 1, 0), np.minimum(high.astype(np.int64) + 1, bins)

    def rising(self, bins: Array, window: Array) -> Array:
        """Whether the accuracy never falls from one filled bin of the window to the next."""
        cuts = self.cut(np.minimum(window, bins), bins)
        filled = np.diff(cuts) > 0
        # Zero in an empty bin, which no filled one is below.
        accuracy = np.diff(self.hits[cuts]) / np.where(filled, np.diff(self.mass[cuts]), 1)
        highest = np.maximum.accumulate(accuracy, axis=1)
        rising: Array = np.all(~filled | (accuracy >= highest - self.slack), axis=1)
        return rising
