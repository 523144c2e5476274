"""Errors measured class by class, had the labels been others."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..measures._binned import assign_bins
from ..measures._precision import widened
from ..predictions import Predictions
from ._chance_blocks import row_blocks
from ._class_cells import TEMPERED, Cells, ClassTables, Cut
from ._interval import middle
from ._resampled import OnRays
from ._thinned import thinned
from ._weights import in_shares

# Numbers of cells held at once, over draws.
_AT_ONCE = 2**21
# What is drawn in a few seconds: labels, and counts of cells for each place of a ray.
_LABELS, _COUNTS = 2**24, 2**21
# What rounding may take off a value that every draw has.
_ROUNDED = 1e-9
# Below this the ends of an interval are guesses.
_FEWEST = 100

CUTS: tuple[Cut, ...] = ("width", "mass", "predicted")
Totals = dict[Cut, Float[Tensor, "draws shapes scales"]]


@dataclass(frozen=True)
class LabelDraws:
    """Labels drawn anew from the predicted chances, and from others that the truth may have.

    With many classes most bins hold a handful of samples, or expect a handful of events. Resampled
    rows scatter too little there: an event that did not happen never happens. Labels drawn from
    the chances scatter as those of a calibrated model do, dependent as labels are. Under another
    truth each cell keeps as many of its hits, or of its misses, as that truth would leave.
    """

    predictions: Predictions
    weights: Float[Tensor, " n"]
    bins: int
    _found: dict[tuple[int, int, tuple[float, ...]], Totals] = field(
        default_factory=dict, compare=False
    )

    @cached_property
    def tables(self) -> ClassTables:
        """The bins of all classes."""
        return ClassTables.of(self.predictions, self.weights, self.bins)

    def cells(self, cut: Cut) -> Cells:
        """Those of one kind."""
        return self.tables.by_cut[cut].cells

    @property
    def most(self) -> int:
        """No more draws than this."""
        cells = sum(len(self.cells(cut).mass) for cut in CUTS)
        labels = _LABELS // max(len(self.predictions), 1)
        return max(_FEWEST, min(labels, _COUNTS // max(cells, 1)))

    def totals(self, draws: int, seed: int, scales: Float[Tensor, " scales"]) -> Totals:
        """Over bins, had the truth been each multiple of each shape; once for all rows.

        Sizes of gaps, or squares in bins of equal mass.
        """
        asked = (draws, seed, tuple(scales.tolist()))
        if asked not in self._found:
            rng = torch.Generator(self.weights.device).manual_seed(seed)
            parts = list(self._parts(draws, rng, scales))
            self._found[asked] = {cut: torch.cat([part[cut] for part in parts]) for cut in CUTS}
        return self._found[asked]

    def _parts(self, draws: int, rng: torch.Generator, scales: Tensor) -> Iterator[Totals]:
        step = max(1, _AT_ONCE // max(1, *(len(self.cells(cut).mass) for cut in CUTS)))
        for done in range(0, draws, step):
            shares = self._happened(min(step, draws - done), rng)
            yield {cut: along(cut, self.cells(cut), shares[cut], scales, rng) for cut in CUTS}

    def _happened(self, draws: int, rng: torch.Generator) -> dict[Cut, Tensor]:
        """How much of the whole happens in each cell when labels are drawn from the chances."""
        own = in_shares(self.weights)
        found: dict[Cut, Tensor] = {
            cut: own.new_zeros(draws * len(self.cells(cut).mass)) for cut in CUTS
        }
        draw = torch.arange(draws, device=own.device)
        sure = assign_bins(self.predictions.confidence, bins=self.bins, binning="width")
        for rows in row_blocks(self.predictions, draws):
            probs = self.predictions.probs[rows]
            labels = _drawn(probs, draws, rng)
            width, mass = self._bins_of(probs, labels)
            predicted = self.predictions.predicted[rows, None].expand_as(labels)
            share = own[rows, None].expand_as(labels)
            judged: dict[Cut, tuple[Tensor, Tensor, Tensor]] = {
                "width": (labels, width, share),
                "mass": (labels, mass, share),
                "predicted": (predicted, sure[rows, None], share * (labels == predicted)),
            }
            for cut, (of, bin_of, happened) in judged.items():
                table = self.tables.by_cut[cut]
                cell = draw * len(table.cells.mass) + table.place[of * self.bins + bin_of]
                found[cut].index_add_(0, cell.reshape(-1), happened.reshape(-1))
        return {cut: shares.reshape(draws, -1) for cut, shares in found.items()}

    def _bins_of(
        self, probs: Float[Tensor, "n classes"], labels: Int[Tensor, "n draws"]
    ) -> tuple[Int[Tensor, "n draws"], Int[Tensor, "n draws"]]:
        """Bins of equal width and of equal mass, of the chance that each label had.

        Found for every class where those are fewer than the labels, and then looked up.
        """
        few = probs.shape[1] < labels.shape[1]
        of = torch.arange(probs.shape[1], device=probs.device).expand_as(probs) if few else labels
        chance = probs if few else probs.gather(1, labels)
        width = assign_bins(chance.reshape(-1), bins=self.bins, binning="width")
        found = width.reshape(chance.shape), _reached(chance, self.tables.first, of)
        return (found[0].gather(1, labels), found[1].gather(1, labels)) if few else found


def _drawn(
    probs: Float[Tensor, "n classes"], draws: int, rng: torch.Generator
) -> Int[Tensor, "n draws"]:
    """Labels of every row, each class as often as it is likely."""
    (wide,) = widened(probs)
    below = wide.cumsum(dim=1)
    point = torch.rand(len(probs), draws, generator=rng, dtype=wide.dtype, device=wide.device)
    found = torch.searchsorted(below, point * below[:, -1:], right=True)
    return found.clamp(max=probs.shape[1] - 1)


def _reached(chance: Tensor, first: Float[Tensor, "classes inner"], labels: Tensor) -> Tensor:
    """The bin of equal mass of each chance: how many of them begin at it or below."""
    bin_of = torch.zeros_like(labels)
    for begin in first.T.contiguous():
        bin_of += chance >= begin[labels]
    return bin_of


def along(
    cut: Cut,
    cells: Cells,
    happened: Float[Tensor, "draws cells"],
    scales: Float[Tensor, " scales"],
    rng: torch.Generator,
) -> Float[Tensor, "draws shapes scales"]:
    """The sum over cells, had the truth been each multiple of each shape."""
    share = happened / torch.where(cells.mass > 0, cells.mass, 1)
    hits = (cells.count * share).round().minimum(cells.count)
    rays = [
        _sum(cut, cells.mass, rate - cells.chance)
        for shape in range(len(cells.truth))
        for rate in _rates(cells, shape, hits, scales, rng)
    ]
    return torch.stack(rays, dim=1).reshape(len(hits), len(cells.truth), len(scales))


def _rates(
    cells: Cells, shape: int, hits: Tensor, scales: Tensor, rng: torch.Generator
) -> Iterator[Float[Tensor, "draws cells"]]:
    """How often it happens, with what thinning leaves out of the noise of tempered chances."""
    truth = cells.truth[shape]
    rates = thinned(hits, cells.count, cells.chance, truth, scales, rng)
    for scale, rate in zip(scales, rates, strict=True):
        if shape == TEMPERED:
            error = (cells.beyond_thinned(scale) / cells.count).sqrt()
            more = torch.randn(rate.shape, generator=rng, dtype=rate.dtype, device=rate.device)
            yield rate + error * more
        else:
            yield rate


def _sum(cut: Cut, mass: Tensor, gap: Float[Tensor, "*many cells"]) -> Float[Tensor, "*many"]:
    return (gap.square() if cut == "mass" else gap.abs()) @ mass


@dataclass(frozen=True)
class OverClasses(OnRays):
    """The mean over classes of the l1 error of bins of equal width, the root of the mean of their
    squared l2 errors in bins of equal mass, or the sum over predicted classes.
    """

    labels: LabelDraws
    cut: Cut

    @property
    def most(self) -> int:  # type: ignore[override]
        """As many as labels can be drawn."""
        return self.labels.most

    @property
    def highest(self) -> float:
        """The gaps of a sample come to two at most over all classes, and so do their squares."""
        gaps = 1.0 if self.cut == "predicted" else 2.0
        return self._norm(torch.tensor(gaps, dtype=torch.float64)).item()

    def rays(
        self, draws: int, seed: int, scales: Float[Tensor, " scales"]
    ) -> Float[Tensor, "draws rays scales"]:
        """One set of labels for all rows."""
        return self._norm(self.labels.totals(draws, seed, scales)[self.cut])

    def truths(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "rays scales"]:
        """Without noise, neither of labels nor of which samples are in a cell."""
        cells = self.labels.cells(self.cut)
        moved = (cells.chance + scales[:, None] * cells.truth[:, None]).clamp(0, 1)
        square = (moved - cells.chance).square() - scales.square()[:, None] * cells.luck[:, None]
        return self._norm(_sum(self.cut, cells.mass, square.clamp(min=0).sqrt()))

    def telling(
        self, value: float, rays: Float[Tensor, "draws rays scales"], level: float
    ) -> range:
        """The sparse ray, and the tempered one where it comes near the value.

        Chances of zero and one have no temperature, which makes no answer a calibrated one.
        """
        _, most = middle(rays[:, 1], level)
        near = bool((most >= value * (1 - _ROUNDED)).any())
        return range(2 if near else 1)

    def _norm(self, total: Tensor) -> Tensor:
        mean = total if self.cut == "predicted" else total / self.labels.predictions.classes
        return mean.sqrt() if self.cut == "mass" else mean
