"""Predictions judged by what people said, where people disagree."""

import torch
from torch import Tensor

from ..measures import ece
from ..predictions import Predictions


@torch.no_grad()
def judged_by_people(logits: Tensor, shares: Tensor, *, bins: int = 15) -> dict[str, float]:
    r"""What predictions are worth when the truth of each sample is a distribution.

    With $q_i$ the shares of people who gave each class to sample $i$ and $p_i$ the prediction,
    every number is the expectation of the usual one over a label drawn from $q_i$:

    - `accuracy`: the mean share of people who agree with the predicted class.
    - `nll`: $-\sum_k q_{ik} \log p_{ik}$, and `entropy`, of $q_i$: the least that can be reached.
      Their difference is the mean Kullback-Leibler divergence.
    - `brier`: $\sum_k (p_{ik} - q_{ik})^2 + 1 - \sum_k q_{ik}^2$.
    - `ece`: of the confidence against the share of people who agree, over bins. Since that share
      is not 0 or 1, it is nearer to what calibration means than the same against one label.

    >>> certain, torn = [0.0, 9.0], [0.0, 0.0]
    >>> said = torch.tensor([[0.0, 1.0], [0.5, 0.5]])
    >>> found = judged_by_people(torch.tensor([certain, torn]), said)
    >>> {name: round(value, 3) for name, value in found.items()}
    {'accuracy': 0.75, 'nll': 0.347, 'entropy': 0.347, 'brier': 0.25, 'ece': 0.0}

    Peterson et al., "Human Uncertainty Makes Classification More Robust", ICCV 2019.
    """
    if shares.shape != logits.shape:
        raise ValueError(
            "shares must hold a distribution over classes for each row of logits, shape "
            f"{tuple(logits.shape)}; got {tuple(shares.shape)}."
        )
    total = shares.sum(dim=1)
    if (shares < 0).any() or not torch.allclose(total, torch.ones_like(total), atol=1e-4):
        raise ValueError("shares must be probabilities that add up to one in each row.")
    own = shares.to(logits)
    predicted = logits.argmax(dim=1)
    predictions = Predictions(logits, predicted)
    log_probs, probs = predictions.log_probs, predictions.probs
    agree = own.gather(1, predicted[:, None])[:, 0]
    brier = (probs - own).square().sum(dim=1) + 1 - own.square().sum(dim=1)
    found = {
        "accuracy": agree.mean(),
        "nll": -(own * log_probs).sum(dim=1).mean(),
        "entropy": -torch.xlogy(own, own).sum(dim=1).mean(),
        "brier": brier.mean(),
        "ece": ece(probs.amax(dim=1), agree, bins=bins),
    }
    return {name: float(value) for name, value in found.items()}
