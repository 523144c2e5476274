"""Rows of bins along rays of truths: outcomes are drawn anew, samples stay as they are."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..measures._binned import bin_mean
from ._bin_totals import Binned, Totals
from ._resampled import AlongRay
from ._thinned import thinned


class OfBins(AlongRay):
    """A statistic of the gaps of bins, whose rays begin with coins.

    Where a bin has a sample or two, resampled rows scatter too little. So outcomes are drawn
    from the confidences, the very law of a calibrated model; and under another truth each bin
    keeps as many of its hits, or of its misses, as that truth would leave.
    """

    lower: ClassVar[int] = 2

    @abstractmethod
    def fixed_bins(self) -> Binned:
        """The bins of the sample."""

    @abstractmethod
    def of_totals(self, totals: Totals) -> Float[Tensor, " draws"]:
        """The measure of what bins hold."""

    def of_true_totals(self, totals: Totals) -> Float[Tensor, " draws"]:
        """The same of a truth, which has no noise."""
        return self.of_totals(totals)

    def of_gaps(self, gaps: Float[Tensor, "draws n"]) -> Float[Tensor, " draws"]:
        """By totals of bins."""
        return self.of_totals(self.fixed_bins().of_gaps(gaps))

    def drawn(self, gaps: Float[Tensor, "draws n"]) -> Float[Tensor, "draws bins"]:
        """What is kept of outcomes drawn anew: the sum of their gaps in each bin."""
        return self.fixed_bins().of_gaps(gaps).gap

    def along(
        self, drawn: Float[Tensor, "draws bins"], scales: Float[Tensor, " scales"], seed: int
    ) -> Float[Tensor, "draws rays scales"]:
        """Coins as they are, then what other truths would leave of them.

        A bin has as many samples as its weights amount to.
        """
        bins = self.fixed_bins()
        mass, chance, count = bins.own.mass, bins.chance, bins.count
        rng = torch.Generator(drawn.device).manual_seed(seed)
        hits = (count * (chance + bin_mean(drawn, mass))).round().clamp(min=0).minimum(count)
        calibrated = self._measured(self.of_totals, drawn)
        rays = []
        for truth in self._gaps():
            rates = thinned(hits, count, chance, truth, scales[1:], rng)
            moved = (self._measured(self.of_totals, mass * (rate - chance)) for rate in rates)
            rays.append(torch.stack([calibrated, *moved], dim=1))
        return torch.stack(rays, dim=1)

    def truths(self, scales: Float[Tensor, " scales"]) -> Float[Tensor, "rays scales"]:
        """Chances end at zero and one."""
        mass, chance = self.fixed_bins().own.mass, self.fixed_bins().chance
        rays = [
            mass * ((chance + scales[:, None] * truth).clamp(0, 1) - chance)
            for truth in self._gaps()
        ]
        return torch.stack([self._measured(self.of_true_totals, gap) for gap in rays])

    def _measured(
        self, measure: Callable[[Totals], Tensor], gap: Float[Tensor, "draws bins"]
    ) -> Float[Tensor, " draws"]:
        """Of bins that have these sums of gaps."""
        bins = self.fixed_bins()
        hits = bins.own.mass * bins.chance + gap
        return measure(replace(bins.own, gap=gap, hits=hits))

    def _gaps(self) -> Float[Tensor, "rays bins"]:
        """Sparse as they are, and even to the side where there is room."""
        bins, shape = self.fixed_bins(), self.events.shape
        sparse, even = (
            bin_mean(bins.own.of_sample(x), bins.own.mass)[0]
            for x in (shape.sparse, shape.even.abs())
        )
        return torch.stack([sparse, torch.where(bins.chance < 0.5, even, -even)])
