"""Errors measured class by class, over many resamples."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..measures._binned import Binning, assign_bins, equal_mass
from ..measures._order import Ascending
from ..measures._precision import widened
from ..predictions import Predictions
from ._resampled import AlongRay
from ._shape import SHAPE_BINS, ShapeName, shape_in

# Samples of all classes that are ordered at once, and numbers of their bins held at once.
_SAMPLES, _BIN_TOTALS = 2**18, 2**20
# So many samples are added in single precision, and such sums in double.
_RUN = 2**12

# Where the truth may lie, or the gaps that were observed.
Gaps = ShapeName | Literal["gap"]


@dataclass(frozen=True)
class _Bins:
    """The bins of some classes that hold any sample, class after class.

    - `of`: the bin of each run of samples. `mass`, `gap`: how much each counts in the sample, and
      its sum of gaps. `truth`: the sums of gaps that it may have.
    """

    of: Int[Tensor, " runs"]
    mass: Float[Tensor, " bins"]
    gap: Float[Tensor, " bins"]
    truth: Float[Tensor, "shapes bins"]

    def totals(self, runs: Float[Tensor, "runs draws"]) -> Float[Tensor, "bins draws"]:
        """In every resample, from what the runs come to."""
        return runs.new_zeros(len(self.mass), runs.shape[1]).index_add(0, self.of, runs)


@dataclass(frozen=True)
class _Classes:
    """Some classes, each with its samples in the order of their chances, cut into runs.

    A run is short, and lies in one bin whatever the binning.

    - `source`: the sample at each place, class after class. `gap`: its gap.
    - `starts`: where runs begin. `binned`: the bins of equal width and of equal mass.
    """

    source: Int[Tensor, " places"]
    gap: Float[Tensor, " places"]
    starts: Int[Tensor, " runs"]
    binned: dict[Binning, _Bins]

    def runs(
        self, counts: Float[Tensor, "n draws"]
    ) -> tuple[Float[Tensor, "runs draws"], Float[Tensor, "runs draws"]]:
        """How much each run counts in every resample, and its sum of gaps."""
        of_runs = torch.nn.functional.embedding_bag
        mass = of_runs(self.source, counts, self.starts, mode="sum")
        gap = of_runs(
            self.source,
            counts,
            self.starts,
            mode="sum",
            per_sample_weights=self.gap.to(counts.dtype),
        )
        return mass.double(), gap.double()


@dataclass(frozen=True)
class _Visit:
    """What one visit to all classes found: sums over classes, of gaps or of their squares.

    - `moved`: in every resample, had the truth been each multiple of a shape. `truth`: of the
      shapes themselves.
    """

    moved: dict[Binning, Float[Tensor, "draws shapes scales"]]
    truth: dict[Binning, Float[Tensor, " shapes"]]


@dataclass(frozen=True)
class ClassTables:
    """The classes of some predictions, a few at a time: memory is that of a few columns.

    To order a column takes longer than to add its resamples, so one visit serves every binning.
    """

    predictions: Predictions
    weights: Float[Tensor, " n"]
    bins: int
    _last: list[tuple[Tensor, tuple[Gaps, ...], tuple[float, ...], _Visit]] = field(
        default_factory=list, compare=False
    )

    def visit(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shapes: tuple[Gaps, ...],
    ) -> _Visit:
        """Each class once. The last answer is remembered: two rows ask for the same."""
        asked = (shapes, tuple(scales.tolist()))
        if not self._last or self._last[0][0] is not weights or self._last[0][1:3] != asked:
            self._last[:] = [(weights, *asked, self._visit(weights, scales, shapes))]
        return self._last[0][3]

    def truths(self, shapes: tuple[Gaps, ...]) -> dict[Binning, Float[Tensor, " shapes"]]:
        """Those of the last visit where it asked for the same shapes."""
        if self._last and self._last[0][1] == shapes:
            return self._last[0][3].truth
        own, one = self.weights[None], torch.ones_like(self.weights[:1])
        return self.visit(own, one, shapes).truth

    def _visit(self, weights: Tensor, scales: Tensor, shapes: tuple[Gaps, ...]) -> _Visit:
        size = weights.sum(dim=1)
        counts = weights.to(torch.float32).T.contiguous()
        share = 1 / torch.where(size > 0, size, 1)
        empty = weights.new_zeros(len(weights), len(shapes), len(scales))
        moved: dict[Binning, Tensor] = {"width": empty, "mass": empty.clone()}
        truth: dict[Binning, Tensor] = {
            name: weights.new_zeros(len(shapes)) for name in ("width", "mass")
        }
        for some in self._some(len(weights), shapes):
            mass, gap = (runs * share for runs in some.runs(counts))
            width, equal = some.binned["width"], some.binned["mass"]
            truth["width"] += width.truth.abs().sum(dim=1)
            truth["mass"] += (equal.truth.square() * _inverse(equal.mass)).sum(dim=1)
            noise = width.totals(gap) - width.gap[:, None]
            for k, at in enumerate(width.truth):
                for j, scale in enumerate(scales):
                    moved["width"][:, k, j] += (noise + scale * at[:, None]).abs().sum(dim=0)
            noise, inverse = equal.totals(gap) - equal.gap[:, None], _inverse(equal.totals(mass))
            # Squares along a ray are a parabola.
            still = (noise.square() * inverse).sum(dim=0)[:, None, None]
            across = 2 * ((noise * inverse).T @ equal.truth.T)[:, :, None]
            curve = (inverse.T @ equal.truth.T.square())[:, :, None]
            moved["mass"] += (still + scales * (across + scales * curve)).clamp(min=0)
        return _Visit(moved, truth)

    def _some(self, draws: int, shapes: tuple[Gaps, ...]) -> Iterator[_Classes]:
        n, classes = len(self.predictions), self.predictions.classes
        at_once = min(_SAMPLES // max(n, 1), _BIN_TOTALS // (self.bins * draws))
        for first in range(0, classes, step := max(1, at_once)):
            yield self._classes(first, min(first + step, classes), shapes)

    def _classes(self, first: int, after: int, shapes: tuple[Gaps, ...]) -> _Classes:
        chances = self.predictions.probs[:, first:after].T.contiguous()
        ascending = Ascending.of(chances)
        values, source = ascending.values, ascending.source
        classes = torch.arange(first, after, device=values.device)[:, None]
        outcome = (self.predictions.labels[source] == classes).to(values.dtype)
        gap, wide = widened(outcome - values, values)
        weights = self.weights[source]
        rank = ascending.first_tied
        of_shape = equal_mass(weights, rank, SHAPE_BINS)
        named = shape_in(of_shape, wide, gap, weights)._asdict() | {"gap": gap}
        total = self.weights.sum()
        shares = weights / torch.where(total > 0, total, 1)
        sums = torch.stack([torch.ones_like(gap), gap, *(named[shape] for shape in shapes)])
        cells: dict[Binning, Tensor] = {
            "width": assign_bins(values.reshape(-1), bins=self.bins, binning="width"),
            "mass": equal_mass(weights, rank, self.bins).reshape(-1),
        }
        place = torch.arange(values.numel(), device=values.device) % values.shape[1]
        begins = place % _RUN == 0
        for cell in (*cells.values(), of_shape.reshape(-1)):
            begins[1:] |= cell[1:] != cell[:-1]
        starts = begins.nonzero()[:, 0]
        run_of = begins.cumsum(0) - 1
        of_runs = gap.new_zeros(len(sums), len(starts)).index_add(
            1, run_of, (shares * sums).flatten(1)
        )
        of_class = starts // values.shape[1]
        binned = {
            name: _in_bins(of_class * self.bins + cell[starts], of_runs)
            for name, cell in cells.items()
        }
        return _Classes(source.reshape(-1), gap.reshape(-1), starts, binned)


def _in_bins(cell: Int[Tensor, " runs"], sums: Float[Tensor, "sums runs"]) -> _Bins:
    filled, of = cell.unique_consecutive(return_inverse=True)
    mass, gap, *truth = sums.new_zeros(len(sums), len(filled)).index_add(1, of, sums)
    return _Bins(of, mass, gap, torch.stack(truth))


def _inverse(mass: Tensor) -> Tensor:
    return torch.where(mass > 0, 1 / torch.where(mass > 0, mass, 1), 0)


@dataclass(frozen=True)
class OverClasses(AlongRay):
    """The mean over classes of the l1 error of bins of equal width, or the root of the mean of
    their squared l2 errors in bins of equal mass.

    Sums of resamples are single precision within runs of some thousand samples: a resample is
    right to six digits.
    """

    tables: ClassTables
    binning: Binning
    most: int | None = None

    @property
    def at_once(self) -> int:
        """As many weights as the predictions are numbers: every block is a visit to all classes."""
        return self.tables.predictions.probs.numel()

    @property
    def highest(self) -> float:
        """The gaps of a sample, over all classes, come to two at most, and so do their squares."""
        return self._norm(torch.tensor(2.0, dtype=torch.float64)).item()

    def draw(self, weights: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """The truth that was observed."""
        visit = self.tables.visit(weights, torch.ones_like(weights[0, :1]), ("gap",))
        return self._norm(visit.moved[self.binning][:, 0, 0])

    def moved(
        self,
        weights: Float[Tensor, "draws n"],
        scales: Float[Tensor, " scales"],
        shape: ShapeName = "expected",
    ) -> Float[Tensor, "draws scales"]:
        """One shape, all classes."""
        return self._norm(self.tables.visit(weights, scales, (shape,)).moved[self.binning][:, 0])

    def truth(
        self, scales: Float[Tensor, " scales"], shape: ShapeName = "expected"
    ) -> Float[Tensor, " scales"]:
        """A norm grows with its gaps."""
        return scales * self._norm(self.tables.truths((shape,))[self.binning])

    def rays(
        self, weights: Float[Tensor, "draws n"], scales: Float[Tensor, " scales"]
    ) -> Float[Tensor, "draws rays scales"]:
        """Both in one visit."""
        return self._norm(self.tables.visit(weights, scales, self._both).moved[self.binning])

    def truths(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "rays scales"]:
        """Both in one visit."""
        return self._norm(self.tables.truths(self._both)[self.binning])[:, None] * scales

    @property
    def _both(self) -> tuple[Gaps, Gaps]:
        return "sparse", self.upper

    def _norm(self, total: Tensor) -> Tensor:
        mean = total / self.tables.predictions.classes
        return mean if self.binning == "width" else mean.sqrt()
