"""Tables of chances by blocks, so that what is made of them takes little memory."""

from collections.abc import Iterator

from ..predictions import Predictions

# Chances that are looked at together.
_AT_ONCE = 2**18


def row_blocks(predictions: Predictions, each: int = 1) -> Iterator[slice]:
    """Rows that are looked at together, by their chances or by more numbers for each of them."""
    for rows in ranges(len(predictions), max(predictions.classes, each)):
        yield slice(rows.start, rows.stop)


def ranges(count: int, each: int) -> Iterator[range]:
    """So many at a time that what belongs to each of them makes a block."""
    step = max(1, _AT_ONCE // max(each, 1))
    for begin in range(0, count, step):
        yield range(begin, min(begin + step, count))
