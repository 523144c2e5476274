"""Differentiable ECE: soft bins and a soft accuracy."""

from jaxtyping import Float
from torch import Tensor

from .._checks import check_bins, check_positive
from ..predictions import Predictions
from ._soft_bins import SoftBins, binned_error

# The released code gives every bin this much membership on top.
_EVEN = 1e-6


def dece(
    predictions: Predictions,
    *,
    bins: int = 15,
    rank_temperature: float = 100.0,
    bin_temperature: float = 0.01,
) -> Float[Tensor, ""]:
    r"""Differentiable expected calibration error.

    Binned calibration error in which the bin of a forecast *and* whether it is right are
    soft, so that a gradient flows through both:

    $$\sum_m \Bigl|\frac1n \sum_i o_m(C_i)\,(\hat A_i - C_i)\Bigr|, \qquad
      \hat A_i = \max(0, 2 - R_i)$$

    with $R_i$ the soft rank of the true class among the probabilities
    (`Predictions.soft_rank`).

    - `bins`: $M$. `rank_temperature`: $\tau_a$, higher is closer to a true rank.
    - `bin_temperature`: $\tau_b$ of the memberships
      $o_m(c) \propto \exp((m c - m (m - 1) / 2M) / \tau_b)$. Those are the memberships of
      `soft_binned_ece` at temperature $2 \tau_b / M$ (docs/derivations/soft-bins.md), so that is
      how they are computed.

    Follows the released code, which ranks probabilities; the paper ranks logits, and its
    formula for the accuracy would reward the lowest rank. The code's memberships sum to
    0.999999; these sum to one. Takes $O(n (C + M))$ time: only the true class is ranked.

    >>> import torch
    >>> predictions = Predictions(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    >>> dece(predictions)
    tensor(0.4248)

    Bohdal, Yang & Hospedales, "Meta-Calibration: Meta-Learning of Model Calibration Using
    Differentiable Expected Calibration Error", ICML workshop 2021, section 2.2.
    """
    check_bins(bins)
    check_positive(rank_temperature=rank_temperature, bin_temperature=bin_temperature)
    soft_accuracy = (2 - predictions.soft_rank(rank_temperature)).relu()
    soft_bins = SoftBins(bins, temperature=2 * bin_temperature / bins, even=_EVEN)
    return binned_error(predictions.confidence, soft_accuracy, soft_bins, 1, predictions.weights)
