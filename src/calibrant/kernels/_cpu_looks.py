"""What is seen of logits on the CPU, some rows at a time, forward and backward."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from .._tables._blocks import blocks
from ._cpu_blocks import WRITE, Rooms, ranks, write_gradient, write_probs
from ._places import entry
from ._slopes import Slopes, slopes_of
from ._table import arithmetic

# Caches that a block fills: every operator takes its time to begin, and much more where threads
# are brought together at its end. Two megabytes, and 32 for all threads.
_ALONE, _TOGETHER = 4, 64

# What is asked for together: by most objectives, and by some.
_OFTEN = frozenset({"true_prob", "confidence"})
_RARELY = frozenset({"entropy", "sum_of_squares"})


class Looks:
    """Logits, and what was asked of their rows so far: each statistic is found when it is.

    Their probabilities are found once, and wait in the room of the gradient that is to come, so
    that they take no memory of their own. Where they cannot they are found again at each look, and
    what is likely to be asked for next is found on the way.

    - `keeps`: whether there will be such a room. Narrow numbers would lose digits in it, and in
      another layout rows do not lie together.
    """

    def __init__(self, logits: Tensor, labels: Tensor, *, keeps: bool) -> None:
        self.logits, self.labels = logits.detach(), labels
        self.dtype = arithmetic(logits.dtype)
        self.found: dict[str, Tensor] = {}
        self._versions: dict[str, int] = {}
        self.temperature: float | None = None  # of a soft rank
        self._keeps = keeps and logits.dtype == self.dtype and logits.is_contiguous()
        self._probs: Tensor | None = None
        self._version = logits._version

    def find(self, name: str) -> Tensor:
        """A statistic of each row, by the name of its property."""
        if name not in self.found:
            if self.logits._version != self._version:
                raise RuntimeError(
                    f"logits must stay as they are until every statistic is found; {name} is asked "
                    "for after they were modified by an inplace operation. Ask for it before, or "
                    "make new Predictions."
                )
            if name == "true_log_prob":
                self._keep(name, self._logarithm(self.find("true_prob")))
            elif name == "correct":
                self._keep(name, (self.find("predicted") == self.labels).to(self.dtype))
            else:
                self._look_for("confidence" if name == "predicted" else name)
        return self.found[name]

    def ranks(self, temperature: float) -> Tensor:
        """The soft rank of the true class of each row."""
        self.temperature = temperature
        found, rooms = self._column(), Rooms()
        for rows, _, p in self._blocks(rooms):
            found[rows] = ranks(p, self.labels[rows], temperature, rooms)
        return found

    def gradient(
        self, given: Mapping[str, Tensor], by_rank: Tensor | None, *, in_place: bool
    ) -> Tensor:
        """That of the logits, from those of what was found.

        - `by_rank`: the gradient of the soft rank.
        - `in_place`: whether to write it over the logits.
        """
        for name, column in self.found.items():
            if column._version != self._versions[name]:
                raise RuntimeError(
                    f"{name} is needed for the gradient, and was modified by an inplace operation. "
                    "Modify a clone of it."
                )
        slopes = Slopes(self._column().zero_())
        if given:
            slopes = slopes_of(self.found, given, self.labels, self.logits.shape[1])
        target = self.logits if in_place else self._probs
        if target is None:
            target = torch.empty_like(self.logits)
        known, rooms = self._probs is not None, Rooms()
        for rows, z, p in self._blocks(rooms):
            some = {name: each[rows] for name, each in self.found.items()}
            rank = None
            if by_rank is not None and self.temperature is not None:
                rank = by_rank[rows], self.temperature
            into = p if known else target[rows]
            write_gradient(into, z, p, self.labels[rows], some, slopes.of(rows), rank, rooms)
        # Whose room it was has it now.
        self._probs, self._keeps = None, False
        return target

    def _keep(self, name: str, column: Tensor) -> None:
        self._versions[name] = column._version
        self.found[name] = column

    def _look_for(self, name: str) -> None:
        names = {name}
        if not self._keeps:
            names |= _OFTEN | _RARELY if name in _RARELY else _OFTEN
        new = [each for each in WRITE if each in names and each not in self.found]
        columns = self.found | {each: self._column() for each in new}
        if "confidence" in new:
            columns["predicted"] = torch.empty_like(self.labels)
        rooms = Rooms()
        for rows, z, p in self._blocks(rooms):
            some = {each: column[rows] for each, column in columns.items()}
            for each in new:
                WRITE[each](some, z, p, self.labels[rows], rooms)
        # Now that they are whole: another thread may ask for them, and this one be interrupted.
        for each in columns.keys() - self.found.keys():
            self._keep(each, columns[each])

    def _blocks(self, rooms: Rooms) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Some rows after others, each in one piece: equal rows are then added up alike."""
        probs, known = self._probs, self._probs is not None
        if self._keeps and not known:
            probs = torch.empty_like(self.logits)
        for rows in blocks(self.logits, _ALONE if torch.get_num_threads() == 1 else _TOGETHER):
            z = self.logits[rows].to(self.dtype).contiguous()
            p = rooms.of("p", z) if probs is None else probs[rows]
            yield rows, z, p if known else write_probs(p, z)
        self._probs = probs

    def _logarithm(self, true_prob: Tensor) -> Tensor:
        """Found from the logits where a probability is so small that it has lost digits."""
        found = true_prob.log()
        numbers = torch.finfo(self.dtype)
        small = (true_prob < numbers.tiny / numbers.eps).nonzero()[:, 0]
        for part in blocks(self.logits[: len(small)]):
            some = small[part]
            log_p = self.logits[some].to(self.dtype).log_softmax(dim=1)
            found[some] = entry(log_p, self.labels[some])
        return found

    def _column(self) -> Tensor:
        return torch.empty(len(self.logits), dtype=self.dtype)
