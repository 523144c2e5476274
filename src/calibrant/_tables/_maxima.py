"""The largest entry of each row of a table of probabilities, and whether these are any."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._checks import (
    ROUNDED,
    all_up_to,
    check_probabilities,
    check_probability_table,
    check_sums,
    check_table,
    extremes,
    is_transformed,
)
from ._blocks import in_numpy
from ._parts import Vector
from ._windows import windows_of

# Up to here all signs and sums of a table of probabilities are looked at; of larger ones, those
# of so many numbers, and no fewer than so many rows.
_WHOLE, _LOOKED_AT, _LEAST_ROWS = 2**19, 2**15, 16
# Tables that are in the cache as they are.
_SMALL = 2**18
# Rows shorter than this are added and compared number by number, which is slow.
_NARROW = 64


class Maxima(NamedTuple):
    """The largest entry of each row, off the graph, and what was found on the way.

    - `place`: its first place. `of_windows`: the maxima of `windows_of` these rows.
    """

    largest: Float[Tensor, " n"]
    place: Int[Tensor, " n"] | None = None
    of_windows: Float[Tensor, "n windows"] | None = None


def maxima_of(probabilities: Float[Tensor, "n classes"]) -> Maxima:
    """The largest entry of each row; a sentence where these are no probabilities.

    Every maximum is looked at: of C chances it lies between 1/C and 1, and NaN shows in it. Of
    a table of more than half a million numbers, signs and sums are looked at in some rows only,
    sixteen or more and evenly spread, since a look at all costs as much as everything else.
    """
    check_probability_table(probabilities)
    check_table("probabilities", probabilities)
    table = probabilities.detach()
    n, classes = table.shape
    plain = in_numpy(table)
    if classes < _NARROW and table.numel() <= _SMALL and plain:
        return _of_columns(table)
    every = 1
    if table.numel() > _WHOLE:
        every = max(1, min(table.numel() // _LOOKED_AT, n // _LEAST_ROWS))
    windows = windows_of(classes) if plain and table.is_contiguous() else None
    if windows is None:
        found = Maxima(table.amax(dim=1))
    else:
        of_windows = windows.of(table).amax(dim=2)
        found = Maxima(of_windows.amax(dim=1), of_windows=of_windows)
    if plain and every > 1 and _are_plainly(table.numpy()[::every], found.largest.numpy()):
        return found
    if not (torch.compiler.is_compiling() or is_transformed(table)):
        _check(table, found.largest, every)
    return found


def _check(table: Float[Tensor, "n classes"], largest: Float[Tensor, " n"], every: int) -> None:
    """Some rows for their signs and sums, and all if a maximum cannot be that of chances."""
    check_probabilities(table, every=every)
    low, high = extremes(largest)
    if not (low >= (1 - ROUNDED) / table.shape[1] and high <= 1 + ROUNDED):
        check_probabilities(table)


def _are_plainly(some: Vector, most: Vector) -> bool:
    """Whether the least look at some rows, and at all maxima, finds nothing to check.

    By few ways of NumPy, and none of torch: after a large table no way is in the cache, and to
    fetch one takes longer than to go it.
    """
    inside = all_up_to(1, some) and all_up_to(1, most)
    if not inside or np.minimum.reduce(most) < (1 - ROUNDED) / some.shape[1]:
        return False
    sums = np.add.reduce(some, 1)
    return bool(np.minimum.reduce(sums) >= 1 - ROUNDED and np.maximum.reduce(sums) <= 1 + ROUNDED)


def _of_columns(table: Float[Tensor, "n classes"]) -> Maxima:
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
        return Maxima(torch.from_numpy(most))
    # Each row has one maximum, so that the number of its column is all there is to add up.
    numbers = np.arange(len(columns), dtype=np.uint8)[:, None] * reached.view(np.uint8)
    place = numbers.sum(axis=0, dtype=np.uint8).astype(np.int64)
    return Maxima(torch.from_numpy(most), torch.from_numpy(place))
