"""Logits of probabilities, where only these are known."""

from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._checks import HALF, check_chances, check_not_masked, check_probabilities


@overload
def as_logits(probabilities: Tensor, *, smallest: float | None = None) -> Tensor: ...
@overload
def as_logits(probabilities: NDArray[Any], *, smallest: float | None = None) -> NDArray[Any]: ...
def as_logits(
    probabilities: Tensor | NDArray[Any], *, smallest: float | None = None
) -> Tensor | NDArray[Any]:
    r"""Logits that a recalibrator can take, of probabilities.

    Logarithms, so that $\operatorname{softmax}(\log p) = p$; of one chance per sample the
    log-odds, $\log p - \log(1 - p)$.

    - `probabilities`: `(n, classes)`, rows that sum to one; or `(n,)`, the chance of class 1.
    - `smallest`: what a smaller probability counts as, since zero has no logarithm; if not
      given, the smallest number of their dtype. Where a model rounds to zero, as forests do,
      rather pass `probabilities=True` to a recalibrator: it finds how small a chance they tell.

    >>> as_logits(torch.tensor([0.5, 0.9, 1.0]))
    tensor([ 0.0000,  2.1972, 15.9424])
    """
    if not isinstance(probabilities, Tensor):
        check_not_masked("probabilities", probabilities)
        given = torch.as_tensor(np.asarray(probabilities))
        array: NDArray[Any] = as_logits(given, smallest=smallest).numpy()
        return array
    wide = probabilities.float() if probabilities.dtype in HALF else probabilities
    if wide.ndim == 1:
        wide = check_chances(wide)
    else:
        check_probabilities(wide)
    tiny = torch.finfo(wide.dtype).tiny
    least = tiny if smallest is None else max(smallest, tiny)
    if wide.ndim != 1:
        return wide.clamp(min=least).log().to(probabilities.dtype)
    # The largest number below one stands further from it than the smallest from zero.
    most = 1 - max(least, torch.finfo(wide.dtype).eps)
    clipped = wide.clamp(min=least, max=most)
    return (clipped.log() - torch.log1p(-clipped)).to(probabilities.dtype)
