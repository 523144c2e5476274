"""Where the largest entry of each row of a table is, the first of tied ones."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from . import _blocks
from ._blocks import WORTH_IT, in_numpy, parts, side_by_side
from ._windows import Asked, first_in_windows

# Bytes that take longer to read than another thread takes to get a core.
_WORTH_A_THREAD = 2**26
# Caches a core fills at a time when it only searches: a part is read once, and little of it again.
_SEARCHED = 8
# Rows of which one entry each is looked at before the next: what is kept of them is in the cache.
_ROWS = 2**14


def first_largest(table: Float[Tensor, "n classes"]) -> Int[Tensor, " n"]:
    """The first of the largest entries of each row, as NumPy finds it, faster than torch."""
    if not searched(table):
        return table.argmax(dim=1)
    return torch.from_numpy(search(table.detach().numpy()))


def first_largest_of(
    table: Float[Tensor, "n classes"], rows: Int[Tensor, " some"]
) -> Int[Tensor, " some"]:
    """The same for some of the rows, which are brought into the cache some at a time."""
    if not in_numpy(table):
        return table[rows].argmax(dim=1)
    numbers, wanted = table.detach().numpy(), rows.numpy()
    found = np.empty(len(wanted), dtype=np.int64)

    def look(some: slice) -> None:
        np.argmax(numbers.take(wanted[some], axis=0), axis=1, out=found[some])

    _look(look, table, len(wanted), _in_a_cache(table))
    return torch.from_numpy(found)


def is_first_largest(
    table: Float[Tensor, "n classes"],
    place: Int[Tensor, " n"],
    largest: Float[Tensor, " n"],
    of_windows: Float[Tensor, "n windows"] | None = None,
) -> Bool[Tensor, " n"]:
    """Whether the first of the largest entries of each row of probabilities is at `place`.

    Which came first matters only where two may be tied, and two tied maxima are both at most
    one half, up to what a row may be off by.

    - `of_windows`: the maxima of its windows, where they are known.
    """
    if not in_numpy(table):
        return table.argmax(dim=1) == place
    table = table.detach()
    numbers, wanted, most = table.numpy(), place.numpy(), largest.numpy()
    right = np.empty(len(numbers), dtype=np.bool_)
    starts = numbers.shape[1] * np.arange(min(_ROWS, len(numbers)))
    known = of_windows if table.is_contiguous() else None
    if known is None:
        is_first = _first_in_rows(numbers, wanted, _in_a_cache(table))
    else:
        is_first = first_in_windows(table, known, largest, place)

    def look(rows: slice) -> None:
        top, found = most[rows], right[rows]
        np.equal(_entries(numbers[rows], wanted[rows], starts), top, out=found)
        unsure = np.flatnonzero(found & (top < 0.51))
        found[unsure] = is_first(rows.start + unsure)

    _look(look, table, len(numbers), _ROWS, few=known is not None)
    return torch.from_numpy(right)


def _first_in_rows(numbers: NDArray[np.floating], place: NDArray[np.int64], at_once: int) -> Asked:
    """Of rows of a table: whether the first of their largest entries is at its place."""

    def ask(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        first = np.empty(len(rows), dtype=np.bool_)
        for some in parts(len(rows), at_once):
            own = rows[some]
            first[some] = numbers.take(own, axis=0).argmax(axis=1) == place[own]
        return first

    return ask


def search(numbers: NDArray[np.floating]) -> NDArray[np.int64]:
    """The places, on as many threads as torch would use."""
    n, classes = numbers.shape
    place = np.empty(n, dtype=np.int64)
    at_once = max(1, _SEARCHED * _blocks.BLOCK_BYTES // (classes * numbers.itemsize))

    def look(rows: slice) -> None:
        numbers[rows].argmax(1, place[rows])

    side_by_side(look, parts(n, at_once))
    return place


def searched(table: Tensor) -> bool:
    """Whether NumPy can search the table, and it is worth the while."""
    return table.numel() >= WORTH_IT and in_numpy(table)


def _entries(
    rows: NDArray[np.floating], place: NDArray[np.int64], starts: NDArray[np.int64]
) -> NDArray[np.floating]:
    """The entry of each row at its place; `starts` says where rows begin that lie side by side."""
    if not rows.flags.c_contiguous:
        return rows[np.arange(len(rows)), place]
    # By torch, which waits less for numbers that lie far apart than NumPy does.
    at = torch.from_numpy(starts[: len(rows)] + place)
    entries: NDArray[np.floating] = torch.from_numpy(rows.reshape(-1)).index_select(0, at).numpy()
    return entries


def _in_a_cache(table: Tensor) -> int:
    """How many rows of a table fill a cache."""
    return max(1, _blocks.BLOCK_BYTES // (table.shape[1] * table.element_size()))


def _look(
    look: Callable[[slice], None], table: Tensor, n: int, at_once: int, *, few: bool = False
) -> None:
    """At so many rows after others, on several threads where that is worth their while.

    - `few`: whether few numbers are read of each row.
    """
    if not few and n * table.shape[1] * table.element_size() > _WORTH_A_THREAD:
        side_by_side(look, parts(n, at_once))
    else:
        for part in parts(n, at_once):
            look(part)
