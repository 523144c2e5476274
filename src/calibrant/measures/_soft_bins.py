"""Soft bins: who belongs where, the error over them, and its gradient without keeping them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from ._handwritten import hand_written
from ._precision import widened

# Memberships held at once: half a megabyte stays in a CPU's cache, a GPU wants few launches.
_AT_ONCE = {"cpu": 2**16, "cuda": 2**24}


@dataclass(frozen=True)
class SoftBins:
    r"""Memberships $u_j(c) \propto \exp(-(c - \xi_j)^2 / T)$ about equally spaced centres.

    - `bins`, `temperature`: how many, and how soft, $T$.
    - `even`: a little membership given to every bin before they are made to sum to one.
    """

    bins: int
    temperature: float
    even: float = 0.0

    def centres(self, like: Tensor) -> Float[Tensor, " bins"]:
        r"""Middle of each bin, $\xi_j = (j + 1/2) / M$."""
        return (torch.arange(self.bins, dtype=like.dtype, device=like.device) + 0.5) / self.bins

    def memberships(self, confidence: Float[Tensor, " n"]) -> Float[Tensor, "bins n"]:
        """Bins as rows. The square of the confidence is common to all of them and cancels."""
        centre = self.centres(confidence)[:, None]
        softmax = (centre * (2 * confidence - centre) / self.temperature).softmax(dim=0)
        return self._mixed(softmax) if self.even else softmax

    def _mixed(self, softmax: Tensor) -> Tensor:
        return (softmax + self.even) / (1 + self.bins * self.even)

    def slopes(self, u: Float[Tensor, "bins n"], values: Float[Tensor, "k bins"]) -> Tensor:
        r"""Derivative by confidence of $\sum_j u_j v_j$, for each row $v$ of values."""
        centre = self.centres(u)
        scale = 1 + self.bins * self.even
        softmax = u * scale - self.even if self.even else u
        mean_centre = centre @ softmax
        moved = (values * centre) @ softmax - mean_centre * (values @ softmax)
        return moved * (2 / self.temperature / scale)


def binned_error(
    confidence: Tensor, outcome: Tensor, soft: SoftBins, norm: float, weights: Tensor | None
) -> Tensor:
    """Mean over bins of the powers of their gaps: eq. 11 before the root."""
    definition = partial(_binned, soft=soft, norm=norm, weights=weights)
    if weights is not None:
        return definition(confidence, outcome)
    fast = partial(_binned_with_gradient, soft=soft, norm=norm)
    return hand_written(confidence, outcome, definition, fast)


def label_binned_error(
    confidence: Tensor, outcome: Tensor, soft: SoftBins, norm: float, weights: Tensor | None
) -> Tensor:
    """Mean over samples and bins of the powers of their gaps: eq. 12 before the root."""
    definition = partial(_label_binned, soft=soft, norm=norm, weights=weights)
    if weights is not None:
        return definition(confidence, outcome)
    fast = partial(_label_binned_with_gradient, soft=soft, norm=norm)
    return hand_written(confidence, outcome, definition, fast)


def _binned(
    confidence: Tensor, outcome: Tensor, *, soft: SoftBins, norm: float, weights: Tensor | None
) -> Tensor:
    c, y = widened(confidence, outcome)
    counted = soft.memberships(c) * _counts(weights, c)
    mass = counted.sum(dim=1)
    gap = _ratio((counted * (y - c)).sum(dim=1), mass)
    return ((mass * _power(gap, norm)).sum() / _at_least_one_mass(mass)).to(confidence.dtype)


def _label_binned(
    confidence: Tensor, outcome: Tensor, *, soft: SoftBins, norm: float, weights: Tensor | None
) -> Tensor:
    c, y = widened(confidence, outcome)
    counted = soft.memberships(c) * _counts(weights, c)
    mass = counted.sum(dim=1)
    mean_outcome = _ratio((counted * y).sum(dim=1), mass)
    errors = counted * _power(mean_outcome[:, None] - c, norm)
    return (errors.sum() / _at_least_one_mass(mass)).to(confidence.dtype)


def _binned_with_gradient(
    confidence: Tensor, outcome: Tensor, *, soft: SoftBins, norm: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The derivation is in docs/derivations/soft-bins.md."""
    blocks, n = _Blocks(confidence, outcome, soft), max(len(confidence), 1)
    totals = [torch.stack([u.sum(dim=1), u @ (y - c)]) for c, y, u in blocks]
    mass, gap = torch.stack(totals).sum(dim=0)
    gap = _ratio(gap, mass)
    by_gap = _slope(gap, norm)
    by_mass = (1 - norm) * _power(gap, norm)
    by_confidence, by_outcome = [], []
    for c, y, u in blocks:
        here = by_gap @ u
        gap_moves, mass_moves = soft.slopes(u, torch.stack([by_gap, by_mass]))
        by_confidence.append((y - c) * gap_moves + mass_moves - here)
        by_outcome.append(here)
    value = (mass * _power(gap, norm)).sum()
    return _mean(confidence, n, value, torch.cat(by_confidence), torch.cat(by_outcome))


