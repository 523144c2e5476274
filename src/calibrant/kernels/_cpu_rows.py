"""Statistics of rows on the CPU, where only values are asked: one pass, and no second table."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from .._tables import WORTH_IT, blocks_of, first_largest, first_largest_of, unrecorded
from ..predictions import Row, RowKernels
from . import _switch

# Rows whose logarithms are found at once.
_TOGETHER = 2**16


def takes(logits: Tensor) -> bool:
    """Whether these logits are worth a pass by blocks, and nothing is recorded on them."""
    chosen = _switch._choice != "definition"
    return chosen and logits.numel() >= WORTH_IT and unrecorded(logits)


def first_statistics(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    r"""Confidence, correctness and the log-probability of the true class.

    With $s = \sum_j e^{z_j - \max_k z_k}$ they are $1 / s$, whether $z_y$ is the maximum, and
    $z_y - \max_k z_k - \log s$. Two tied maxima make $s$ at least 2, so only right answers
    with a confidence of at most one half are asked which class came first.
    """
    total, lead = _column_for(logits), _column_for(logits)
    truth = labels[:, None]

    def look(rows: slice, z: Tensor, room: Tensor) -> None:
        torch.sub(z, z.amax(dim=1, keepdim=True), out=room)
        torch.gather(room, 1, truth[rows], out=lead[rows, None])
        torch.sum(room.exp_(), dim=1, out=total[rows])

    _for_each_block(logits, look)
    correct = (lead == 0).to(lead.dtype)
    # Written so that a row of NaN is asked as well.
    unsure = (~((total < 2) | (lead < 0))).nonzero()[:, 0]
    first = first_largest_of(logits, unsure)
    correct[unsure] = (first == labels[unsure]).to(correct.dtype)
    # Some rows after others, and in place: of many rows each further column would be new memory.
    for lag, some in zip(lead.split(_TOGETHER), total.split(_TOGETHER), strict=True):
        lag.sub_(some.log())
    return {"confidence": total.reciprocal_(), "correct": correct, "true_log_prob": lead}


def further_statistics(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    r"""Entropy, mean log-probability and the sum of squared probabilities.

    With $d_j = z_j - \max_k z_k$ and $s$ as above they are
    $\log s - \sum_j d_j e^{d_j} / s$, $\bar d - \log s$ and $\sum_j e^{2 d_j} / s^2$.
    """
    entropy, mean_log_prob, squares = (_column_for(logits) for _ in range(3))

    def look(rows: slice, z: Tensor, room: Tensor) -> None:
        shifted = torch.sub(z, z.amax(dim=1, keepdim=True), out=room)
        mean_log_prob[rows] = shifted.mean(dim=1)
        # What is ruled out adds 0 * -1000, where 0 * -inf would be NaN.
        weight = shifted.clamp_(min=-1000).exp()
        total = weight.sum(dim=1)
        entropy[rows] = total.log() - shifted.mul_(weight).sum(dim=1) / total
        mean_log_prob[rows] -= total.log()
        squares[rows] = weight.square_().sum(dim=1) / total.square()

    _for_each_block(logits, look)
    return {"entropy": entropy, "mean_log_prob": mean_log_prob, "sum_of_squares": squares}


def prediction(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """The first of the largest logits."""
    return {"predicted": first_largest(logits)}


def soft_rank(logits: Tensor, labels: Tensor, temperature: float, row: Row) -> Tensor:
    """Soft rank of the true class; see `Predictions.soft_rank`."""
    rank = _column_for(logits)

    def look(rows: slice, z: Tensor, room: Tensor) -> None:
        torch.softmax(z, dim=1, out=room)
        room.sub_(room.gather(1, labels[rows, None]))
        torch.sum(room.mul_(temperature).sigmoid_(), dim=1, out=rank[rows])

    _for_each_block(logits, look)
    return rank.add_(0.5)


def _for_each_block(logits: Tensor, look: Callable[[slice, Tensor, Tensor], None]) -> None:
    """Show each block of rows, in float32 or wider, with room of its shape that is reused."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    room = torch.empty(0, dtype=dtype)
    for rows, block in blocks_of(logits.detach()):
        room = room if room.numel() else torch.empty(block.shape, dtype=dtype)
        look(rows, block.to(dtype), room[: len(block)])


def _column_for(logits: Float[Tensor, "n classes"]) -> Float[Tensor, " n"]:
    dtype = torch.promote_types(logits.dtype, torch.float32)
    return torch.empty(len(logits), dtype=dtype)


def _takes_numpys(logits: Tensor) -> bool:
    return logits.dtype in (torch.float32, torch.float64) and takes(logits)


ON_CPU = (
    RowKernels(
        takes,
        first_statistics,
        soft_rank,
        frozenset({"confidence", "correct", "true_log_prob", "soft_rank"}),
    ),
    RowKernels(
        takes,
        further_statistics,
        soft_rank,
        frozenset({"entropy", "mean_log_prob", "sum_of_squares"}),
    ),
    RowKernels(_takes_numpys, prediction, soft_rank, frozenset({"predicted"})),
)
"""Each finds what is asked for together."""
