"""Where the search for a linear map of scores begins."""

from math import log

from torch import Tensor

from ..predictions import Predictions
from ._softmax_fit import SoftmaxFit
from ._temperature import likeliest


def scaled_identity(problem: SoftmaxFit) -> Tensor:
    """The best map of those that only scale, which a few passes over the scores find.

    Most of what is wrong with a network's logits is their scale, so this is near the optimum.
    Where no scale is best, nothing at all is better than an identity that does worse than chance:
    there the likelihood is flat or steep and tells Newton's method little.
    """
    judged = Predictions._unchecked(problem.scores, problem.labels, problem.weights)
    try:
        beta, _ = likeliest(judged)
    except ValueError:
        value, _ = problem.at(problem.identity, careful=False)
        return problem.identity * float(value < log(problem.scores.shape[1]))
    return beta * problem.identity / problem.units
