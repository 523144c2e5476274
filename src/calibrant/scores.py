"""How well predictions fit the labels, one number per sample: primary losses and accuracy."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, Generic, ParamSpec

import torch
from jaxtyping import Float
from torch import Tensor

from .criteria import Criterion
from .predictions import Predictions

Settings = ParamSpec("Settings")


class Score(Generic[Settings]):
    """A criterion that is the mean of one number per sample.

    Called, it gives the mean over the predictions, by weight where they have weights;
    `per_sample` gives the vector.

    - `row_by_row`: whether the number of a sample depends on that sample alone, so that the mean of
      many may be taken of some after others. What looks at the whole batch must not say so.
    - `share`: whether the number of a sample is 0 or 1. The mean is then a share, which is exact:
      in double precision whatever the logits.

    >>> predictions = Predictions(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    >>> nll(predictions)
    tensor(0.7201)
    >>> nll.per_sample(predictions)
    tensor([0.1269, 1.3133])
    """

    def __init__(
        self,
        per_sample: Callable[Concatenate[Predictions, Settings], Tensor],
        *,
        row_by_row: bool = False,
        share: bool = False,
    ) -> None:
        self.per_sample, self.row_by_row, self.share = per_sample, row_by_row, share
        update_wrapper(self, per_sample)

    __name__: str

    def __reduce__(self) -> str:
        return self.__name__  # pickled like a function, by where it is found

    def __call__(
        self, predictions: Predictions, /, *args: Settings.args, **settings: Settings.kwargs
    ) -> Float[Tensor, ""]:
        """Mean of `per_sample` over the predictions."""
        if not isinstance(predictions, Predictions):
            raise TypeError(
                f"{self.__name__} judges Predictions; got {type(predictions).__name__}. "
                f"Pass Predictions(logits, labels)."
            )
        # Settings may be of the whole batch too.
        row_by_row = self.row_by_row and not (args or settings)
        return predictions.mean_of(
            lambda each: self.per_sample(each, *args, **settings),
            row_by_row=row_by_row,
            share=self.share,
        )


def _of_rows(
    per_sample: Callable[Concatenate[Predictions, Settings], Tensor],
) -> Score[Settings]:
    """A score whose numbers know nothing of each other."""
    return Score(per_sample, row_by_row=True)


def share_of_rows(
    per_sample: Callable[Concatenate[Predictions, Settings], Tensor],
) -> Score[Settings]:
    """The same, each number being 0 or 1."""
    return Score(per_sample, row_by_row=True, share=True)


@_of_rows
def nll(predictions: Predictions) -> Float[Tensor, " n"]:
    r"""Negative log-likelihood, $-\log p_y$: cross-entropy with the label."""
    return -predictions.true_log_prob


@_of_rows
def label_smoothing(predictions: Predictions, *, eps: float = 0.05) -> Float[Tensor, " n"]:
    r"""Cross-entropy with labels mixed with the uniform distribution.

    $$-(1 - \epsilon) \log p_y - \frac{\epsilon}{C} \sum_j \log p_j$$

    - `eps`: share of the uniform distribution, the true class's part of it included.

    Müller, Kornblith & Hinton, "When Does Label Smoothing Help?", NeurIPS 2019.
    """
    if not 0 <= eps <= 1:
        raise ValueError(f"eps must lie between 0 and 1; got {eps!r}. Usual is 0.05.")
    return -(1 - eps) * predictions.true_log_prob - eps * predictions.mean_log_prob


@_of_rows
def focal(predictions: Predictions, *, gamma: float = 3.0) -> Float[Tensor, " n"]:
    r"""Focal loss: samples that are fitted already count less.

    $$-(1 - p_y)^\gamma \log p_y$$

    - `gamma`: how much less; 0 gives the negative log-likelihood.

    Mukhoti et al., "Calibrating Deep Neural Networks using Focal Loss", NeurIPS 2020.
    """
    _check_gamma(gamma)
    return -(_miss(predictions.true_log_prob) ** gamma) * predictions.true_log_prob


@_of_rows
def flsd(predictions: Predictions, *, gamma: float = 3.0) -> Float[Tensor, " n"]:
    r"""Focal loss with a sample-dependent gamma: 5 where $p_y < 0.2$, 3 below 0.5, else `gamma`.

    No gradient flows through the choice of gamma.

    Mukhoti et al., "Calibrating Deep Neural Networks using Focal Loss", NeurIPS 2020.
    """
    _check_gamma(gamma)
    truth = predictions.true_log_prob.detach().exp()
    chosen = torch.full_like(truth, gamma)
    chosen = torch.where(truth < 0.2, 5, torch.where(truth < 0.5, 3, chosen))
    return -(_miss(predictions.true_log_prob) ** chosen) * predictions.true_log_prob


@_of_rows
def dual_focal(predictions: Predictions, *, gamma: float = 5.0) -> Float[Tensor, " n"]:
    r"""Focal loss that also looks at the best class below the true one.

    $$-(1 - p_y + p_j)^\gamma \log p_y, \qquad p_j = \max_k \{p_k : p_k < p_y\}$$

    - `gamma`: 5 for most networks in the paper (table 13).

    Tao, Dong & Xu, "Dual Focal Loss for Calibration", ICML 2023.
    """
    _check_gamma(gamma)
    truth = predictions.probs.detach().gather(1, predictions.labels[:, None])
    below = predictions.probs.detach() < truth
    runner_up = (predictions.probs * below).max(dim=1).values
    shortfall = _miss(predictions.true_log_prob) + runner_up
    return -(shortfall**gamma) * predictions.true_log_prob


@_of_rows
def brier(predictions: Predictions) -> Float[Tensor, " n"]:
    r"""Squared error of the probabilities, $\sum_j (p_j - [j = y])^2$, between 0 and 2.

    Brier, "Verification of forecasts expressed in terms of probability", 1950.
    """
    return predictions.squared_error


@_of_rows
def squared_logits(
    predictions: Predictions, *, weight: float = 1.0, target: float = 1.0
) -> Float[Tensor, " n"]:
    r"""Squared error of the logits, without a softmax.

    $$\frac1C \Bigl(k\,(z_y - M)^2 + \sum_{j \ne y} z_j^2\Bigr)$$

    - `weight`: of the true class, $k$; `target`: its logit, $M$. For more than about 40 classes
      the paper raises them, to 15 and 30 on ImageNet.

    Hui & Belkin, "Evaluation of Neural Architectures Trained with Square Loss vs
    Cross-Entropy in Classification Tasks", ICLR 2021.
    """
    truth = predictions.scores.gather(1, predictions.labels[:, None])[:, 0]
    rest = predictions.scores.square().sum(dim=1) - truth.square()
    return (weight * (truth - target).square() + rest) / predictions.classes


@_of_rows
def margin_smoothing(
    predictions: Predictions, *, margin: float = 10.0, weight: float = 0.1
) -> Float[Tensor, " n"]:
    r"""Cross-entropy, and a penalty on logits that lag the largest by more than a margin.

    $$-\log p_y + \frac{\alpha}{C} \sum_j \max(0, \max_k z_k - z_j - m)$$

    - `margin`: the lag that is free, $m$; `weight`: price of the rest, $\alpha$. The mean over
      classes is the authors' code; their equation has a sum.

    Liu et al., "The Devil is in the Margin", CVPR 2022.
    """
    lag = predictions.scores.max(dim=1, keepdim=True).values - predictions.scores
    return weight * (lag - margin).relu().mean(dim=1) - predictions.true_log_prob


@_of_rows
def confidence_penalty(predictions: Predictions, *, weight: float = 0.1) -> Float[Tensor, " n"]:
    r"""Cross-entropy less a reward for entropy, $-\log p_y - \beta H(p)$.

    Pereyra et al., "Regularizing Neural Networks by Penalizing Confident Output
    Distributions", ICLR workshop 2017.
    """
    return -predictions.true_log_prob - weight * predictions.entropy


@share_of_rows
def accuracy(predictions: Predictions) -> Float[Tensor, " n"]:
    """Share of predictions that are right. A step function: it has no gradient to follow.

    Given in double precision, in which it is the count divided by the number of samples.
    """
    return predictions.correct


def _miss(true_log_prob: Tensor) -> Tensor:
    # 1 - p, and never exactly zero, of which a power has no gradient.
    return -torch.expm1(true_log_prob.clamp(max=-torch.finfo(true_log_prob.dtype).eps))


def _check_gamma(gamma: float) -> None:
    if not 0 <= gamma < float("inf"):
        raise ValueError(f"gamma must be finite and not negative; got {gamma!r}. Usual is 3.")


SCORES: dict[str, Criterion] = {
    "nll": nll,
    "label_smoothing": label_smoothing,
    "focal": focal,
    "flsd": flsd,
    "dual_focal": dual_focal,
    "brier": brier,
    "squared_logits": squared_logits,
    "margin_smoothing": margin_smoothing,
    "confidence_penalty": confidence_penalty,
    "accuracy": accuracy,
}
