"""Where bins of equal mass meet, found by counting, in room that does not grow with the events.

What is in a cell of confidence in which no bins meet is in one bin, in whatever order. The other
cells are windows. They are cut into cells of their own until few events are left in them.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .._tables import Events
from ._mass_cells import SOME, BitsCells, Cells, Places, Vector, bits_of

# So many events are sorted in less time than another look at all of them takes.
_FEW = 2**15


class Windows:
    """Intervals of confidence in which bins meet, from the lowest on.

    - `ranks`: the lowest rank of each bin, and the end of the last.
    - `cells`: of all events. `limits`: the bits of the least and of the largest confidence.
    - `first`: the rank of the lowest event of each window. `count`: how many events it holds.

    Each round of cells has a table of states: the bin of a cell or, counted on from the last bin,
    the window that it is in the next round.
    """

    def __init__(self, events: Events, ranks: Places, cells: Cells, limits: Vector) -> None:
        self._events, self._ranks, self._bins = events, ranks, len(ranks) - 1
        self._rounds: list[tuple[Cells, NDArray[np.int16]]] = []
        self.first = np.zeros(1, np.int64)
        self._cut(cells)
        while self._are_many:
            low, high = self._limits(limits)
            if self._are_many:
                self._cut(BitsCells(low, high))

    @property
    def _are_many(self) -> bool:
        return bool(self.count.sum() > _FEW)

    def state_of(self, confidence: Vector) -> NDArray[np.int16]:
        """The bin of each event or, counted on from the last bin, its window."""
        cells, states = self._rounds[0]
        found = states.take(cells.cell_of(confidence, 0))
        for cells, states in self._rounds[1:]:
            inside, window = self._inside(found)
            found[inside] = states.take(cells.cell_of(confidence[inside], window))
        return found

    def lower_than(self, ranks: Places) -> Places:
        """How many events in windows have a rank below each of these."""
        window = np.searchsorted(self.first, ranks, side="right")
        up_to = np.concatenate([[0], np.cumsum(self.count)])
        end = np.concatenate([[0], self.first + self.count])
        lower: Places = up_to[window] - np.maximum(end[window] - ranks, 0)
        return lower

    def _cut(self, cells: Cells) -> None:
        """Put each cell into the bin of its lowest event; windows are those in which bins meet."""
        counts: Places = np.zeros(cells.shape[0] * cells.shape[1], np.int64)
        for confidence, window in self._left():
            np.add.at(counts, cells.cell_of(confidence, window), 1)
        behind = np.cumsum(counts.reshape(cells.shape), axis=1)
        behind += self.first[:, None]
        first: Places = behind.ravel()
        first -= counts
        inner = self._ranks[1:-1]
        starts = np.searchsorted(first, inner)
        sizes = np.diff(starts, prepend=0, append=len(first))
        self._rounds.append((cells, np.repeat(np.arange(self._bins, dtype=np.int16), sizes)))
        own = np.searchsorted(first, inner, side="right") - 1
        own = own[(first[own] < inner) & (inner < first[own] + counts[own])]
        meet = own[np.diff(own, prepend=-1) > 0]
        self._open(meet, first[meet], counts[meet])

    def _limits(self, whole: Vector) -> tuple[Vector, Vector]:
        """Bits of the least and the largest confidence of each window, of which `whole` are all.

        One whose events are all tied is none any longer: they are where the lowest of them is.
        """
        n = len(self.first)
        # What is in a bin is within limits.
        low = np.repeat(whole, [self._bins, n])
        high = np.repeat(whole[::-1], [self._bins, n])
        for part in self._events.by(SOME):
            bits, state = bits_of(part.confidence), self.state_of(part.confidence)
            beyond = np.flatnonzero((bits < low.take(state)) | (bits > high.take(state)))
            np.minimum.at(low, state[beyond], bits[beyond])
            np.maximum.at(high, state[beyond], bits[beyond])
        low, high = low[self._bins :], high[self._bins :]
        several = low < high
        cells, first = self._cells[~several], self.first[~several]
        self._rounds[-1][1][cells] = np.searchsorted(self._ranks[1:], first, side="right")
        self._open(self._cells[several], self.first[several], self.count[several])
        return low[several], high[several]

    def _open(self, cells: Places, first: Places, count: Places) -> None:
        self._cells, self.first, self.count = cells, first, count
        self._rounds[-1][1][cells] = self._bins + np.arange(len(cells))

    def _left(self) -> Iterator[tuple[Vector, Places | int]]:
        """Of some events after others those in windows, and in which; all are in one at first."""
        for part in self._events.by(SOME):
            if self._rounds:
                inside, window = self._inside(self.state_of(part.confidence))
                yield part.confidence[inside], window
            else:
                yield part.confidence, 0

    def _inside(self, state: NDArray[np.int16]) -> tuple[Places, Places]:
        inside = np.flatnonzero(state >= self._bins)
        return inside, state[inside].astype(np.int64) - self._bins
