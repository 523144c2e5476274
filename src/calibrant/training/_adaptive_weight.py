"""A price of miscalibration that nobody tunes."""

from collections.abc import Mapping
from math import copysign, exp, isfinite, log, sqrt
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import Tensor

from .._checks import check_callable
from ..criteria import Criterion, across_ranks, name_of
from ..predictions import Predictions
from ..scores import nll
from ._weight import CalibrationStatistics


class AdaptiveWeight:
    r"""Raise the price while held-out batches agree that the network is too sure.

    What a weight of one means depends on the measure and its scale. So the price is told as a
    share $\alpha$ of what likelihood does: with $h$ the gradient of a proper score of a held-out
    batch by its logits, $g$ that of the calibration loss, and means over recent batches,

    $$\lambda = \alpha \sqrt{\frac{\operatorname{mean} \lVert h \rVert^2}
      {\operatorname{mean} \lVert g \rVert^2}}.$$

    The calibration loss of one batch is mostly noise, and a weight multiplies it. Whether there is
    more than noise is seen by the next batches: multiply all logits $z$ by a common factor, and the
    loss changes with its logarithm by $t = \langle z, g \rangle$. Where a network is calibrated
    some batches ask for more confidence and some for less, and

    $$r = \operatorname{sign}(\operatorname{mean} t)
      \frac{(\operatorname{mean} t)^2}{\operatorname{mean} t^2}$$

    is near 0; where it is too sure all ask for less, and $r$ nears 1; too modest, and it nears -1.
    From half of `memory` on,

    $$\log \alpha \leftarrow \log \alpha + \eta \, (\max(r, 0) - r_0),$$

    and what is too modest goes free: there $\lambda$ is multiplied by $1 + r / r_0$, down to 0.
    A network that still learns its answers knows more than it says, and the fit makes it say so.
    Later, when it fits more than it knows, the price rises until the agreement is gone. A network
    whose fit leaves it too modest to the end, by smoothed labels for example, is left so. (In
    `"two_phase"` a step of the second phase that is free is a step all the same: momentum and
    weight decay go on.)

    A batch is watched before it is descended, so that none pulls harder than the mean force
    of the score by more than $\alpha$ and the root of `memory`, however calm those before it were.

    - `share`, `least`, `most`: $\alpha$ at first, and its bounds.
    - `agreement`: $r_0$, below which it falls. At 0.05 the mean of $t$ is less than a quarter of
      its scatter. At 0 it never falls, and nothing is paid as soon as the mean is below 0.
    - `rate`: $\eta$, by which it moves with each batch.
    - `memory`: batches that the means look back on, about.
    - `score`: of the held-out samples, and never descended; proper, as `nll` and `brier` are.

    In `fit_interleaved` pass it as `weight`. In a loop of your own:

    >>> from torch import nn
    >>> from calibrant import esd, rooted, top_label
    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> weight, criterion = AdaptiveWeight(), top_label(rooted(esd))
    >>> for _ in range(3):
    ...     held_out = Predictions(model(torch.randn(64, 2)), torch.randint(3, (64,)))
    ...     calibration = criterion(held_out)
    ...     weight.watch(calibration, held_out)
    ...     loss = weight.value * calibration  # plus the fit of a training batch
    >>> 0.1 < weight.value < 10
    True

    Our own rule. Balancing losses by the sizes of their gradients: Chen et al., "GradNorm:
    Gradient Normalization for Adaptive Loss Balancing in Deep Multitask Networks", ICML 2018.
    """

    # Raised whenever the rule or a default changes, so that nobody takes a stored run of an old
    # one for what it would give today.
    rule: ClassVar[int] = 4

    def __init__(
        self,
        *,
        share: float = 0.25,
        least: float = 0.1,
        most: float = 2.0,
        agreement: float = 0.05,
        rate: float = 0.05,
        memory: float = 50.0,
        score: Criterion = nll,
    ) -> None:
        if not 0 < least <= share <= most < float("inf"):
            raise ValueError(
                "share must lie between least and most, and these above 0; got "
                f"share {share}, least {least} and most {most}."
            )
        if not 0 <= agreement < 1:
            raise ValueError(f"agreement must be at least 0 and below 1; got {agreement}.")
        if not 0 <= rate < float("inf"):
            raise ValueError(f"rate must be at least 0; got {rate}. Usual is 0.05; 0 keeps share.")
        if not 1 <= memory < float("inf"):
            raise ValueError(f"memory must be at least 1, a number of batches; got {memory}.")
        self.least, self.most, self.agreement = least, most, agreement
        self.rate, self.memory, self.score = rate, memory, check_callable("score", score)
        self.share = self._start = share
        # Whether other processes train the same model; unless told, if there are any.
        self.together: bool | None = None
        self._seen = 0
        self._means = _START

    @property
    def value(self) -> float:
        """What calibration is multiplied by now."""
        of_score, of_calibration, *_ = self._means
        if not of_calibration:
            return self.share
        return self._charged * min(self.share * sqrt(of_score / of_calibration), _HIGHEST)

    def watch(self, calibration: Tensor, held_out: Predictions) -> None:
        """Learn from a held-out batch whose graph is still there, before it is descended."""
        if not calibration.requires_grad:
            return  # whoever descends it will say so
        several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        together = several and self.together is not False
        score = across_ranks(self.score) if together else self.score
        logits = held_out.logits
        by_score, by_calibration = _slope(score(held_out), logits), _slope(calibration, logits)
        if by_score is None:
            raise ValueError(
                "held_out must be made from the logits of a model that is trained; got "
                f"{type(held_out).__name__} whose score does not depend on them. "
                "Pass Predictions(logits, labels)."
            )
        if by_calibration is None:
            by_calibration = torch.zeros_like(by_score)
        # Logits of -inf mask a class, and have no slope.
        pulled = torch.where(by_calibration == 0, 0.0, by_calibration * logits.detach().double())
        now = torch.stack([by_score.square().sum(), by_calibration.square().sum(), pulled.sum()])
        if together:
            dist.all_reduce(now)
        of_score, of_calibration, pull = now.tolist()
        if not (isfinite(of_score) and isfinite(of_calibration) and isfinite(pull * pull)):
            return
        self._seen += 1
        # At first a plain mean, later one that forgets.
        part = max(1 / self._seen, 1 / self.memory)
        new = (of_score, of_calibration, pull, pull * pull)
        self._means = tuple(old + part * (x - old) for old, x in zip(self._means, new, strict=True))
        if self._known:
            moved = log(self.share) + self.rate * (max(self._agreed, 0.0) - self.agreement)
            self.share = min(max(exp(moved), self.least), self.most)

    @property
    def _agreed(self) -> float:
        """How far recent batches agree that the network is too sure; below 0, too modest."""
        *_, pull, square = self._means
        return copysign(pull**2 / square, pull) if self._known else 0.0

    @property
    def _known(self) -> bool:
        """Whether there is an agreement: one batch agrees with itself, and few do so by chance."""
        return 2 * self._seen > self.memory and self._means[3] > 0

    @property
    def _charged(self) -> float:
        """The part of the price that is asked for: all of it, unless the network is too modest."""
        if self._agreed >= 0:
            return 1.0
        return max(1.0 + self._agreed / self.agreement, 0.0) if self.agreement else 0.0

    def update(self, statistics: CalibrationStatistics) -> None:
        """Nothing is left to learn once a step has been taken."""

    def __repr__(self) -> str:
        limits = f"share={self._start}, least={self.least}, most={self.most}"
        pace = f"agreement={self.agreement}, rate={self.rate}, memory={self.memory}"
        return f"{type(self).__name__}({limits}, {pace}, score={name_of(self.score)})"

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep."""
        return {"seen": self._seen, "means": list(self._means), "share": self.share}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what a checkpoint kept."""
        self._seen, self._means, self.share = state["seen"], tuple(state["means"]), state["share"]


# Where no batch shows miscalibration for long, prices rise without end, and none is paid.
_HIGHEST = 1e6
# Shares of one sample in a batch are small numbers, and half precision has none below 6e-8.
_LIFT = 256.0
# Of the squared gradients of score and calibration, of the pull on the scale, and of its square.
_START: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)


def _slope(loss: Tensor, logits: Tensor) -> Tensor | None:
    """The gradient by the logits, times a constant, which cancels; `None` without a path there."""
    slope = _times(_LIFT, loss, logits)
    if logits.dtype == torch.float16 and slope is not None and not bool(slope.isfinite().all()):
        # Lifted out of its range, which ends at 65,504.
        slope = _times(1.0, loss, logits)
        return None if slope is None else _LIFT * slope.double()
    return None if slope is None else slope.double()


def _times(lift: float, loss: Tensor, logits: Tensor) -> Tensor | None:
    lifted = torch.full_like(loss, lift)
    (slope,) = torch.autograd.grad(loss, [logits], lifted, retain_graph=True, allow_unused=True)
    return slope
