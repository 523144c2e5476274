"""Predictions of two classes of which the chance of the second is known."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._checks import HALF, check_chances, check_labels, check_table, check_weights
from .._tables import (
    PART,
    WORTH_IT,
    Events,
    Part,
    as_floats,
    blocks_of,
    in_numpy,
    unrecorded,
    vector_of,
)
from ._of_probabilities import OfProbabilities
from ._predictions import Predictions
from ._rows import log_of

# Some columns of this length stay in the cache together, and torch goes through one by itself: to
# wake its threads takes longer, and much longer where cores are busy.
_PART = 3 * 2**13


class OfChances(OfProbabilities):
    """The same as of a table of two columns, which is made only when something asks for it.

    Every statistic is what the table's would be, to the last bit, and logarithms and squares to
    some units of it: rows of two numbers are slow to go through, and columns are not.
    """

    _parts = ("labels", "weights", "labels_per_sample", "_derived", "_given")
    _given: Tensor

    def __init__(self, given: Tensor, labels: Tensor, weights: Tensor | None) -> None:
        given = check_chances(given)
        columns = given[:, None].expand(-1, 2)
        check_table("probabilities", columns)
        check_labels(labels, columns)
        check_weights(weights, columns)
        parts: dict[str, Any] = {
            "_given": given,
            "labels": labels.long(),
            "weights": weights,
            "labels_per_sample": None,
            "_derived": {},
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @property
    def classes(self) -> int:
        return 2

    @property
    def dtype(self) -> torch.dtype:
        return torch.promote_types(self._given.dtype, torch.float32)

    @property
    def probs(self) -> Tensor:
        return self._read("probs", lambda: torch.stack([self._other, self._chance], dim=1))

    def probs_in_blocks(self) -> Iterator[tuple[slice, Tensor]] | None:
        """Of the table, where it is worth its while."""
        small = 2 * len(self) < WORTH_IT
        return None if small or not unrecorded(self._chance) else blocks_of(self.probs)

    @property
    def predicted(self) -> Tensor:
        return self._read("predicted", lambda: (self._chance > self._other).long())

    @property
    def confidence(self) -> Tensor:
        return self._read("confidence", self._larger)

    @property
    def correct(self) -> Tensor:
        return self._read(
            "correct",
            lambda: ((self._chance > self._other) == (self.labels == 1)).to(self.dtype),
        )

    @property
    def true_prob(self) -> Tensor:
        return self._read("true_prob", lambda: self._of_class(self.labels))

    @property
    def true_log_prob(self) -> Tensor:
        # Without a column of probabilities that nobody asked for.
        in_place = unrecorded(self._given)
        return self._read(
            "true_log_prob", lambda: log_of(self._of_class(self.labels), in_place=in_place)
        )

    @property
    def mean_log_prob(self) -> Tensor:
        return self._read("mean_log_prob", lambda: (log_of(self._other) + log_of(self._chance)) / 2)

    @property
    def sum_of_squares(self) -> Tensor:
        return self._read("sum_of_squares", lambda: self._other.square() + self._chance.square())

    @property
    def squared_error(self) -> Tensor:
        """Both classes are off by as much."""
        happened = as_floats(self.labels, self.dtype)
        if not in_numpy(self._given, happened):
            return 2 * (happened - self._chance).square()
        error = happened.numpy()
        error -= self._given.numpy(force=True)
        error *= error
        error += error
        return happened

    @property
    def entropy(self) -> Tensor:
        return self._read("entropy", lambda: _share(self._other) + _share(self._chance))

    @property
    def events(self) -> Events | None:
        """Where only values are asked of plain memory."""
        labels, weights = vector_of(self.labels), self.weights
        counts = None if weights is None else vector_of(weights)
        if not in_numpy(self._given) or labels is None or (counts is None) != (weights is None):
            return None
        check_weights(weights, self._given[:, None])  # which may be others than were given
        chances = self._given.numpy(force=True)
        room = np.empty(PART, chances.dtype)

        def read(part: slice) -> Part:
            chance, own = chances[part], None if counts is None else counts[part].astype(np.float64)
            other = np.subtract(1, chance, out=room[: len(chance)])
            right = (chance > other) == (labels[part] == 1)
            return Part(np.maximum(chance, other, out=other), right, own, inside=True)

        return Events(read, len(self), dtype=self.dtype, weighted=counts is not None)

    def mean_of(
        self,
        per_sample: Callable[[Predictions], Tensor],
        *,
        row_by_row: bool = False,
        share: bool = False,
    ) -> Tensor:
        """The same, of long columns part by part, where only values are asked."""
        n = len(self)
        short = not row_by_row or self.weights is not None or n <= _PART
        if short or not unrecorded(self._given):
            return super().mean_of(per_sample, share=share)
        total = sum(_sum(per_sample(some)) for some in self._in_parts())
        dtype = torch.float64 if share else self.dtype
        return torch.tensor(total / n, dtype=dtype, device=self._given.device)

    def _in_parts(self) -> Iterator[Predictions]:
        """Some samples after others, each to be left when the next are asked for."""
        if self._derived or not (in_numpy(self._given) and unrecorded(self.labels)):
            parts = (slice(start, start + _PART) for start in range(0, len(self), _PART))
            return (self._some(part, None) for part in parts)
        from ._stretches import stretches  # imported here, since they are of chances themselves

        return stretches(self._given.detach(), self.labels, _PART)

    @property
    def _chance(self) -> Tensor:
        return self._given.to(self.dtype)

    @property
    def _other(self) -> Tensor:
        return self._read("other", lambda: (1 - self._given).to(self.dtype))

    def _larger(self) -> Tensor:
        if self._chance.requires_grad:
            # Of two that are equal the first is the prediction, and has the whole gradient.
            return self._of_class(self.predicted)
        return torch.maximum(self._chance, self._other)

    def _of_class(self, index: Tensor) -> Tensor:
        if not unrecorded(self._given):
            return torch.where(index == 1, self._chance, self._other)
        # How far the chance is from what it would be were the other class sure, which is exact:
        # torch chooses number by number.
        away = as_floats(index, self._given.dtype).sub_(1).add_(self._given.detach())
        return away.abs_().to(self.dtype)


def _sum(values: Tensor) -> float:
    """In double precision, by NumPy, since torch would make a copy for it.

    A number: between large temporaries a tensor would keep their room from being reused.
    """
    wide = values.float() if values.dtype in HALF else values
    return float(np.add.reduce(wide.numpy(force=True), dtype=np.float64))


def _share(probs: Tensor) -> Tensor:
    """What a class adds to the entropy; one that is ruled out adds nothing."""
    return probs * torch.where(probs > 0, -log_of(probs), 0)
