"""Calibration error over hard bins."""

from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._checks import check_bins, check_norm, widest
from .._tables import in_numpy
from ..criteria import root
from ._events import of_events
from ._order import Ascending
from ._precision import widened
from ._width_bins import MOST_BINS, width_bins

Binning = Literal["width", "mass"]

# From here on arithmetic finds bins of equal width faster than bisection.
MANY = 2**10
# A count that is a sum of shares may come to a little more than one for one sample.
_ONE = 1 + 1e-9


@of_events
def ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bins: int = 15,
    norm: float = 1,
    binning: Binning = "width",
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Expected calibration error over bins, each open below.

    $$\Bigl(\sum_b \frac{n_b}{n} \bigl|\bar Y_b - \bar C_b\bigr|^p\Bigr)^{1/p}$$

    - `bins`: how many. `norm`: $p$; 1 is the usual ECE, 2 its root mean square.
    - `binning`: `"width"` cuts [0, 1] into intervals (lo, hi], with 0 in the first and 1 in the
      last. `"mass"` puts rank $r$ of $n$ (from 0) into bin $\lfloor r M / n \rfloor$; tied
      confidences share the bin of the lowest of them, so the order of samples is irrelevant.
    - `weights`: how much each sample counts; weight two is the sample twice.

    Biased upwards: with few samples per bin a calibrated model scores above zero. The
    gradient flows through the confidences in each bin and not through the choice of bin, so
    it can be trained on, as in table 3 of the ESD paper. Bin totals are kept in float64.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> ece(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.3500)

    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, eq. 3. Equal mass and
    other norms: Karandikar et al., NeurIPS 2021, eq. 6.
    """
    check_norm(norm)
    mass, gap = _gaps(confidence, outcome, bins=bins, binning=binning, weights=weights)
    return gap_norm(mass, gap, norm).to(confidence.dtype)


@of_events
def label_binned_ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bins: int = 15,
    norm: float = 1,
    binning: Binning = "width",
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Each forecast against the mean outcome of its bin.

    $$\Bigl(\frac1n \sum_i \bigl|\bar Y_{b(i)} - C_i\bigr|^p\Bigr)^{1/p}$$

    - `bins`, `norm`, `binning`, `weights`: as in `ece`, of which this is an upper bound.

    >>> confidence = torch.tensor([0.61, 0.66, 0.8, 0.9])
    >>> label_binned_ece(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.1425)

    Roelofs et al., "Mitigating Bias in Calibration Error Estimation", AISTATS 2022;
    Karandikar et al., NeurIPS 2021, eq. 7.
    """
    check_norm(norm)
    bin_of = assign_bins(confidence, bins=bins, binning=binning, weights=weights)
    mass, happened = bin_totals(bin_of, bins, outcome, weights=weights)
    (wide,) = widened(confidence)
    errors = _power(bin_mean(happened, mass)[bin_of] - wide, norm)
    counted = torch.ones_like(wide) if weights is None else weights.to(wide.dtype)
    return root((counted * errors).sum() / _total(counted.sum()), norm).to(confidence.dtype)


