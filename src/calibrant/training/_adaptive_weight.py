"""A price of miscalibration that nobody tunes."""

from collections.abc import Mapping
from math import exp, isfinite, log
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..criteria import Criterion, across_ranks
from ..predictions import Predictions
from ..scores import nll
from ._weight import CalibrationStatistics


class AdaptiveWeight:
    r"""Raise the price while paying for calibration also makes held-out answers better.

    A proper score of samples that were not fitted, such as their likelihood, falls while
    over-confidence is taken away and rises once the answers themselves suffer. So it knows the
    price. With $g_t$ the gradient of the calibration loss at step $t$ and $h_t$ that of the score,
    both on the held-out batch of the step and by the parameters of the classifier layer,

    $$\log \lambda_{t+1} = \log \lambda_t
      + \eta \cos\bigl(h_t,\, g_{t-1}\bigr).$$

    A step along $-\lambda g_{t-1}$ changes the score by $-\lambda \langle h_t, g_{t-1} \rangle$,
    so this is descent on the score by $\log \lambda$, made free of both losses' scales. The two
    gradients come from different batches: on the same one, chance would align them.

    - `classifier`: the layer that makes the logits. Its gradients need no pass through the
      network, so the weight costs next to nothing.
    - `score`: judged on the held-out slice and never descended; proper, as `nll` and `brier` are.
    - `start`, `lowest`, `highest`: $\lambda$ at first, and its bounds.
    - `rate`: $\eta$, how fast it moves: by a factor of $e^\eta$ a step at most.

    Start low: where the weight is so large that the answers themselves are lost, little is left
    for the score to judge by, and it finds no way down.

    In `fit_interleaved` pass it as `weight`. In a loop of your own:

    >>> from calibrant import esd, rooted, top_label
    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> weight, criterion = AdaptiveWeight(model[-1]), top_label(rooted(esd))
    >>> for _ in range(3):
    ...     held_out = Predictions(model(torch.randn(64, 2)), torch.randint(3, (64,)))
    ...     calibration = criterion(held_out)
    ...     weight.watch(calibration, held_out)
    ...     loss = weight.value * calibration  # plus the fit of a training batch
    >>> 0.9 < weight.value < 1.1
    True

    One-step gradients of hyper-parameters: Luketina et al., "Scalable Gradient-Based Tuning of
    Continuous Regularization Hyperparameters", ICML 2016; Baydin et al., "Online Learning Rate
    Adaptation with Hypergradient Descent", ICLR 2018.
    """

    def __init__(
        self,
        classifier: nn.Module,
        *,
        score: Criterion = nll,
        start: float = 1.0,
        rate: float = 0.03,
        lowest: float = 1e-3,
        highest: float = 1e3,
    ) -> None:
        if not 0 < lowest <= start <= highest < float("inf"):
            raise ValueError(
                "start must lie between lowest and highest, all above 0; "
                f"got {start}, {lowest} and {highest}."
            )
        if not 0 < rate < float("inf"):
            raise ValueError(f"rate must be above 0; got {rate}.")
        self._parameters = [each for each in classifier.parameters() if each.requires_grad]
        if not self._parameters:
            raise ValueError(
                "classifier must have parameters that are trained; got "
                f"{type(classifier).__name__} without any. Pass the layer that makes the logits."
            )
        self.score, self.rate, self.lowest, self.highest = score, rate, lowest, highest
        self._log = log(start)
        self._before: Tensor | None = None

    @property
    def value(self) -> float:
        """What calibration is multiplied by now."""
        return exp(self._log)

    def watch(self, calibration: Tensor, held_out: Predictions) -> None:
        """Learn from a held-out batch whose graph is still there, before it is descended."""
        together = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        score = across_ranks(self.score) if together else self.score
        now = self._gradient(score(held_out), together)
        if self._before is not None:
            size = (now.norm() * self._before.norm()).item()
            aligned = (now @ self._before).item() / size if size > 0 else 0.0
            if isfinite(aligned):
                moved = self._log + self.rate * aligned
                self._log = min(max(moved, log(self.lowest)), log(self.highest))
        before = self._gradient(calibration, together)
        # A batch that shows no miscalibration has no direction to be judged by.
        self._before = before if bool(before.any()) else None

    def update(self, statistics: CalibrationStatistics) -> None:
        """Nothing is left to learn once a step has been taken."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep."""
        return {"log_weight": self._log, "before": self._before}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what a checkpoint kept."""
        self._log = state["log_weight"]
        before = state["before"]
        self._before = None if before is None else before.to(self._parameters[0].device)

    def _gradient(self, loss: Tensor, together: bool) -> Tensor:
        """By the classifier's parameters alone, in one vector; the mean over processes."""
        parts = torch.autograd.grad(
            loss, self._parameters, retain_graph=True, materialize_grads=True
        )
        whole = torch.cat([part.detach().flatten() for part in parts]).float()
        if together:
            dist.all_reduce(whole)
        return whole
