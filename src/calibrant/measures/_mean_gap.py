"""The difference of mean confidence and mean outcome."""

import torch
from jaxtyping import Float
from torch import Tensor

from ..criteria import class_wise
from ..predictions import Predictions
from ._events import of_events
from ._precision import widened


@of_events
def dca(
    confidence: Float[Tensor, " n"],
    outcome: Float[Tensor, " n"],
    *,
    weights: Float[Tensor, " n"] | None = None,
) -> Float[Tensor, ""]:
    r"""Difference between confidence and accuracy, $|\bar Y - \bar C|$.

    Over- and under-confidence in different samples cancel: zero does not mean calibrated.

    - `weights`: how much each sample counts; weight two is the sample twice.

    >>> dca(torch.tensor([0.6, 0.7, 0.8, 0.9]), torch.tensor([1.0, 0.0, 1.0, 1.0]))
    tensor(0.)

    Liang et al., "Improved Trainable Calibration Method for Neural Networks on Medical
    Imaging Classification", BMVC 2020.
    """
    (gap,) = widened(outcome - confidence)
    counted = torch.ones_like(gap) if weights is None else weights.to(gap.dtype)
    total = counted.sum()
    return ((counted * gap).sum().abs() / torch.where(total > 0, total, 1)).to(confidence.dtype)


def mdca(predictions: Predictions) -> Float[Tensor, ""]:
    r"""Multi-class difference of confidence and accuracy: `class_wise(dca)`.

    $$\frac1C \sum_j \Bigl|\frac1n \sum_i (p_{ij} - [y_i = j])\Bigr|$$

    >>> predictions = Predictions(torch.eye(3), torch.tensor([0, 1, 1]))
    >>> mdca(predictions)
    tensor(0.2222)

    Hebbalaguppe et al., "A Stitch in Time Saves Nine: A Train-Time Regularizing Loss for
    Improved Neural Network Calibration", CVPR 2022, eq. 3.
    """
    return _every_class(predictions)


# Made here and not in `mdca`: older compilers cannot make a lift inside a graph.
_every_class = class_wise(dca)
