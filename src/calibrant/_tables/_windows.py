"""The largest entries of windows of each row, which are found faster than those of whole rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ._blocks import parts

Asked = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
"""Which rows in, an answer for each out."""

# torch goes through so many numbers together, or half as many, then through what is left of a row
# one by one; and longer rows keep fewer of them on their way from memory. Rows of 1000 take up to
# twice as long as windows of 200. A few that are left do not matter.
_TOGETHER, _LEFT, _LONGEST = 64, 8, 320
# Shorter rows, and longer ones, are read as fast as they come.
_SHORT, _LONG = 256, 4096
# Windows may overlap, since some must end where the row does; by no more than so much in all.
_WORK = 1.1
# No row of chances comes to more, whatever it is off by.
_MOST = 1.02
# Bytes of windows brought together.
_AT_ONCE = 2**21


@dataclass(frozen=True)
class Windows:
    """Windows of a row: how long they are, and how far apart they begin."""

    length: int
    step: int

    def of(self, table: Float[Tensor, "n classes"]) -> Float[Tensor, "n windows length"]:
        """Those of each row, where they lie."""
        return table.unfold(1, self.length, self.step)


@lru_cache(maxsize=8)
def windows_of(columns: int) -> Windows | None:
    """Those whose maxima are found fastest; none where whole rows are as fast.

    >>> windows_of(1000), windows_of(1024)
    (Windows(length=200, step=200), None)
    """
    if not _SHORT < columns < _LONG or columns % _TOGETHER == 0:
        return None
    best, least = None, _WORK * columns
    for length in range(2 * _TOGETHER, min(_LONGEST, columns) + 1):
        if length % _TOGETHER > _LEFT:
            continue
        rest = columns - length
        step = next((step for step in range(length, _TOGETHER, -1) if rest % step == 0), None)
        if step is not None and (work := (rest // step + 1) * length) < least:
            best, least = Windows(length, step), work
    return best


def first_in_windows(
    table: Float[Tensor, "n classes"],
    of_windows: Float[Tensor, "n windows"],
    largest: Float[Tensor, " n"],
    place: Int[Tensor, " n"],
) -> Asked:
    """Of rows whose largest entry is at its place: whether no entry before it is as large.

    - `of_windows`: the maxima of their windows.
    """
    classes = table.shape[1]
    windows = windows_of(classes)
    assert windows is not None
    length, step = windows.length, windows.step
    # One window begins at every number; torch brings those asked for faster than NumPy does.
    begun = table.view(-1).unfold(0, length, 1)
    maxima, most, wanted = of_windows.numpy(), largest.numpy(), place.numpy()
    often = -(-length // step)  # so many windows an entry may be in
    each = np.ones(maxima.shape[1], dtype=maxima.dtype)
    at_once = max(1, _AT_ONCE // (length * table.element_size()))

    def ask(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        at, top, known = wanted[rows], most[rows], maxima.take(rows, axis=0)
        own = np.maximum(0, (at - length) // step + 1)  # the first that has it
        first = np.ones(len(rows), dtype=np.bool_)
        reached = known == top[:, None]
        if np.count_nonzero(reached) > len(rows):
            first = reached.argmax(axis=1) == own
        # Two as large in one window, and what is in the others, must have room in a row.
        unsure = np.flatnonzero(first & (2 * top + (known @ each - top) / often <= _MOST))
        start = own[unsure] * step
        for some in parts(len(unsure), at_once):
            chosen = torch.from_numpy(rows[unsure[some]] * classes + start[some])
            found = begun.index_select(0, chosen).numpy().argmax(axis=1)
            first[unsure[some]] = found == at[unsure[some]] - start[some]
        return first

    return ask
