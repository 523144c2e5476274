"""Any number of predictions in fixed memory, to be added up in any order."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import check_bins
from ..measures._binned import bin_mean, gap_norm
from ..predictions import Predictions
from ..scores import accuracy, brier, nll

# Cells are of equal width in log-odds, up to where a float32 confidence becomes exactly one.
_SUREST = 17.0

# What is kept of the samples in a cell: how many, how many right, the confidences of the right
# and of the wrong ones, and the squares of their gaps.
_KEPT = 5


@dataclass(frozen=True)
class Bounded:
    """A number, and how far the truth may be from it: zero where nothing was lost."""

    value: float
    error: float = 0.0


class Summary:
    r"""What the measures need to know of predictions, without the predictions.

    A summary takes the same few hundred kilobytes whether it has seen a thousand predictions
    or a billion. Summaries of parts of the data merge into the summary of the whole, in any
    order and grouping.

    - `classes`: how many.
    - `bins`: of the binned measures, as in `ece`; these come out exactly.
    - `cells`: how finely the order of confidences is kept, for measures that need it (KS, ESD,
      bins of equal mass); their error bound is part of the answer.

    >>> logits, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 0])
    >>> first = Summary(classes=2).update(logits[:2], labels[:2])
    >>> whole = first.merge(Summary(classes=2).update(logits[2:], labels[2:]))
    >>> round(whole.values()["ece"].value, 4), len(whole)
    (0.2992, 3)
    """

    def __init__(self, classes: int, *, bins: int = 15, cells: int = 8192) -> None:
        check_bins(bins)
        check_bins(cells)
        if classes < 2:
            raise ValueError(f"classes must be at least 2; got {classes}.")
        self.classes, self.bins, self.cells = classes, bins, cells
        grid = torch.linspace(-_SUREST, _SUREST, cells, dtype=torch.float64).sigmoid()
        bin_edges = torch.arange(1, bins, dtype=torch.float64) / bins
        # Every cell lies within one bin, so that bins are sums of cells.
        self.edges = torch.cat([grid, bin_edges]).unique()
        upper = torch.cat([self.edges, torch.ones(1, dtype=torch.float64)])
        self.bin_of_cell = torch.bucketize(upper, bin_edges)
        self.state = {
            "totals": torch.zeros(5, dtype=torch.float64),
            "cells": torch.zeros(len(upper), _KEPT, dtype=torch.float64),
            "marginals": torch.zeros(classes, bins, 3, dtype=torch.float64),
            "predicted": torch.zeros(classes, bins, 3, dtype=torch.float64),
        }

    def __len__(self) -> int:
        return int(self.state["totals"][0])

    @property
    def device(self) -> torch.device:
        """Where the summary lies; batches may lie anywhere."""
        return self.state["totals"].device

    @torch.no_grad()
    def update(self, logits: Tensor, labels: Tensor) -> "Summary":
        """Add a batch; returns the summary itself."""
        return self.add(Predictions(logits, labels))

    @torch.no_grad()
    def add(self, predictions: Predictions) -> "Summary":
        """Add predictions in any form that `Predictions` takes, without weights."""
        if predictions.weights is not None:
            raise ValueError("a summary counts every sample once; got weights. Leave them out.")
        if predictions.classes != self.classes:
            raise ValueError(
                f"predictions must have {self.classes} classes, like the summary; "
                f"got {predictions.classes}. Make a Summary({predictions.classes}) for them."
            )
        each = (
            torch.ones_like(predictions.confidence),
            accuracy.per_sample(predictions),
            nll.per_sample(predictions),
            brier.per_sample(predictions),
            predictions.entropy,
        )
        self.state["totals"] += torch.stack([x.double().sum() for x in each]).to(self.device)
        self._add_cells(predictions.confidence, predictions.correct)
        self._add_marginals(predictions)
        return self

    def _add_cells(self, confidence: Tensor, correct: Tensor) -> None:
        edges = self.edges.to(confidence)
        cell = torch.bucketize(confidence, edges)
        c, right = confidence.double(), correct.double()
        kept = torch.stack(
            [torch.ones_like(c), right, right * c, (1 - right) * c, (right - c).square()], dim=1
        )
        empty = kept.new_zeros(self.state["cells"].shape)
        self.state["cells"] += empty.index_add(0, cell, kept).to(self.device)

    def _add_marginals(self, predictions: Predictions) -> None:
        n = len(predictions)
        chances, happened = predictions.marginals
        columns = torch.arange(self.classes, device=chances.device).expand(n, -1)
        self._add_table("marginals", columns.reshape(-1), chances.reshape(-1), happened.reshape(-1))
        self._add_table(
            "predicted", predictions.predicted, predictions.confidence, predictions.correct
        )

    def _add_table(self, name: str, row: Tensor, chance: Tensor, happened: Tensor) -> None:
        edges = torch.arange(1, self.bins, dtype=chance.dtype, device=chance.device) / self.bins
        place = row * self.bins + torch.bucketize(chance, edges)
        kept = torch.stack([torch.ones_like(chance), chance, happened], dim=1).double()
        table = kept.new_zeros(self.classes * self.bins, 3).index_add(0, place, kept)
        self.state[name] += table.reshape(self.state[name].shape).to(self.device)

    def merge(self, other: "Summary") -> "Summary":
        """The summary of both. Neither is changed."""
        mine, theirs = ((s.classes, s.bins, s.cells) for s in (self, other))
        if mine != theirs:
            raise ValueError(
                "summaries must share classes, bins and cells to merge; "
                f"got {mine} and {theirs}. Make them with the same settings."
            )
        both = Summary(self.classes, bins=self.bins, cells=self.cells)
        both.state = {name: part + other.state[name] for name, part in self.state.items()}
        return both

    def values(self) -> dict[str, Bounded]:
        """Every measure the summary knows, with its error bound."""
        n = len(self)
        if n < 3:
            raise ValueError(f"a summary must hold at least 3 samples to be judged; got {n}.")
        _, *means = (self.state["totals"] / n).tolist()
        named = dict(zip(("accuracy", "nll", "brier", "mean_entropy"), means, strict=True))
        exact = {name: Bounded(value) for name, value in named.items()}
        kept = self.state["cells"].cpu()
        cells = _Cells(kept, self.bin_of_cell, self.bins, self.edges)
        return (
            exact
            | {name: Bounded(value) for name, value in cells.binned().items()}
            | {
                "class_wise_ece": Bounded(_table_ece(self.state["marginals"]).mean().item()),
                "per_class_ece": Bounded(self._per_class()),
                "label_binned_ece": cells.label_binned(),
                "ece_mass": cells.equal_mass(),
                "ks_error": cells.ks(),
                "esd": cells.esd(),
            }
        )

    def _per_class(self) -> float:
        table = self.state["predicted"]
        share = table[..., 0].sum(dim=1) / len(self)
        return (share * _table_ece(table)).sum().item()


def _table_ece(table: Float[Tensor, "rows bins 3"]) -> Float[Tensor, " rows"]:
    mass, chance, happened = table.unbind(dim=-1)
    return torch.stack([gap_norm(m, g, 1) for m, g in zip(mass, happened - chance, strict=True)])


class _Cells:
    """Samples known by their cell: whoever shares one is treated as tied."""

    def __init__(self, kept: Tensor, bin_of_cell: Tensor, bins: int, edges: Tensor) -> None:
        self.mass, right, self.sure_right, self.sure_wrong, self.squares = kept.unbind(dim=1)
        self.right, self.bin_of_cell, self.bins = right, bin_of_cell, bins
        ends = torch.cat([edges.new_zeros(1), edges, edges.new_ones(1)])
        self.lower, self.upper = ends[:-1], ends[1:]
        self.n = self.mass.sum()
        self.up, self.down = right - self.sure_right, self.sure_wrong
        self.gap = self.up - self.down
        self.size = self.up + self.down  # sum of the absolute gaps
        self.running = self.gap.cumsum(0)

    def _per_bin(self, x: Tensor) -> Tensor:
        return x.new_zeros(self.bins).index_add(0, self.bin_of_cell, x)

    def binned(self) -> dict[str, float]:
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
        unsure = (self.lower < mean) & (mean < self.upper)
        lost = (self.mass * (self.upper - self.lower))[unsure].sum()
        return Bounded((error.sum() / self.n).item(), (lost / self.n).item())

    def equal_mass(self) -> Bounded:
        """A cell goes where the lowest in it goes; one across a border may belong to both."""
        rank = self.mass.cumsum(0) - self.mass
        first = (rank * self.bins / self.n).floor().long().clamp(max=self.bins - 1)
        last = ((rank + self.mass - 1) * self.bins / self.n).floor().long()
        gap = self.gap.new_zeros(self.bins).index_add(0, first, self.gap)
        lost = 2 * self.size[last > first].sum()
        return Bounded((gap.abs().sum() / self.n).item(), (lost / self.n).item())

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
        return Bounded((total / triples).item(), (lost[shared].sum() / triples).item())
