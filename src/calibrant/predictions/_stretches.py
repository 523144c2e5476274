"""Long columns of chances, some samples after others, whose statistics take the same room."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike
from torch import Tensor

from .._tables import Vector
from ._of_chances import OfChances
from ._rows import log_of_numbers


class Stretch(OfChances):
    """Some samples of many, which NumPy can read and which were looked at before.

    The statistics that losses ask for most lie where those of the samples before them lay.
    """

    _room: dict[str, Vector]

    def __init__(self, given: Tensor, labels: Tensor, room: dict[str, Vector]) -> None:
        parts: dict[str, Any] = {
            "_given": given,
            "labels": labels,
            "weights": None,
            "labels_per_sample": None,
            "_derived": {},
            "_room": room,
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @property
    def true_prob(self) -> Tensor:
        return self._read("true_prob", lambda: torch.from_numpy(self._of_truth("true_prob")))

    @property
    def true_log_prob(self) -> Tensor:
        return self._read("true_log_prob", self._log_of_truth)

    @property
    def squared_error(self) -> Tensor:
        """Both classes are off by as much."""
        error = self._away_from(1, "squared_error")
        error *= error
        error += error
        return torch.from_numpy(error)

    def _log_of_truth(self) -> Tensor:
        truth = self._of_truth("true_log_prob")
        return torch.from_numpy(log_of_numbers(truth, out=truth))

    def _of_truth(self, name: str) -> Vector:
        """How far the chance is from what it would be were the other class sure, which is exact."""
        away = self._away_from(0, name)
        return np.abs(away, out=away)

    def _away_from(self, label: int, name: str) -> Vector:
        """Whether a sample has this label, less its chance, in the room of a statistic."""
        chance = self._given.numpy()
        away = self._room_of(name, chance.dtype)
        np.copyto(away, np.equal(self.labels.numpy(), label, out=self._room_of("is", np.bool_)))
        away -= chance
        return away

    def _room_of(self, name: str, dtype: DTypeLike) -> Vector:
        if name not in self._room:
            self._room[name] = np.empty(len(self), dtype)
        return self._room[name][: len(self)]


def stretches(given: Tensor, labels: Tensor, size: int) -> Iterator[Stretch]:
    """So many samples after others; what is read off some is overwritten by the next."""
    room: dict[str, Vector] = {}
    for chances, truths in zip(given.split(size), labels.split(size), strict=True):
        yield Stretch(chances, truths, room)
