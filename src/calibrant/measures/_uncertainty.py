"""Accuracy versus uncertainty: certain when right, uncertain when wrong."""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import check_positive
from ..predictions import Predictions
from ._precision import widened

# A denominator no smaller than this keeps the logarithm finite when no sample is as it should.
_LEAST = 1e-12


def avuc(predictions: Predictions, *, threshold: float | None = None) -> Float[Tensor, ""]:
    r"""Accuracy versus uncertainty calibration loss.

    $$\log\Bigl(1 + \frac{n_{AU} + n_{IC}}{n_{AC} + n_{IU}}\Bigr)$$

    with accurate and inaccurate, certain and uncertain samples counted softly:
    $n_{AC} = \sum c\,(1 - \tanh h)$, $n_{AU} = \sum c \tanh h$,
    $n_{IC} = \sum (1 - c)(1 - \tanh h)$ and $n_{IU} = \sum (1 - c) \tanh h$, each over its own
    kind, with confidence $c$ and entropy $h$ in nats.

    - `threshold`: a sample is certain when its entropy is below this, in nats; half of its
      maximum $\log C$ when not given.

    The paper warns that it rewards confident mistakes; see `avuc_gs` and `soft_avuc`.
    Finite also when no sample is accurate and certain or inaccurate and uncertain.

    >>> predictions = Predictions(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    >>> avuc(predictions)
    tensor(1.1587)

    Krishnan & Tickoo, "Improving model calibration with accuracy versus uncertainty
    optimization", NeurIPS 2020; Karandikar et al., NeurIPS 2021, eqs. 13 and 14.
    """
    return _hard(predictions, predictions.confidence, threshold)


def avuc_gs(predictions: Predictions, *, threshold: float | None = None) -> Float[Tensor, ""]:
    r"""AvUC with the gradient stopped at the confidence, so that only the entropy is trained.

    $$\mathrm{AvUC}(\operatorname{stop}(c),\, h), \qquad
      \frac{\partial}{\partial c} \operatorname{stop}(c) = 0$$

    - `threshold`: as in `avuc`, whose value this has.

    Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021,
    appendix F.
    """
    return _hard(predictions, predictions.confidence.detach(), threshold)


def soft_avuc(
    predictions: Predictions, *, threshold: float = 0.5, temperature: float = 1.0
) -> Float[Tensor, ""]:
    r"""AvUC with a soft notion of uncertainty: S-AvUC.

    $$\log\Bigl(1 + \frac{n'_{AU} + n'_{IC}}{n'_{AC} + n'_{IU}}\Bigr), \qquad
      t(h^*) = \operatorname{logistic}\Bigl(\frac1T
      \log\frac{h^* (1 - \kappa)}{(1 - h^*)\,\kappa}\Bigr)$$

    where an uncertain sample counts $t(h^*) \tanh h$ and a certain one
    $(1 - t(h^*))(1 - \tanh h)$, accurate and inaccurate ones apart; $h^* = h / \log C$.

    - `threshold`: $\kappa$, where uncertainty is one half, as a share of the largest entropy.
    - `temperature`: $T$. At 1 with threshold 0.5, $t$ is the identity; towards 0 it is a step.

    Finite, in value and gradient, on uniform and on saturated predictions.

    >>> predictions = Predictions(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    >>> soft_avuc(predictions)
    tensor(0.2990)

    Karandikar et al., "Soft Calibration Objectives for Neural Networks", NeurIPS 2021,
    eqs. 15 and 16.
    """
    if not 0 < threshold < 1:
        raise ValueError(
            "threshold must lie between 0 and 1, as a share of the largest entropy; "
            f"got {threshold!r}. For one in nats divide by the logarithm of the number of classes."
        )
    check_positive(temperature=temperature)
    entropy, share = widened(predictions.entropy, predictions.normalised_entropy)
    edge = torch.finfo(share.dtype).eps
    odds = torch.logit(share.clamp(edge, 1 - edge)) - log(threshold / (1 - threshold))
    uncertain = (odds / temperature).sigmoid()
    return _accuracy_versus_uncertainty(
        predictions,
        uncertain=uncertain * entropy.tanh(),
        certain=(1 - uncertain) * (1 - entropy.tanh()),
    )


def _hard(predictions: Predictions, confidence: Tensor, threshold: float | None) -> Tensor:
    if threshold is None:
        threshold = log(predictions.classes) / 2
    check_positive(threshold=threshold)
    entropy, confidence, accurate = widened(predictions.entropy, confidence, predictions.correct)
    certain = predictions.entropy.detach() < threshold
    support = torch.where(accurate == 1, confidence, 1 - confidence)
    return _accuracy_versus_uncertainty(
        predictions,
        uncertain=support * entropy.tanh() * ~certain,
        certain=support * (1 - entropy.tanh()) * certain,
    )


def _accuracy_versus_uncertainty(
    predictions: Predictions, *, uncertain: Tensor, certain: Tensor
) -> Tensor:
    (accurate,) = widened(predictions.correct)
    as_it_should = accurate * certain + (1 - accurate) * uncertain
    otherwise = accurate * uncertain + (1 - accurate) * certain
    if predictions.weights is not None:
        (weights,) = widened(predictions.weights)
        total, present = weights.sum(), (weights > 0).sum()
        # Of mean one over the samples present, so that only their proportions matter.
        weights = weights * (present / torch.where(total > 0, total, 1))
        as_it_should, otherwise = weights * as_it_should, weights * otherwise
    good, bad = as_it_should.sum().clamp(min=_LEAST), otherwise.sum()
    return (bad / good).log1p().to(predictions.entropy.dtype)
