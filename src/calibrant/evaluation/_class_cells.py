"""The bins of every class: what each holds, and the gaps that it may truly have."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..measures._binned import assign_bins, equal_mass
from ..measures._order import Ascending
from ..measures._precision import widened
from ..predictions import Predictions
from ._chance_blocks import ranges
from ._shape import SHAPE_BINS, shape_of, sparse_in
from ._tempered import Tempered
from ._weights import in_shares

Cut = Literal["width", "mass", "predicted"]
"""Bins of equal width or of equal mass of each class, or of width of each predicted class."""

# The place of this shape among those of a cell.
TEMPERED = 1


@dataclass(frozen=True)
class Cells:
    """Bins, each of one class, that hold any sample.

    - `mass`: how much of the sample each holds. `count`: how many samples that amounts to.
    - `chance`: the mean of what was predicted. `truth`: the mean gaps that the truth may have:
      sparse, tempered, and even. `luck`: the squared error of each of these, as a mean of samples
      that might have been others.
    - `squares`: the mean of squared chances, of chances times tempered gaps, and of their squares.
    """

    mass: Float[Tensor, " cells"]
    count: Float[Tensor, " cells"]
    chance: Float[Tensor, " cells"]
    truth: Float[Tensor, "shapes cells"]
    luck: Float[Tensor, "shapes cells"]
    squares: Float[Tensor, "3 cells"]

    def beyond_thinned(self, scale: Tensor) -> Float[Tensor, " cells"]:
        r"""By how much more an outcome varies when chances are tempered than when hits are thinned.

        Chances $p_i$ that fall to $q_i$ have outcomes with a mean variance of $q_i - q_i^2$. Hits
        of which a share $r$ is kept have that of the chances $r p_i$, which are as far from each
        other as the $p_i$ were; tempering brings them closer.
        """
        own, cross, gaps = self.squares
        gap = scale * self.truth[TEMPERED]
        moved, square = self.chance + gap, own + 2 * scale * cross + scale.square() * gaps
        rises = gap > 0
        # Of chances that rise the misses are thinned.
        before, after = (torch.where(rises, 1 - x, x) for x in (self.chance, moved.clamp(0, 1)))
        ratio = after / torch.where(before > 0, before, 1)
        thinned = ratio.square() * torch.where(rises, 1 - 2 * self.chance + own, own)
        return (thinned - torch.where(rises, 1 - 2 * moved + square, square)).clamp(min=0)


@dataclass(frozen=True)
class _Sums:
    """Of the slots of some classes: whether any sample is in them, and sums of shares.

    - `borders`: how much lies below a bin of equal mass, and the tempered gaps of its outermost
      samples.
    """

    filled: Tensor
    sums: Float[Tensor, "sums filled"]
    borders: Float[Tensor, "3 filled"] | None = None

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
        chance, gap, sparse, tempered, *squares = (
            x / torch.where(mass > 0, mass, 1) for x in means
        )
        truth = torch.stack([sparse, tempered, _even(chance, gap, count)])
        # Shapes of bins are alike within a cell, or nearly so.
        luck = torch.zeros_like(truth)
        borders = [part.borders for part in parts if part.borders is not None]
        spread = (
            _spread_of_trimmed(mass, tempered, squares[-1], *torch.cat(borders, dim=1))
            if borders
            else squares[-1] - tempered.square()
        )
        luck[TEMPERED] = spread.clamp(min=0) / count
        cells = Cells(mass, count, chance, truth, luck, torch.stack(squares))
        return Table(filled.cumsum(0) - 1, cells)


def _spread_of_trimmed(
    mass: Tensor, mean: Tensor, square: Tensor, below: Tensor, least: Tensor, most: Tensor
) -> Tensor:
    """The variance of which the mean of a bin of equal mass has the share of one sample.

    With other samples the bin has other borders too, so its mean is one of order statistics: each
    sample moves it by as much as it differs from the rest when whatever lies beyond a border is
    laid on that (Huber, "Robust Statistics", 1981, section 3.3).
    """
    above = (1 - below - mass).clamp(min=0)
    middle = below * least + mass * mean + above * most
    squares = below * least.square() + mass * square + above * most.square()
    return (squares - middle.square()) / torch.where(mass > 0, mass, 1)


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
    sparse = sparse_in(equal_mass(own, rank, SHAPE_BINS), chance, gap, own)
    width = assign_bins(values.reshape(-1), bins=bins, binning="width").reshape(values.shape)
    mass = equal_mass(own, rank, bins)
    moved = tempered.gap(chance, source)
    columns = (own, chance, gap, sparse, moved, *_squares(chance, moved))
    by_width, by_mass = (
        _Sums.of(
            (classes * bins + bin_of).reshape(-1),
            len(some) * bins,
            *(column.reshape(-1) for column in columns),
        )
        for bin_of in (width, mass)
    )
    each = torch.arange(bins, device=values.device).expand(len(some), -1).contiguous()
    first, last = (torch.searchsorted(mass, each, right=right) for right in (False, True))
    borders = _borders(own, moved, first, last)[:, by_mass.filled]
    beyond = torch.nn.functional.pad(values, (0, 1), value=torch.inf)
    return by_width, replace(by_mass, borders=borders), beyond.gather(1, first[:, 1:])


def _squares(chance: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return chance.square(), chance * moved, moved.square()


def _borders(
    own: Float[Tensor, "classes n"],
    moved: Float[Tensor, "classes n"],
    first: Int[Tensor, "classes bins"],
    last: Int[Tensor, "classes bins"],
) -> Float[Tensor, "3 slots"]:
    """What is below the first sample of each bin, and the gaps of that one and of the last.

    - `first`, `last`: where each bin begins and the next does; where it is empty it says nothing.
    """
    below = torch.nn.functional.pad(own.cumsum(dim=1), (1, 0)).gather(1, first)
    end = own.shape[1] - 1
    least, most = moved.gather(1, first.clamp(max=end)), moved.gather(1, (last - 1).clamp(min=0))
    return torch.stack([below, least, most]).flatten(start_dim=1)


def _of_predicted(predictions: Predictions, shares: Tensor, tempered: Tempered, bins: int) -> _Sums:
    confidence = predictions.confidence
    gap, chance = widened(predictions.correct - confidence, confidence)
    slot = predictions.predicted * bins + assign_bins(confidence, bins=bins, binning="width")
    moved = tempered.gap(chance, torch.arange(len(chance), device=chance.device))
    sparse = shape_of(chance, gap, shares).sparse
    columns = (chance, gap, sparse, moved, *_squares(chance, moved))
    return _Sums.of(slot, predictions.classes * bins, shares, *columns)
