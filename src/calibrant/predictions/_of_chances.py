"""Predictions of two classes of which the chance of the second is known."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from .._checks import check_chances, check_labels, check_table, check_weights
from .._tables import WORTH_IT, blocks_of, unrecorded
from ._of_probabilities import OfProbabilities
from ._rows import log_of


class OfChances(OfProbabilities):
    """The same as of a table of two columns, which is made only when something asks for it.

    Every statistic is what the table's would be, to the last bit: rows of two numbers are slow to
    go through, and columns are not.
    """

    _parts = ("labels", "weights", "labels_per_sample", "_derived", "_chance", "_other")
    _chance: Tensor
    _other: Tensor

    def __init__(self, given: Tensor, labels: Tensor, weights: Tensor | None) -> None:
        check_chances(given)
        columns = given[:, None].expand(-1, 2)
        check_table("probabilities", columns)
        check_labels(labels, columns)
        check_weights(weights, columns)
        wide = torch.promote_types(given.dtype, torch.float32)
        parts: dict[str, Any] = {
            "_chance": given.to(wide),
            "_other": (1 - given).to(wide),
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
        return self._chance.dtype

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
    def mean_log_prob(self) -> Tensor:
        return self._read("mean_log_prob", lambda: (log_of(self._other) + log_of(self._chance)) / 2)

    @property
    def sum_of_squares(self) -> Tensor:
        return self._read("sum_of_squares", lambda: self._other.square() + self._chance.square())

    @property
    def entropy(self) -> Tensor:
        return self._read("entropy", lambda: _share(self._other) + _share(self._chance))

    def _larger(self) -> Tensor:
        if self._chance.requires_grad:
            # Of two that are equal the first is the prediction, and has the whole gradient.
            return self._of_class(self.predicted)
        return torch.maximum(self._chance, self._other)

    def _of_class(self, index: Tensor) -> Tensor:
        return torch.where(index == 1, self._chance, self._other)


def _share(probs: Tensor) -> Tensor:
    """What a class adds to the entropy; one that is ruled out adds nothing."""
    return probs * torch.where(probs > 0, -log_of(probs), 0)
