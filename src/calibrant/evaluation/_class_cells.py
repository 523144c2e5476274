"""The bins of every class: what each holds, and the gaps that it may truly have."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..measures._binned import assign_bins, equal_mass
from ..measures._order import Ascending
from ..measures._precision import widened
from ..predictions import Predictions
from ._chance_blocks import ranges
from ._shape import SHAPE_BINS, shape_in, shape_of
from ._tempered import Tempered
from ._weights import in_shares

Cut = Literal["width", "mass", "predicted"]
"""Bins of equal width or of equal mass of each class, or of width of each predicted class."""


@dataclass(frozen=True)
class Cells:
    """Bins, each of one class, that hold any sample.

    - `mass`: how much of the sample each holds. `count`: how many samples that amounts to.
    - `chance`: the mean of what was predicted. `truth`: the mean gaps that the truth may have:
      sparse, tempered, and even. `luck`: the squared error of each of these, as a mean of samples
      that might have been others.
    """

    mass: Float[Tensor, " cells"]
    count: Float[Tensor, " cells"]
    chance: Float[Tensor, " cells"]
    truth: Float[Tensor, "shapes cells"]
    luck: Float[Tensor, "shapes cells"]


@dataclass(frozen=True)
class _Sums:
    """Of the slots of some classes: whether any sample is in them, and sums of shares."""

    filled: Tensor
    sums: Float[Tensor, "sums filled"]

    @staticmethod
    def of(slot: Int[Tensor, " n"], slots: int, own: Tensor, *columns: Tensor) -> "_Sums":
        """Of samples that each count as much as their own share."""
        weighed = torch.stack([own, own.square(), *(own * column for column in columns)])
        sums = own.new_zeros(len(weighed), slots).index_add(1, slot, weighed)
        filled = torch.zeros(slots, dtype=torch.bool, device=slot.device)
        filled[slot] = True
        return _Sums(filled, sums[:, filled])


@dataclass(frozen=True)
class Table:
    """Cells, and where to find the one of a class and a bin.

    - `place`: among the cells, of each bin of each class; of one without samples it says nothing.
    """

    place: Int[Tensor, " slots"]
    cells: Cells

    @staticmethod
    def of(parts: list[_Sums]) -> "Table":
        """The classes of each part after those of the one before."""
        filled = torch.cat([part.filled for part in parts])
        mass, squares, *means = torch.cat([part.sums for part in parts], dim=1)
        count = (mass.square() / torch.where(squares > 0, squares, 1)).round().clamp(min=1)
        chance, gap, sparse, *tempered = (x / torch.where(mass > 0, mass, 1) for x in means)
        truth = torch.stack([sparse, tempered[0], _even(chance, gap, count)])
        # Shapes of bins are alike within a cell, or nearly so.
        luck = torch.zeros_like(truth)
        luck[1] = (tempered[1] - tempered[0].square()).clamp(min=0) / count
        return Table(filled.cumsum(0) - 1, Cells(mass, count, chance, truth, luck))


def _even(chance: Tensor, gap: Tensor, count: Tensor) -> Tensor:
    """As many standard errors in every cell, to the side where there is room."""
    error = (chance * (1 - chance)).clamp(min=0).div(count).sqrt()
    errors = torch.where(error > 0, gap / torch.where(error > 0, error, 1), 0)
    size = (errors.square().sum() / max(len(errors), 1)).sqrt().clamp(min=1)
    return torch.where(chance < 0.5, size, -size) * error


@dataclass(frozen=True)
class ClassTables:
    """The tables of all classes.

    - `first`: in each class, the least chance of every bin of equal mass but the lowest.
    """

    by_cut: dict[Cut, Table]
    first: Float[Tensor, "classes inner"]

    @staticmethod
    def of(predictions: Predictions, weights: Float[Tensor, " n"], bins: int) -> "ClassTables":
        """A few columns at a time: memory is that of some of them."""
        shares = in_shares(weights)
        tempered = Tempered.of(predictions, shares)
        width, mass, first = zip(
            *(
                _of_some(predictions, some, shares, tempered, bins)
                for some in ranges(predictions.classes, len(predictions))
            ),
            strict=True,
        )
        by_cut: dict[Cut, Table] = {
            "width": Table.of(list(width)),
            "mass": Table.of(list(mass)),
            "predicted": Table.of([_of_predicted(predictions, shares, tempered, bins)]),
        }
        return ClassTables(by_cut, torch.cat(first))


def _of_some(
    predictions: Predictions, some: range, shares: Tensor, tempered: Tempered, bins: int
) -> tuple[_Sums, _Sums, Tensor]:
    """Of some classes: bins of equal width, of equal mass, and where the latter begin."""
    ascending = Ascending.of(predictions.probs[:, some.start : some.stop].T.contiguous())
    values, source, rank = ascending.values, ascending.source, ascending.first_tied
    classes = torch.arange(len(some), device=values.device)[:, None]
    outcome = (predictions.labels[source] == classes + some.start).to(values.dtype)
    gap, chance = widened(outcome - values, values)
    own = shares[source]
    sparse = shape_in(equal_mass(own, rank, SHAPE_BINS), chance, gap, own).sparse
    width = assign_bins(values.reshape(-1), bins=bins, binning="width").reshape(values.shape)
    mass = equal_mass(own, rank, bins)
    moved = tempered.gap(chance, source)
    columns = (own, chance, gap, sparse, moved, moved.square())
    by_width, by_mass = (
        _Sums.of(
            (classes * bins + bin_of).reshape(-1),
            len(some) * bins,
            *(column.reshape(-1) for column in columns),
        )
        for bin_of in (width, mass)
    )
    inner = torch.arange(1, bins, device=values.device).expand(len(some), -1).contiguous()
    beyond = torch.nn.functional.pad(values, (0, 1), value=torch.inf)
    return by_width, by_mass, beyond.gather(1, torch.searchsorted(mass, inner))


def _of_predicted(predictions: Predictions, shares: Tensor, tempered: Tempered, bins: int) -> _Sums:
    confidence = predictions.confidence
    gap, chance = widened(predictions.correct - confidence, confidence)
    slot = predictions.predicted * bins + assign_bins(confidence, bins=bins, binning="width")
    moved = tempered.gap(chance, torch.arange(len(chance), device=chance.device))
    columns = (chance, gap, shape_of(chance, gap, shares).sparse, moved, moved.square())
    return _Sums.of(slot, predictions.classes * bins, shares, *columns)