def _label_binned_with_gradient(
    confidence: Tensor, outcome: Tensor, *, soft: SoftBins, norm: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The derivation is in docs/derivations/soft-bins.md."""
    if norm == 2:
        return _label_binned_squares_with_gradient(confidence, outcome, soft)
    blocks, n = _Blocks(confidence, outcome, soft), max(len(confidence), 1)
    totals = [torch.stack([u.sum(dim=1), u @ y]) for _, y, u in blocks]
    mass, happened = torch.stack(totals).sum(dim=0)
    mean_outcome = _ratio(happened, mass)
    value, pull = torch.zeros_like(mass[0]), torch.zeros_like(mass)
    for c, _, u in blocks:
        error = mean_outcome[:, None] - c
        value = value + (u * _power(error, norm)).sum()
        pull = pull + (u * _slope(error, norm)).sum(dim=1)
    by_mean_outcome = _ratio(pull, mass)
    centres = soft.centres(mass)
    by_confidence, by_outcome = [], []
    for c, y, u in blocks:
        error = mean_outcome[:, None] - c
        weighed = u * _power(error, norm)
        own_moves = centres @ weighed - (centres @ u) * weighed.sum(dim=0)
        outcome_moves, spread_moves = soft.slopes(
            u, torch.stack([by_mean_outcome, by_mean_outcome * mean_outcome])
        )
        by_confidence.append(
            own_moves * (2 / soft.temperature)
            - (u * _slope(error, norm)).sum(dim=0)
            + y * outcome_moves
            - spread_moves
        )
        by_outcome.append(by_mean_outcome @ u)
    return _mean(confidence, n, value, torch.cat(by_confidence), torch.cat(by_outcome))


def _label_binned_squares_with_gradient(
    confidence: Tensor, outcome: Tensor, soft: SoftBins
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for squares, which multiply out, so that sums over bins are all it takes."""
    blocks, n = _Blocks(confidence, outcome, soft), max(len(confidence), 1)
    totals = [torch.stack([u.sum(dim=1), u @ y, u @ c, u @ c.square()]) for c, y, u in blocks]
    mass, happened, forecast, squares = torch.stack(totals).sum(dim=0)
    mean_outcome, mean_confidence = _ratio(happened, mass), _ratio(forecast, mass)
    value = (mean_outcome * (mass * mean_outcome - 2 * forecast)).sum() + squares.sum()
    gap = 2 * (mean_outcome - mean_confidence)
    moving = torch.stack([mean_outcome.square() - gap * mean_outcome, mean_outcome, gap])
    by_confidence, by_outcome = [], []
    for c, y, u in blocks:
        constant, by_c, by_y = soft.slopes(u, moving)
        here, by_outcome_here = torch.stack([mean_outcome, gap]) @ u
        by_confidence.append(constant - 2 * c * by_c + y * by_y - 2 * (here - c))
        by_outcome.append(by_outcome_here)
    return _mean(confidence, n, value, torch.cat(by_confidence), torch.cat(by_outcome))


class _Blocks:
    """Confidences, outcomes and memberships, block by block; nothing larger is kept."""

    def __init__(self, confidence: Tensor, outcome: Tensor, soft: SoftBins) -> None:
        c, y = widened(confidence, outcome)
        rows = max(1, _AT_ONCE.get(c.device.type, 2**16) // soft.bins)
        self.soft = soft
        self.blocks = list(zip(c.split(rows), y.split(rows), strict=True))
        self.kept = soft.memberships(c) if len(self.blocks) == 1 else None

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        for c, y in self.blocks:
            yield c, y, self.soft.memberships(c) if self.kept is None else self.kept


def _counts(weights: Tensor | None, like: Tensor) -> Tensor:
    return torch.ones_like(like) if weights is None else weights.to(like.dtype)


def _at_least_one_mass(mass: Tensor) -> Tensor:
    total = mass.sum()
    return torch.where(total > 0, total, 1)


def _ratio(numerator: Tensor, mass: Tensor) -> Tensor:
    """A mean over a bin; a bin with next to no mass has none, and weighs nothing."""
    some = mass > torch.finfo(mass.dtype).tiny
    return torch.where(some, numerator, 0) / torch.where(some, mass, 1)


def _power(x: Tensor, norm: float) -> Tensor:
    return x.abs() if norm == 1 else x.abs() ** norm


def _slope(x: Tensor, norm: float) -> Tensor:
    return x.sign() if norm == 1 else norm * x.abs() ** (norm - 1) * x.sign()


def _mean(like: Tensor, n: int, *totals: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    value, by_confidence, by_outcome = ((total / n).to(like.dtype) for total in totals)
    return value, by_confidence, by_outcome
