"""Where the largest entry of each row of a table is, the first of tied ones."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from . import _blocks
from ._blocks import WORTH_IT, in_numpy, side_by_side

# Bytes that take longer to read than another thread takes to get a core.
_WORTH_A_THREAD = 2**26
# Caches a core fills at a time when it only searches: a part is read once, and its maxima again.
_SEARCHED = 8
# Rows of which one entry each is looked at before the next: what is kept of them is in the cache.
_ROWS = 2**14


def first_largest(table: Float[Tensor, "n classes"]) -> Int[Tensor, " n"]:
    """The first of the largest entries of each row, as NumPy finds it, faster than torch."""
    if not searched(table):
        return table.argmax(dim=1)
    return torch.from_numpy(search(table.detach().numpy())[0])


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
    table: Float[Tensor, "n classes"], place: Int[Tensor, " n"], largest: Float[Tensor, " n"]
) -> Bool[Tensor, " n"]:
    """Whether the first of the largest entries of each row of probabilities is at `place`.

    Which came first matters only where two may be tied, and two tied maxima are both at most
    one half, up to what a row may be off by.
    """
    if not in_numpy(table):
        return table.argmax(dim=1) == place
    numbers, wanted, most = table.detach().numpy(), place.numpy(), largest.numpy()
    right = np.empty(len(numbers), dtype=np.bool_)
    at_once, starts = _in_a_cache(table), numbers.shape[1] * np.arange(min(_ROWS, len(numbers)))

    def look(rows: slice) -> None:
        some, label, top, found = numbers[rows], wanted[rows], most[rows], right[rows]
        np.equal(_entries(some, label, starts), top, out=found)
        unsure = np.flatnonzero(found & (top < 0.51))
        for start in range(0, len(unsure), at_once):
            own = unsure[start : start + at_once]
            rivals = some.take(own, axis=0)
            # Most often each has one maximum, which is sooner counted than found.
            if np.count_nonzero(rivals == top[own, None]) > len(own):
                found[own] = rivals.argmax(axis=1) == label[own]

    _look(look, table, len(numbers), _ROWS)
    return torch.from_numpy(right)


def search(
    numbers: NDArray[np.floating],
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """The places, and what is there, taken while its row is in the cache."""
    n, classes = numbers.shape
    place, entries = np.empty(n, dtype=np.int64), np.empty(n, dtype=numbers.dtype)
    at_once = max(1, _SEARCHED * _blocks.BLOCK_BYTES // (classes * numbers.itemsize))
    parts = [slice(start, min(start + at_once, n)) for start in range(0, n, at_once)]
    starts = classes * np.arange(parts[0].stop)

    def look(rows: slice) -> None:
        some, found = numbers[rows], place[rows]
        some.argmax(1, found)
        _entries(some, found, starts, entries[rows])

    side_by_side(look, parts)
    return place, entries


def searched(table: Tensor) -> bool:
    """Whether NumPy can search the table, and it is worth the while."""
    return table.numel() >= WORTH_IT and in_numpy(table)


def _entries(
    rows: NDArray[np.floating],
    place: NDArray[np.int64],
    starts: NDArray[np.int64],
    out: NDArray[np.floating] | None = None,
) -> NDArray[np.floating]:
    """The entry of each row at its place; `starts` says where rows begin that lie side by side."""
    if not rows.flags.c_contiguous:
        found = rows[np.arange(len(rows)), place]
        if out is not None:
            out[:] = found
        return found
    return rows.reshape(-1).take(starts[: len(rows)] + place, out=out, mode="clip")


def _in_a_cache(table: Tensor) -> int:
    """How many rows of a table fill a cache."""
    return max(1, _blocks.BLOCK_BYTES // (table.shape[1] * table.element_size()))


def _look(look: Callable[[slice], None], table: Tensor, n: int, at_once: int) -> None:
    """At so many rows after others, on several threads where that is worth their while."""
    parts = [slice(start, min(start + at_once, n)) for start in range(0, n, at_once)]
    if n * table.shape[1] * table.element_size() > _WORTH_A_THREAD:
        side_by_side(look, parts)
    else:
        for part in parts:
            look(part)
