"""A criterion as the released codes have it, for studies whose weights belong to that form."""

import torch
from torch import Tensor

from ..measures._mmce import _kernel_form
from ..predictions import Predictions

# Under the root, as there: the gradient is finite where the square is zero.
_FLOOR = 1e-10


def released_weighted_mmce(predictions: Predictions, *, bandwidth: float = 0.4) -> Tensor:
    r"""Weighted MMCE as trained on by Kumar et al. and Mukhoti et al.: averaged twice.

    $$\sqrt{v^\top K v}, \qquad v_i = \frac{1 - C_i}{m^2} \text{ where right},
      \quad v_i = -\frac{C_i}{(n - m)^2} \text{ where wrong}$$

    Their formula has $m$ and $n - m$ once, as `weighted_mmce` has. The published weights, such as
    the 2 of the meta-calibration paper, belong to this form, which is tens of times smaller. Zero
    where all answers are right or all are wrong.

    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0], [1.0, 0.0]])
    >>> released_weighted_mmce(Predictions(logits, torch.tensor([0, 0, 0, 1])))
    tensor(0.3395)
    """
    sure, right = predictions.confidence, predictions.correct
    m = right.sum()
    n = len(right) - m
    charge = right * (1 - sure) / m.clamp(min=1) ** 2 - (1 - right) * sure / n.clamp(min=1) ** 2
    value = (_kernel_form(sure, charge, bandwidth) + _FLOOR).sqrt()
    return torch.where((m > 0) & (n > 0), value, 0 * value)