@of_events
def mce(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bins: int = 15,
    binning: Binning = "width",
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Maximum calibration error: the largest gap of any bin, $\max_b |\bar Y_b - \bar C_b|$.

    - `bins`, `binning`, `weights`: as in `ece`.

    A bin of one sample weighs as much as a bin of thousands: expect large, noisy values.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> mce(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.7000)

    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, eq. 5.
    """
    mass, gap = _gaps(confidence, outcome, bins=bins, binning=binning, weights=weights)
    return bin_mean(gap, mass).abs().max().to(confidence.dtype)


@of_events
def debiased_ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bins: int = 15,
    binning: Binning = "mass",
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Root-mean-square calibration error with the bias of finite bins taken off.

    $$\sqrt{\max\Bigl(0, \sum_b \frac{n_b}{n} \Bigl[(\bar Y_b - \bar C_b)^2
      - \frac{\bar Y_b (1 - \bar Y_b)}{n_b - 1}\Bigr]\Bigr)}$$

    - `bins`, `binning`: as in `ece`.
    - `weights`: the bias depends on how many samples there are, so whole numbers are counts: how
      often each sample was seen. Others cannot be; of them only the proportions matter, and they
      are taken to be one on average, over the samples above zero.

    A bin of fewer than two samples contributes nothing.

    >>> confidence = torch.tensor([0.9, 0.9, 0.9, 0.9])
    >>> debiased_ece(confidence, torch.tensor([1.0, 0.0, 0.0, 0.0]), bins=1)
    tensor(0.6000)

    Kumar, Liang & Ma, "Verified Uncertainty Calibration", NeurIPS 2019, section 5.
    """
    weights = None if weights is None else as_counts(weights)
    bin_of = assign_bins(confidence, bins=bins, binning=binning, weights=weights)
    mass, gap = bin_totals(bin_of, bins, outcome - confidence, weights=weights)
    _, happened = bin_totals(bin_of, bins, outcome, weights=weights)
    return debiased_root(mass, gap, happened).to(confidence.dtype)


def debiased_root(mass: Tensor, gap: Tensor, happened: Tensor) -> Float[Tensor, ""]:
    """The debiased error of bins: how much each counts, its sum of gaps and of outcomes."""
    mean = bin_mean(happened, mass)
    several = mass > _ONE
    noise = mean * (1 - mean) / torch.where(several, mass - 1, 1)
    terms = torch.where(several, mass * (bin_mean(gap, mass).square() - noise), 0)
    return root(terms.sum() / _total(mass.sum()))


def as_counts(weights: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Whole numbers as they are; other weights in the same proportions, one on average.

    >>> as_counts(torch.tensor([1.0, 2.0, 0.0])), as_counts(torch.tensor([0.1, 0.1, 0.0]))
    (tensor([1., 2., 0.]), tensor([1., 1., 0.]))
    """
    shares = weights / _total(weights.sum())
    whole = (weights == weights.round()).all()
    return torch.where(whole, weights, shares * (weights > 0).sum())


def assign_bins(
    confidence: Tensor, *, bins: int, binning: Binning, weights: Tensor | None = None
) -> Int[Tensor, " n"]:
    """The bin of each forecast, from 0."""
    check_bins(bins)
    if binning not in get_args(Binning):
        raise ValueError(f'binning must be "width" or "mass"; got {binning!r}.')
    # Borders of half precision would be others than those of the same numbers in a wider type.
    fixed = confidence.detach().contiguous()
    fixed = fixed.to(torch.promote_types(fixed.dtype, torch.float32))
    if binning == "width":
        if len(fixed) >= MANY and bins <= MOST_BINS and in_numpy(fixed):
            return width_bins(fixed, bins)
        return torch.bucketize(fixed, width_edges(bins, fixed.dtype, fixed.device))
    ascending = Ascending.of(fixed)
    rank = ascending.first_tied
    if weights is None:
        bin_of_place = rank * bins // max(len(fixed), 1)
    else:
        weight = weights.detach()[ascending.source].to(widest(fixed.device))
        bin_of_place = equal_mass(weight, rank, bins)
    return ascending.unsort(bin_of_place)


def equal_mass(
    weight: Float[Tensor, "*many n"], rank: Int[Tensor, "*many n"], bins: int
) -> Int[Tensor, "*many n"]:
    """The bin of each place of an order: what counts before the first that ties with it.

    >>> equal_mass(torch.tensor([1.0, 1.0, 1.0, 1.0]), torch.tensor([0, 1, 1, 3]), 2)
    tensor([0, 0, 0, 1])
    """
    lighter = (weight.cumsum(-1) - weight).gather(-1, rank)
    share = lighter * bins / _total(weight.sum(-1, keepdim=True))
    # A sum that rounding leaves just short of a border is on it.
    return (share + 1e-9).floor().long().clamp(max=bins - 1)


def width_edges(bins: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, " inner"]:
    """The borders between bins of equal width."""
    # j / bins rounds correctly; linspace need not.
    return torch.arange(1, bins, dtype=dtype, device=device) / bins


def _gaps(
    confidence: Tensor, outcome: Tensor, *, bins: int, binning: Binning, weights: Tensor | None
) -> tuple[Float[Tensor, " bins"], Float[Tensor, " bins"]]:
    """How much each bin counts, and the sum of its gaps."""
    bin_of = assign_bins(confidence, bins=bins, binning=binning, weights=weights)
    return bin_totals(bin_of, bins, outcome - confidence, weights=weights)


def bin_totals(
    bin_of: Int[Tensor, " n"], bins: int, x: Tensor, *, weights: Tensor | None = None
) -> tuple[Float[Tensor, " bins"], Float[Tensor, " bins"]]:
    """How much each bin counts, and the sum of `x` in it, in double precision."""
    (wide,) = widened(x)
    counted = torch.ones_like(wide) if weights is None else weights.to(wide.dtype)
    empty = torch.zeros(bins, dtype=wide.dtype, device=wide.device)
    return empty.index_add(0, bin_of, counted), empty.index_add(0, bin_of, counted * wide)


def bin_mean(total: Tensor, mass: Tensor) -> Tensor:
    """Mean in each bin, zero in an empty one."""
    return total / _total(mass)


def gap_norm(mass: Tensor, gap: Tensor, norm: float) -> Tensor:
    """The norm of the mean gaps of bins, each by its mass."""
    if norm == 1:  # the mass that a mean is divided by is what it counts for
        return gap.abs().sum() / _total(mass.sum())
    mean = (mass * _power(bin_mean(gap, mass), norm)).sum() / _total(mass.sum())
    return root(mean, norm)


def _power(x: Tensor, norm: float) -> Tensor:
    return x.abs() if norm == 1 else x.abs() ** norm


def _total(mass: Tensor) -> Tensor:
    return torch.where(mass > 0, mass, 1)
