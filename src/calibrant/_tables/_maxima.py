"""The largest entry of each row of a table, and which of tied ones came first."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from .._checks import (
    check_numbers,
    check_probabilities,
    check_probability_table,
    check_sums,
    check_table,
    extremes,
    is_transformed,
    slack,
)
from . import _blocks
from ._blocks import WORTH_IT, blocks, in_numpy, side_by_side

# Up to here all signs and sums of a table of probabilities are looked at; of larger ones, those
# of so many numbers, and no fewer than so many rows.
_WHOLE, _LOOKED_AT, _LEAST_ROWS = 2**19, 2**15, 16
# Tables that are in the cache as they are.
_SMALL = 2**18
# Rows this long are searched for the place of their maximum almost as fast as they are read.
_WIDE = 256
# Rows shorter than this are added and compared number by number, which is slow.
_NARROW = 64
# Bytes that take longer to read than another thread takes to get a core.
_WORTH_A_THREAD = 2**26
# Caches a core fills at a time when it only searches: a part is read once, and its maxima again.
_SEARCHED = 8


def largest_of_rows(
    probabilities: Float[Tensor, "n classes"],
) -> tuple[Float[Tensor, " n"], Int[Tensor, " n"] | None]:
    """The largest entry of each row, off the graph; a sentence where these are no probabilities.

    With it comes its first place, where that is found on the way.

    Every maximum is looked at: of C chances it lies between 1/C and 1, and NaN shows in it. Of
    a table of more than half a million numbers, signs and sums are looked at in some rows only,
    sixteen or more and evenly spread, since a look at all costs as much as everything else.
    """
    check_probability_table(probabilities)
    check_table("probabilities", probabilities)
    table = probabilities.detach()
    if table.shape[1] < _NARROW and table.numel() <= _SMALL and in_numpy(table):
        return _largest_of_columns(table)
    place = None
    if table.shape[1] >= _WIDE and _searched(table):
        largest = table.new_empty(len(table))
        place = _search(table, largest)
    else:
        largest = table.amax(dim=1)
    if torch.compiler.is_compiling() or is_transformed(table):
        return largest, None
    every = 1
    if table.numel() > _WHOLE:
        every = max(1, min(table.numel() // _LOOKED_AT, len(table) // _LEAST_ROWS))
    if place is None:
        check_probabilities(table[::every])
    else:  # NumPy has read it: nothing else is to be asked of it
        check_numbers(table.numpy()[::every], table)
    off = slack(table.dtype)
    low, high = extremes(largest)
    if not (low >= (1 - off) / table.shape[1] and high <= 1 + off):
        check_probabilities(table)
    return largest, place


def _largest_of_columns(
    table: Float[Tensor, "n classes"],
) -> tuple[Float[Tensor, " n"], Int[Tensor, " n"] | None]:
    """The same of a small table, whose columns are added and compared instead.

    By NumPy: waking torch's threads, where cores are busy, takes longer than all the rest.
    """
    columns = table.numpy().T.copy()
    with np.errstate(invalid="ignore", over="ignore"):  # the sums tell
        sums = columns.sum(axis=0)
    check_sums(table, columns.min().item(), sums.min().item(), sums.max().item())
    most = columns.max(axis=0)
    reached = columns == most
    if np.count_nonzero(reached) > len(table):
        return torch.from_numpy(most), None
    # Each row has one maximum, so that the number of its column is all there is to add up.
    numbers = np.arange(len(columns), dtype=np.uint8)[:, None] * reached.view(np.uint8)
    place = numbers.sum(axis=0, dtype=np.uint8).astype(np.int64)
    return torch.from_numpy(most), torch.from_numpy(place)


def first_largest(table: Float[Tensor, "n classes"]) -> Int[Tensor, " n"]:
    """The first of the largest entries of each row, as NumPy finds it, faster than torch."""
    return _search(table) if _searched(table) else table.argmax(dim=1)


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

    at_once = max(1, _blocks.BLOCK_BYTES // (table.shape[1] * table.element_size()))
    parts = [slice(start, start + at_once) for start in range(0, len(wanted), at_once)]
    if len(parts) * _blocks.BLOCK_BYTES > _WORTH_A_THREAD:
        side_by_side(look, parts)
    else:
        for part in parts:
            look(part)
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
    wanted, most = place.numpy(), largest.numpy()
    right: NDArray[np.bool_] = table.gather(1, place[:, None]).numpy()[:, 0] == most
    unsure = np.flatnonzero(right & (most < 0.51))
    first = first_largest_of(table, torch.from_numpy(unsure))
    right[unsure] = first.numpy() == wanted[unsure]
    return torch.from_numpy(right)


def _search(
    table: Float[Tensor, "n classes"], largest: Float[Tensor, " n"] | None = None
) -> Int[Tensor, " n"]:
    """The places, and `largest` filled with what is there while its row is in the cache."""
    numbers = table.detach().numpy()
    place = np.empty(len(numbers), dtype=np.int64)
    entries = None if largest is None else largest.numpy()

    parts = list(blocks(table, _SEARCHED))
    starts = numbers.shape[1] * np.arange(parts[0].stop)

    def look(rows: slice) -> None:
        some, found = numbers[rows], place[rows]
        some.argmax(axis=1, out=found)
        if entries is not None:
            some.reshape(-1).take(starts[: len(some)] + found, out=entries[rows], mode="clip")

    side_by_side(look, parts)
    return torch.from_numpy(place)


def _searched(table: Tensor) -> bool:
    """Whether NumPy can search the table, and it is worth the while."""
    return table.numel() >= WORTH_IT and in_numpy(table)
