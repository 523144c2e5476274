"""Sets of classes that hold the true one as often as asked."""

from math import ceil
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from .._checks import check_probabilities, check_share
from ..predictions import Predictions
from ._arrays import tensor
from ._as_predictions import check_confidences
from ._events import refuse_weights
from ._inputs import check_no_nan

Method = Literal["lac", "aps"]


def prediction_sets(
    calibration: Predictions,
    test_probs: Tensor | ndarray,
    *,
    coverage: float = 0.9,
    method: Method = "lac",
) -> Tensor | ndarray:
    r"""Split-conformal sets: for each row, which classes to keep so that the truth is among them.

    Every class of a sample has a score, low where it is likely; a class is kept if its score
    is at most the $\lceil (n + 1) \cdot \mathrm{coverage} \rceil$-th lowest score of the true
    classes of the calibration samples. If those and the new sample are exchangeable, the set
    holds the truth with at least that probability, on average over both, whatever the model.

    - `calibration`: held-out predictions of the same model.
    - `test_probs`: probabilities, one row per new sample; a boolean matrix like it comes back.
      If the two have different dtypes, both are compared in the less precise one.
    - `method`: `"lac"` scores a class by $1 - p$: the smallest sets on average, some of them
      empty; without ties coverage exceeds what was asked by at most $1 / (n + 1)$. `"aps"`
      scores a class by the total probability of the classes from the most probable down to
      it, which adapts the size to the difficulty. It is not randomised, and the most
      probable class is always kept, so its coverage errs on the high side.

    With fewer than $1 / (1 - \mathrm{coverage}) - 1$ calibration samples every class is kept.

    >>> calibration = Predictions(torch.eye(3).repeat(10, 1), torch.arange(30) % 3)
    >>> prediction_sets(calibration, torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]))
    tensor([[ True, False, False],
            [False, False,  True]])

    Sadinle, Lei & Wasserman, "Least Ambiguous Set-Valued Classifiers with Bounded Error
    Levels", JASA 2019; Romano, Sesia & Candès, "Classification with Valid and Adaptive
    Coverage", NeurIPS 2020.
    """
    check_share("coverage", coverage)
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {get_args(Method)}; got {method!r}.")
    if not isinstance(calibration, Predictions):
        raise TypeError(
            f"calibration must be Predictions; got {type(calibration).__name__}. "
            "Pass Predictions(logits, labels), or Predictions.from_probabilities(probs, labels)."
        )
    refuse_weights(calibration)
    check_confidences(calibration.confidence)
    given = tensor("test_probs", test_probs)
    if given.ndim != 2:
        raise ValueError(
            f"test_probs must have shape (n, classes); got {tuple(given.shape)}. "
            "For chances p of class 1 pass np.stack([1 - p, p], axis=1)."
        )
    check_no_nan("test_probs", given)
    check_probabilities(given, "pass logits.softmax(dim=1)")
    if given.shape[1] != calibration.classes:
        raise ValueError(
            f"test_probs must have a column for each of the {calibration.classes} classes of "
            f"the calibration predictions; got {given.shape[1]}."
        )
    score = _lac if method == "lac" else _aps
    labels = calibration.labels[:, None]
    # Rounded alike, since what ties with the limit in one type may miss it in another.
    coarser = max(calibration.probs.dtype, given.dtype, key=lambda kind: torch.finfo(kind).eps)
    seen = score(calibration.probs.detach().to(coarser).double()).gather(1, labels)[:, 0]
    # Rounded first: 0.9 * 10 must not become 10 because 0.9 is not a binary fraction.
    rank = ceil(round((len(seen) + 1) * coverage, 9))
    probs = given.detach().to(coarser).double()
    if rank > len(seen):
        kept = torch.ones_like(probs, dtype=torch.bool)
    else:
        limit = seen.kthvalue(rank).values.to(probs.device)
        kept = score(probs) <= limit
    if method == "aps":
        kept.scatter_(1, probs.argmax(dim=1, keepdim=True), True)
    return kept if isinstance(test_probs, Tensor) else np.asarray(kept)


def _lac(probs: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
    return 1 - probs


def _aps(probs: Float[Tensor, "n classes"]) -> Float[Tensor, "n classes"]:
    ordered, source = probs.sort(dim=1, descending=True, stable=True)
    return torch.empty_like(probs).scatter(1, source, ordered.cumsum(dim=1))
