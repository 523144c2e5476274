"""A summary of each group, from rows of all of them in any order."""

from dataclasses import replace

import numpy as np
import torch

from ..evaluation import Summary
from ._batch import Batch, joined

# Groups of which a summary each is kept.
_MOST_GROUPS = 1000
# Fewer numbers than these cost a summary as much as these do, half a millisecond.
_DECENT = 2**13


class Grouped:
    """Summaries by the names of groups.

    Rows wait until those of a group are enough on average, so that many groups take hardly longer
    than one; what waits takes less memory than the summaries.

    - `classes`, `bins`: of every summary. `most`: numbers that are added at once.
    - `where`: what a sentence calls the column of names.
    """

    def __init__(self, classes: int | None, bins: int, most: int, where: str) -> None:
        self.classes, self.bins, self.most, self.where = classes, bins, most, where
        self._place: dict[str, int] = {}
        self._summaries: list[Summary] = []
        self._waiting: list[Batch] = []
        self._numbers = 0

    def add(self, batch: Batch) -> None:
        """Rows of a log that knows their groups."""
        assert batch.groups is not None
        names = batch.groups.tolist()
        self._know(sorted(set(names)))
        places = np.fromiter((self._place[name] for name in names), np.int16, len(names))
        # Numbers take less room than names, and are sorted sooner.
        self._waiting.append(replace(batch, groups=places))
        self._numbers += batch.forecast.numel()
        if self._numbers >= _DECENT * len(self._place):
            self._count()

    def summaries(self) -> dict[str, Summary]:
        """What has been added, by the name of the group, in the order of the names."""
        self._count()
        return {name: self._summaries[self._place[name]] for name in sorted(self._place)}

    def _know(self, names: list[str]) -> None:
        for name in names:
            if name in self._place:
                continue
            if len(self._place) == _MOST_GROUPS:
                raise ValueError(
                    f"{self.where} must name at most {_MOST_GROUPS:,} groups; got more. Choose a "
                    "coarser grouping."
                )
            self._place[name] = len(self._summaries)
            self._summaries.append(Summary(self.classes, bins=self.bins))

    def _count(self) -> None:
        """Every row that waits goes to its summary: rows of a group in the order they came."""
        if not self._waiting:
            return
        batch = joined(self._waiting)
        self._waiting, self._numbers = [], 0
        assert batch.groups is not None
        order, counts = batch.groups.argsort(kind="stable"), np.bincount(batch.groups)
        rows = max(1, self.most // (self.classes or 1))
        each = np.split(order, counts.cumsum()[:-1])
        for summary, own in zip(self._summaries, each, strict=False):  # the last may have none
            for some in torch.from_numpy(own).split(rows):
                if len(some):
                    batch.part(some).add_to(summary)
