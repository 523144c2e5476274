"""Scores of a whole distribution: is it uncertain, and where it should be?"""

from math import log

from jaxtyping import Float
from torch import Tensor

from ..predictions import Predictions
from ..scores import Score, share_of_rows


@share_of_rows
def avu(predictions: Predictions) -> Float[Tensor, " n"]:
    r"""Accuracy versus uncertainty: the share that is right and certain, or wrong and uncertain.

    A sample is certain when its entropy is below half of its maximum, $\frac12 \log C$: the
    threshold of `avuc`, which is the loss to this.

    Krishnan & Tickoo, "Improving model calibration with accuracy versus uncertainty
    optimization", NeurIPS 2020, eq. 2.
    """
    certain = predictions.entropy < log(predictions.classes) / 2
    return (certain == (predictions.correct == 1)).to(predictions.correct.dtype)


@Score
def mean_entropy(predictions: Predictions) -> Float[Tensor, " n"]:
    """Entropy of the predicted distribution, in nats."""
    return predictions.entropy
