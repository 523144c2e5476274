"""Calibration error without bins, from running sums of the gaps."""

import torch
from jaxtyping import Float
from torch import Tensor

from ._events import of_events
from ._order import Ascending
from ._precision import widened


@of_events
def ks_error(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Kolmogorov–Smirnov calibration error.

    The largest distance between the running sums of confidence and of outcome:

    $$\max_c \Bigl|\frac1n \sum_{i : C_i \le c} (Y_i - C_i)\Bigr|$$

    - `weights`: how much each sample counts; weight two is the sample twice.

    Sums are compared after whole groups of tied confidences, so the order of samples is
    irrelevant. The gradient is that of the largest sum alone. Takes $O(n \log n)$ time.

    >>> confidence = torch.tensor([0.6, 0.7, 0.8, 0.9])
    >>> ks_error(confidence, torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.1000)

    Gupta et al., "Calibration of Neural Networks using Splines", ICLR 2021, eq. 7.
    """
    if len(confidence) == 0:
        return (outcome - confidence).sum()
    ascending = Ascending.of(confidence)
    (gap,) = widened((outcome - confidence)[ascending.source])
    counted = torch.ones_like(gap) if weights is None else weights[ascending.source].to(gap.dtype)
    total = counted.sum()
    running = (counted * gap).cumsum(0)[ascending.last_tied]
    return (running.abs().max() / torch.where(total > 0, total, 1)).to(confidence.dtype)
