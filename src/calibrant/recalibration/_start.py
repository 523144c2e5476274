"""Where the search for a linear map of scores begins."""

from torch import Tensor

from ..predictions import Predictions
from ._softmax_fit import SoftmaxFit
from ._temperature import likeliest


def scaled_identity(problem: SoftmaxFit) -> Tensor:
    """The best map of those that only scale, which a few passes over the scores find.

    Most of what is wrong with a network's logits is their scale, so this is near the optimum.
    Where no scale is best the identity will do.
    """
    judged = Predictions._unchecked(problem.scores, problem.labels, problem.weights)
    try:
        beta, _ = likeliest(judged)
    except ValueError:
        return problem.identity
    return beta * problem.identity
