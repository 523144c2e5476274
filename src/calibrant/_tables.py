"""Tables of rows read a block at a time, so that each block stays in a core's cache."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import ceil

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.autograd import forward_ad

from ._checks import check_probabilities, check_probability_table, is_transformed

# Half a megabyte fits the second-level cache of every processor in use.
BLOCK_BYTES = 2**19
# Below this a table is in the cache as it is, and definitions are as fast.
WORTH_IT = 2**15

# A row of probabilities may be off by this much, as in `check_probabilities`.
_TOLERANCE = 1e-3
_UNSIGNED = {torch.float32: np.uint32, torch.float64: np.uint64}


def unrecorded(table: Tensor) -> bool:
    """Whether `table` is plain memory of the CPU, and only values are asked of it."""
    return (
        (type(table) is Tensor or type(table) is torch.nn.Parameter)
        and table.device.type == "cpu"
        and table.layout == torch.strided
        and not (table.requires_grad and torch.is_grad_enabled())
        and not torch.compiler.is_compiling()
        and not is_transformed(table)
        and forward_ad.unpack_dual(table).tangent is None
    )


def blocks(table: Tensor, cores: int = 1) -> Iterator[slice]:
    """The rows of a table, as many at a time as fill the cache of each of some cores."""
    per_row = max(1, table.shape[1] * max(table.element_size(), 4))
    rows = max(1, cores * BLOCK_BYTES // per_row)
    for start in range(0, len(table), rows):
        yield slice(start, min(start + rows, len(table)))


def blocks_of(table: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Some rows of a table after others."""
    for rows in blocks(table, torch.get_num_threads()):
        yield rows, table[rows]


def softmax_of_blocks(logits: Float[Tensor, "n classes"]) -> Iterator[tuple[slice, Tensor]]:
    """Probabilities of some rows after others, all in the same room."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    room = torch.empty(0, dtype=dtype)
    for rows, block in blocks_of(logits.detach()):
        room = room if room.numel() else torch.empty(block.shape, dtype=dtype)
        yield rows, torch.softmax(block.to(dtype), dim=1, out=room[: len(block)])


def by_rows(
    statistic: Callable[[Tensor], Tensor], table: Float[Tensor, "n classes"]
) -> Shaped[Tensor, " n"]:
    """One number for each row, without temporaries as large as the table if none are needed."""
    if table.numel() < WORTH_IT or not unrecorded(table):
        return statistic(table)
    return torch.cat([statistic(block) for _, block in blocks_of(table)])


def side_by_side(work: Callable[[slice], None], parts: list[slice]) -> None:
    """Do the parts of a work on as many threads as torch would use.

    It must let go of the interpreter's lock, as NumPy's loops do.
    """
    workers = max(1, min(torch.get_num_threads(), len(parts)))
    share = ceil(len(parts) / workers)

    def do(first: int) -> None:
        for part in parts[first : first + share]:
            work(part)

    if workers == 1:
        return do(0)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(do, range(0, len(parts), share)))
    return None


def most_probable(
    probabilities: Float[Tensor, "n classes"],
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"]]:
    """The first of the largest entries of each row, and that entry, off the graph.

    A sentence where these are not probabilities. Both are found in one pass over the table: as
    unsigned integers, numbers that are not negative have the order they have as numbers, and
    every negative one is above them all. So the largest such integer of a row is either its
    maximum or shows that something is negative.
    """
    check_probability_table(probabilities)
    table = probabilities.detach()
    if unrecorded(table) and table.dtype in _UNSIGNED and table.numel():
        numbers = table.numpy()
        predicted = np.empty(len(numbers), dtype=np.int64)
        largest = np.empty(len(numbers), dtype=numbers.dtype)
        totals = np.empty_like(largest)
        ones = np.ones(numbers.shape[1], dtype=numbers.dtype)
        kind = _UNSIGNED[table.dtype]
        parts = list(blocks(table))
        places = np.arange(parts[0].stop)

        def look(rows: slice) -> None:
            part, first = np.ascontiguousarray(numbers[rows]), predicted[rows]
            np.argmax(part.view(kind), axis=1, out=first)
            np.dot(part, ones, out=totals[rows])
            largest[rows] = part[places[: len(part)], first]

        side_by_side(look, parts)
        # A comparison with NaN is false, and zero is the largest of no row.
        off = np.abs(np.subtract(totals, 1, out=totals), out=totals).max()
        if largest.min() > 0 and off <= _TOLERANCE:
            return torch.from_numpy(predicted), torch.from_numpy(largest)
    check_probabilities(probabilities)
    first = table.argmax(dim=1)
    return first, table.gather(1, first[:, None])[:, 0]
