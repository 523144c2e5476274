"""The likelihood of labels under a softmax of a linear map of scores, block by block."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..measures._precision import in_proportion
from ..predictions import Predictions
from ._linear_map import LinearMap

# Blocks of about half a megabyte stay in the cache between one operation and the next.
_BLOCK = 2**17
# Below this many scores double precision throughout costs nothing one would notice.
_SMALL = 2**18
# Up to this many scores their probabilities are kept, since many products are asked for at one
# point: 128 megabytes at most.
_KEPT = 2**25
# Scores up to this size are taken as they are.
_USUAL = 256.0
# Up to as many coefficients the last digits are worth their time.
_FEW = 2000


@dataclass
class SoftmaxFit:
    r"""Mean negative log-likelihood of the labels, and a pull towards the identity.

    $$F(\Theta) = -\frac{1}{\sum_i \omega_i} \sum_i \omega_i \log
      \mathrm{softmax}(\Theta x_i)_{y_i}
      + \frac12 \sum_k \rho_k (\theta_k - \theta_k^{\mathrm{id}})^2$$

    - `scores`: $x$, one row per sample; `labels`: $y$; `weights`: $\omega$, or None for ones.
    - `strength`: $\rho$, one per coefficient, not negative.

    Scores far larger than logits usually are, are divided by a power of two, so that coefficients
    are of the order of one. Points are in terms of those: divide them by `units` to read them.

    Of large problems nothing the size of the scores is kept: probabilities are made anew for each
    block of rows, in the dtype of the scores. Sums over blocks are kept in double precision.
    """

    scores: Tensor
    labels: Tensor
    weights: Tensor | None
    map: LinearMap
    strength: Tensor | float = 0.0
    total: float = field(init=False)
    units: Tensor = field(init=False)
    _observed: Tensor = field(init=False)
    _largest: float = field(init=False)
    _log_mass: tuple[Tensor, Tensor] = field(init=False)
    _room: Tensor | None = field(init=False, default=None)
    _keeps: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if self.scores.numel() <= _SMALL:
            self.scores = self.scores.double()
        if self.weights is not None:
            self.weights = in_proportion(self.weights.double())
        self.total = float(len(self.labels) if self.weights is None else self.weights.sum())
        self.identity = self.map.identity(self.scores.shape[1]).to(self.scores.device)
        self._log_mass = (torch.empty(0), torch.empty(0))
        unit = _unit_of(float(self.scores.abs().amax()))
        self.units = self.map.in_units(torch.ones_like(self.identity), unit)
        if unit > 1:
            self.scores = self.scores / unit
        self.identity = self.identity * self.units
        self._largest = max(1.0, float(self.scores.abs().amax()))
        penalty = torch.as_tensor(self.strength, dtype=torch.float64).to(self.identity.device)
        self.penalty = penalty.expand_as(self.identity) / self.units / self.units
        self.bounded = bool((self.penalty > 0).all())
        exact = self.scores.dtype == torch.float64 and self.identity.numel() <= _FEW
        self.tolerance = 1e-10 if exact else 3e-7
        # The labels' part of the gradient does not depend on the point.
        self._observed = torch.zeros_like(self.identity)
        for x, y, w in self._blocks(False):
            self._observed += self.map.observe(y, x, w)

    @classmethod
    def of(
        cls,
        predictions: Predictions,
        linear: LinearMap,
        strength: Tensor | float = 0.0,
        scores: Tensor | None = None,
    ) -> "SoftmaxFit":
        """The problem that predictions pose."""
        scores = predictions.scores if scores is None else scores
        return cls(scores, predictions.labels, predictions.weights, linear, strength)

    def at(self, point: Tensor, *, careful: bool) -> tuple[float, Tensor]:
        """Value and gradient, in double precision where `careful`."""
        value = torch.zeros((), dtype=torch.float64, device=self.scores.device)
        gradient, masses = torch.zeros_like(point), []
        self._keeps = not careful and self.weights is None and self.scores.numel() <= _KEPT
        if self._keeps and self._room is None:
            self._room = torch.empty_like(self.scores)
        start = 0
        for x, y, w in self._blocks(careful):
            chances = self.map.push(point.to(x.dtype), x)
            highest = chances.amax(dim=1, keepdim=True)
            chances -= highest
            truth = chances.gather(1, y[:, None])[:, 0]
            mass = chances.exp_().sum(dim=1)
            loss = mass.log() - truth
            value += (loss if w is None else w * loss).sum(dtype=torch.float64)
            chances *= ((1 / mass) if w is None else (w / mass))[:, None]
            if self._keeps and self._room is not None:
                self._room[start : start + len(x)] = chances
                start += len(x)
            gradient += self.map.pull(chances, x)
            masses.append(highest[:, 0] + mass.log())
        self._log_mass = (point, torch.cat(masses).to(self.scores.dtype))
        off = point - self.identity
        pulled = self.penalty * off
        value = value / self.total + 0.5 * (pulled * off).sum()
        return value.item(), (gradient - self._observed) / self.total + pulled

    def curvature(self, point: Tensor) -> Callable[[Tensor], Tensor]:
        """The product of the Hessian with a direction."""

        def product(direction: Tensor) -> Tensor:
            bent = torch.zeros_like(point)
            for x, chances, w in self.chances(point):
                moved = self.map.push(direction.to(x.dtype), x).mul_(chances)
                moved.addcmul_(chances, moved.sum(dim=1, keepdim=True), value=-1)
                if w is not None:
                    moved *= w[:, None]
                bent += self.map.pull(moved, x)
            return bent / self.total + self.penalty * direction

        return product

    def preconditioner(self, point: Tensor) -> Callable[[Tensor], Tensor]:
        """What the map offers."""
        return self.map.stand_in(self, point)

    def reach(self, step: Tensor) -> float:
        """A bound on the change of any logit."""
        return float(step.abs().amax()) * self._largest

    def spread(self, point: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Blocks of scores with the weighted variance of each class, in all a mean over rows."""
        for x, chances, w in self.chances(point):
            varies = chances - chances.square()
            varies *= 1 / self.total if w is None else (w / self.total)[:, None]
            yield x, varies

    def rows(self) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Blocks of scores with their weights."""
        for x, _, w in self._blocks(False):
            yield x, w

    def chances(self, point: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Blocks with the probabilities at the point that was looked at last, not to be changed."""
        seen, log_mass = self._log_mass
        if seen is not point:
            self.at(point, careful=False)
            _, log_mass = self._log_mass
        start = 0
        for x, _, w in self._blocks(False):
            if self._keeps and self._room is not None:
                yield x, self._room[start : start + len(x)], w
                start += len(x)
                continue
            chances = self.map.push(point.to(x.dtype), x)
            # One number per row is kept from the last look, which spares a maximum and a sum.
            chances -= log_mass[start : start + len(x), None]
            start += len(x)
            yield x, chances.exp_(), w

    def _blocks(self, careful: bool) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        rows = max(1, _BLOCK // self.scores.shape[1])
        dtype = torch.float64 if careful else self.scores.dtype
        weights = None if self.weights is None else self.weights.to(dtype)
        for start in range(0, len(self.labels), rows):
            part = slice(start, start + rows)
            yield (
                self.scores[part].to(dtype),
                self.labels[part],
                None if weights is None else weights[part],
            )


def _unit_of(largest: float) -> float:
    """A power of two that brings scores down to the usual size, or one."""
    if not _USUAL < largest < math.inf:
        return 1.0
    return 2.0 ** math.ceil(math.log2(largest / _USUAL))
