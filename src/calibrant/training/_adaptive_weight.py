"""A price of miscalibration that nobody tunes."""

from collections.abc import Mapping
from math import isfinite, sqrt
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..criteria import Criterion, across_ranks
from ..predictions import Predictions
from ..scores import nll
from ._weight import CalibrationStatistics


class AdaptiveWeight:
    r"""Let calibration pull the classifier with a share of the force that likelihood has there.

    What a weight of one means depends on the measure, its scale, the network and the batch. What
    it may cost does not: with $h$ the gradient of a proper score of the held-out batch, $g$ that of
    the calibration loss of the same batch, both by the parameters of the classifier layer, and
    means over recent batches,

    $$\lambda = \alpha \sqrt{\frac{\operatorname{mean} \lVert h \rVert^2}
      {\operatorname{mean} \lVert g \rVert^2}}.$$

    A step along $-(h + \lambda g)$ improves the score by at least $1 - \alpha$ of what a step along
    $-h$ would, whatever the angle between them, since
    $\langle h, h + \lambda g \rangle \ge \lVert h \rVert^2 - \lambda \lVert h \rVert \lVert g
    \rVert$. So calibration is bought as long as it takes no more than that share of the answers'
    progress. A batch that shows no miscalibration has no gradient, and teaches nothing.

    - `classifier`: the layer that makes the logits. Its gradients need no pass through the
      network, so the weight costs next to nothing.
    - `share`: $\alpha$, above 0. A half keeps at least half of the progress; from 1 on nothing is
      promised.
    - `score`: of the held-out samples, and never descended; proper, as `nll` and `brier` are.
    - `memory`: batches that the means look back on, about.
    - `lowest`, `highest`: bounds of $\lambda$.

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
    >>> 0.1 < weight.value < 10
    True

    Weights from gradients of the last layer: Esser et al., "Taming Transformers for
    High-Resolution Image Synthesis", CVPR 2021, eq. 7; of a shared layer: Chen et al., "GradNorm:
    Gradient Normalization for Adaptive Loss Balancing in Deep Multitask Networks", ICML 2018.
    """

    def __init__(
        self,
        classifier: nn.Module,
        *,
        share: float = 0.5,
        score: Criterion = nll,
        memory: float = 100.0,
        lowest: float = 1e-3,
        highest: float = 1e3,
    ) -> None:
        if not 0 < lowest <= highest < float("inf"):
            raise ValueError(
                f"lowest must be above 0 and at most highest; got {lowest} and {highest}."
            )
        if not 0 < share < float("inf"):
            raise ValueError(f"share must be above 0; got {share}. Usual is 0.5.")
        if not 1 <= memory < float("inf"):
            raise ValueError(f"memory must be at least 1, a number of batches; got {memory}.")
        self._parameters = [each for each in classifier.parameters() if each.requires_grad]
        if not self._parameters:
            raise ValueError(
                "classifier must have parameters that are trained; got "
                f"{type(classifier).__name__} without any. Pass the layer that makes the logits."
            )
        self.share, self.score, self.memory = share, score, memory
        self.lowest, self.highest = lowest, highest
        self._seen = 0
        self._squares = (1.0, 1.0)  # of the score's gradient and of calibration's

    @property
    def value(self) -> float:
        """What calibration is multiplied by now."""
        of_score, of_calibration = self._squares
        return min(max(self.share * sqrt(of_score / of_calibration), self.lowest), self.highest)

    def watch(self, calibration: Tensor, held_out: Predictions) -> None:
        """Learn from a held-out batch whose graph is still there, before it is descended."""
        together = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        score = across_ranks(self.score) if together else self.score
        now = torch.stack(
            [self._square(score(held_out), together), self._square(calibration, together)]
        ).tolist()
        if not (now[1] > 0 and all(isfinite(each) for each in now)):
            return
        self._seen += 1
        # At first a plain mean, later one that forgets.
        part = max(1 / self._seen, 1 / self.memory)
        of_score, of_calibration = (
            old + part * (new - old) for old, new in zip(self._squares, now, strict=True)
        )
        self._squares = (of_score, of_calibration)

    def update(self, statistics: CalibrationStatistics) -> None:
        """Nothing is left to learn once a step has been taken."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep."""
        return {"seen": self._seen, "squares": list(self._squares)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what a checkpoint kept."""
        self._seen = state["seen"]
        of_score, of_calibration = state["squares"]
        self._squares = (of_score, of_calibration)

    def _square(self, loss: Tensor, together: bool) -> Tensor:
        """Squared length of the gradient by the classifier's parameters, of all processes' data."""
        parts = torch.autograd.grad(
            loss, self._parameters, retain_graph=True, materialize_grads=True
        )
        whole = torch.cat([part.detach().flatten() for part in parts]).double()
        if together:
            dist.all_reduce(whole)
        return whole.square().sum()
