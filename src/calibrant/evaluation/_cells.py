"""Measures of samples of which only the cell is known, each with its error bound."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..measures._binned import bin_mean, gap_norm

# How far beyond the edges of its cell a confidence of float32 lies, by whose rounding it is there.
_ROUNDED = 2.0**-25


@dataclass(frozen=True)
class Bounded:
    """A number that a summary knows, give or take a bound.

    - `value`: the number.
    - `error`: how far the truth may be from it; zero where nothing was lost.

    >>> Bounded(0.05).error
    0.0
    """

    value: float
    error: float = 0.0


class Cells:
    """Samples known by their cell: whoever shares one is treated as tied."""

    def __init__(self, kept: Tensor, bin_of_cell: Tensor, bins: int, edges: Tensor) -> None:
        self.mass, right, self.sure_right, self.sure_wrong, self.squares = kept.unbind(dim=1)
        self.right, self.bin_of_cell, self.bins = right, bin_of_cell, bins
        ends = torch.cat([edges.new_zeros(1), edges, edges.new_ones(1)])
        self.lower = (ends[:-1] - _ROUNDED).clamp(min=0)
        self.upper = (ends[1:] + _ROUNDED).clamp(max=1)
        self.n = self.mass.sum()
        self.up, self.down = right - self.sure_right, self.sure_wrong
        self.gap = self.up - self.down
        self.size = self.up + self.down  # sum of the absolute gaps
        self.running = self.gap.cumsum(0)

    def _per_bin(self, x: Tensor) -> Tensor:
        return x.new_zeros(self.bins).index_add(0, self.bin_of_cell, x)

    def binned(self) -> dict[str, float]:
        """Exact, since every cell lies within one bin."""
        mass, gap = self._per_bin(self.mass), self._per_bin(self.gap)
        return {
            "ece": gap_norm(mass, gap, 1).item(),
            "ece_l2": gap_norm(mass, gap, 2).item(),
            "mce": bin_mean(gap, mass).abs().max().item(),
        }

    def label_binned(self) -> Bounded:
        """Exact but in the cell that holds a bin's accuracy, where signs may differ."""
        mean = bin_mean(self._per_bin(self.right), self._per_bin(self.mass))[self.bin_of_cell]
        error = (self.mass * mean - self.sure_right - self.sure_wrong).abs()
        below, above = (mean - self.lower).clamp(min=0), (self.upper - mean).clamp(min=0)
        lost = 2 * (self.mass * below * above / (self.upper - self.lower)).sum()
        # The size of a sum is no more than the sum of sizes, so that the truth is not below.
        found = error.sum() / self.n
        return _bounded(found, lost / self.n, found, 1)

    def equal_mass(self) -> Bounded:
        """A cell goes where the lowest in it goes; one across a border may belong to both."""
        rank = self.mass.cumsum(0) - self.mass
        first = (rank * self.bins / self.n).floor().long().clamp(max=self.bins - 1)
        last = ((rank + self.mass - 1) * self.bins / self.n).floor().long()
        gap = self.gap.new_zeros(self.bins).index_add(0, first, self.gap)
        lost = 2 * self.size[last > first].sum()
        # Whatever the bins are.
        least, most = self.running[-1].abs(), self.size.sum()
        return _bounded(gap.abs().sum() / self.n, lost / self.n, least / self.n, most / self.n)

    def ks(self) -> Bounded:
        """Running sums are known at the ends of cells; between them they may go further."""
        start = self.running - self.gap
        known = self.running.abs().max()
        highest, lowest = (start + self.up).max(), (start - self.down).min()
        furthest = torch.stack([highest, -lowest, known]).max()
        return Bounded((known / self.n).item(), ((furthest - known) / self.n).item())

    def esd(self) -> Bounded:
        """A tied sample has up to its whole cell too much below it: docs/derivations/summary.md."""
        at_or_above = self.n - self.mass.cumsum(0) + self.mass
        below = self.mass * self.running**2 - 2 * self.running * self.gap + self.squares
        total = below.sum() - (self.squares * (at_or_above - 1)).sum()
        shared = self.mass > 1
        lost = (
            2 * self.size * (self.mass * self.running.abs() + self.size)
            + self.mass * self.size**2
            + self.squares * (self.mass - 1)
        )
        triples = self.n * (self.n - 1) * (self.n - 2)
        # Of any samples the gaps sum to no more than those of one sign, and are squared.
        most = torch.maximum(self.up.sum(), self.down.sum()).square() * self.n
        least = -self.squares.sum() * self.n
        return _bounded(*(x / triples for x in (total, lost[shared].sum(), least, most)))


def _bounded(value: Tensor, lost: Tensor, least: Tensor | float, most: Tensor | float) -> Bounded:
    """A bound that goes no further than the truth can: from `least` to `most`."""
    furthest = max(float(value - least), float(most - value), 0.0)
    return Bounded(value.item(), min(lost.item(), furthest))
