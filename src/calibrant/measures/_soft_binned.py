"""Calibration error over soft bins, whose membership can be trained through."""

from jaxtyping import Float
from torch import Tensor

from .._checks import check_bins, check_norm, check_positive
from ..criteria import root
from ._events import of_events
from ._soft_bins import SoftBins, binned_error, label_binned_error


@of_events
def soft_binned_ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bins: int = 15,
    temperature: float = 0.01,
    norm: float = 2,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Expected calibration error over soft bins: SB-ECE.

    Every forecast belongs to every bin, most to the nearest, so that the error changes
    smoothly as confidences move:

    $$\Bigl(\sum_j \frac{S_j}{n} |A_j - C_j|^p\Bigr)^{1/p}, \qquad
      u_j(c) = \operatorname{softmax}_j\bigl(-(c - \xi_j)^2 / T\bigr)$$

    with $S_j$, $A_j$ and $C_j$ the total, mean outcome and mean confidence by membership
    (eqs. 8 to 11), and centres $\xi_j = (j + 1/2)/M$.

    - `bins`: $M$. `temperature`: $T$; as it falls to zero this becomes `ece`.
    - `norm`: $p$.
    - `weights`: how much each sample counts; weight two is the sample twice.

    Takes $O(n M)$ time and $O(n)$ memory: memberships are recomputed, not kept.

    >>> import torch
    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> soft_binned_ece(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.1711)

    Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021, eq. 11.
    """
    _check(bins, temperature, norm)
    soft_bins = SoftBins(bins, temperature)
    return root(binned_error(confidence, outcome, soft_bins, norm, weights), norm)


@of_events
def soft_label_binned_ece(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    bins: int = 15,
    temperature: float = 0.01,
    norm: float = 2,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Label-binned SB-ECE: each forecast against the outcomes of its soft bins.

    $$\Bigl(\frac1n \sum_i \sum_j u_j(C_i)\, |A_j - C_i|^p\Bigr)^{1/p}$$

    with memberships $u_j$ and outcomes $A_j$ as in `soft_binned_ece`. It also pays for
    confidences that differ within a bin, so it is never below `soft_binned_ece`. This is the
    form the paper trains with.

    - `bins`: $M$. `temperature`: $T$; as it falls to zero this becomes `label_binned_ece`.
    - `norm`: $p$.
    - `weights`: how much each sample counts; weight two is the sample twice.

    Takes $O(n M)$ time and $O(n)$ memory: memberships are recomputed, not kept.

    >>> import torch
    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> soft_label_binned_ece(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.1805)

    Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021, eq. 12.
    """
    _check(bins, temperature, norm)
    soft_bins = SoftBins(bins, temperature)
    return root(label_binned_error(confidence, outcome, soft_bins, norm, weights), norm)


def _check(bins: int, temperature: float, norm: float) -> None:
    check_bins(bins)
    check_positive(temperature=temperature)
    check_norm(norm)
