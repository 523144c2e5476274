"""When a table is read by blocks, how large they are, and who reads them."""

from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import suppress

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.autograd import forward_ad

from .._checks import is_plain

# Half a megabyte fits the second-level cache of every processor in use.
BLOCK_BYTES = 2**19
# Below this a table is in the cache as it is, and definitions are as fast.
WORTH_IT = 2**15


def unrecorded(table: Tensor) -> bool:
    """Whether `table` is plain memory of the CPU, and only values are asked of it.

    This is the condition of every faster way on the CPU. Where it does not hold (gradients,
    compiled graphs, function transforms, other devices and layouts) definitions compute.
    """
    return is_plain(table) and only_values(table)


def only_values(table: Tensor) -> bool:
    """Whether no gradient is asked for, in either direction."""
    recorded = table.requires_grad and torch.is_grad_enabled()
    return not recorded and forward_ad.unpack_dual(table).tangent is None


def in_numpy(*tensors: Tensor) -> bool:
    """Whether NumPy has such numbers too, and may read these where they lie."""
    numbers = (torch.float32, torch.float64)
    return all(each.dtype in numbers and unrecorded(each) for each in tensors)


def blocks(table: Tensor, cores: int = 1) -> Iterator[slice]:
    """The rows of a table, as many at a time as fill the cache of each of some cores."""
    n, classes = table.shape
    rows = max(1, cores * BLOCK_BYTES // max(1, classes * max(table.element_size(), 4)))
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


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
    found: Tensor | None = None
    for rows, block in blocks_of(table):
        some = statistic(block)
        found = some.new_empty(len(table)) if found is None else found
        # Copied, not kept: between large temporaries it would keep their room from being reused.
        found[rows] = some
    assert found is not None
    return found


def parts(n: int, at_once: int) -> list[slice]:
    """So many of n after others."""
    return [slice(start, min(start + at_once, n)) for start in range(0, n, at_once)]


def side_by_side(work: Callable[[slice], None], each: list[slice]) -> None:
    """Do the parts of a work on as many threads as torch would use, each taking the next.

    It must let go of the interpreter's lock, as NumPy's loops do.
    """
    left = iter(each)
    failed: list[BaseException] = []

    def do() -> None:
        try:
            for part in left:
                work(part)
        except BaseException as error:  # for the one who asked, when all are done
            failed.append(error)

    def do_and_say(ended: LockType) -> None:
        do()
        ended.release()

    # Threads of its own, since a pool takes twice as long to start. Bare ones, since `threading`
    # waits until each has begun, while a megabyte could be read.
    begun: list[LockType] = []
    with suppress(RuntimeError):  # where there are no more threads to be had
        for _ in range(min(torch.get_num_threads(), len(each)) - 1):
            ended = allocate_lock()
            ended.acquire()
            start_new_thread(do_and_say, (ended,))
            begun.append(ended)
    do()
    for ended in begun:
        ended.acquire()
    if failed:
        raise failed[0]
