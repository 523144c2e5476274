"""Tables of rows read a block at a time, so that each block stays in a core's cache."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from math import ceil

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.autograd import forward_ad

from ._checks import HALF, check_probabilities, check_probability_table, is_transformed

# Half a megabyte fits the second-level cache of every processor in use.
BLOCK_BYTES = 2**19
# Below this a table is in the cache as it is, and definitions are as fast.
WORTH_IT = 2**15

# Numbers of a table of probabilities whose signs and sums are looked at.
_LOOKED_AT = 2**18


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


def largest_of_rows(probabilities: Float[Tensor, "n classes"]) -> Float[Tensor, " n"]:
    """The largest entry of each row, off the graph; a sentence where these are no probabilities.

    Every maximum is looked at: of C chances it lies between 1/C and 1, and NaN shows in it. Of
    a table of more than half a million numbers, signs and sums are looked at in some rows only,
    evenly spread, since a look at all costs as much as everything else.
    """
    check_probability_table(probabilities)
    table = probabilities.detach()
    largest = table.amax(dim=1)
    if torch.compiler.is_compiling() or is_transformed(table):
        return largest
    check_probabilities(table[:: max(1, table.numel() // _LOOKED_AT)])
    tolerance = 2e-2 if table.dtype in HALF else 1e-3
    least = (1 - tolerance) / table.shape[1]
    if not bool(((largest >= least) & (largest <= 1 + tolerance)).all()):
        check_probabilities(table)
    return largest


def first_largest(table: Float[Tensor, "n classes"]) -> Int[Tensor, " n"]:
    """The first of the largest entries of each row, as NumPy finds it, faster than torch."""
    plain = unrecorded(table) and table.dtype in (torch.float32, torch.float64)
    if not plain or table.numel() < WORTH_IT:
        return table.argmax(dim=1)
    numbers = table.detach().numpy()
    found = np.empty(len(numbers), dtype=np.int64)

    def look(rows: slice) -> None:
        np.argmax(numbers[rows], axis=1, out=found[rows])

    side_by_side(look, list(blocks(table)))
    return torch.from_numpy(found)


def first_largest_of(
    table: Float[Tensor, "n classes"], rows: Int[Tensor, " some"]
) -> Int[Tensor, " some"]:
    """The same for some of the rows, which pass through a room that stays in the cache."""
    if not unrecorded(table) or table.dtype not in (torch.float32, torch.float64):
        return table[rows].argmax(dim=1)
    numbers, wanted = table.detach().numpy(), rows.numpy()
    found = np.empty(len(wanted), dtype=np.int64)
    at_once = max(1, BLOCK_BYTES // (table.shape[1] * table.element_size()))

    room = np.empty((at_once, table.shape[1]), dtype=numbers.dtype)
    for start in range(0, len(wanted), at_once):
        some = slice(start, min(start + at_once, len(wanted)))
        # Said to be clipped: places that are checked go through a second room.
        part = numbers.take(wanted[some], axis=0, out=room[: some.stop - start], mode="clip")
        np.argmax(part, axis=1, out=found[some])
    return torch.from_numpy(found)
