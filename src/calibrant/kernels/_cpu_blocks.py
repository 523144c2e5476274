"""One block of rows on the CPU: its statistics, its soft ranks, and the gradient of its logits.

Torch's softmax takes less time than its exponential, so probabilities and their logarithms are
found from the logits each time. The formulas are in docs/derivations/rows.md.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from ._slopes import LEAST, Slopes, write
from ._table import Ranked

# Rows shorter than a register are not what torch's softmax is made for: at ten classes it takes
# 15 nanoseconds for each logit, where one operator after another takes 3.
_NARROW = 16


class Rooms:
    """Memory for tables of a block's size, used again for the next: new memory is slow."""

    def __init__(self) -> None:
        self._rooms: dict[str, Tensor] = {}

    def of(self, name: str, block: Tensor) -> Tensor:
        """Room for a table like this block; the first block is the largest."""
        if name not in self._rooms:
            self._rooms[name] = torch.empty_like(block)
        return self._rooms[name][: len(block)]


def write_statistics(
    found: Mapping[str, Tensor], predicted: Tensor, z: Tensor, labels: Tensor, rooms: Rooms
) -> None:
    """The predicted class of each row, and the statistics that there is room for.

    Under the name of the confidence its logarithm.
    """
    np.argmax(z.numpy(), axis=1, out=predicted.numpy())
    log_p = _log_probs(z, rooms)
    torch.gather(log_p, 1, labels[:, None], out=found["true_log_prob"][:, None])
    torch.gather(log_p, 1, predicted[:, None], out=found["confidence"][:, None])
    torch.mean(log_p, dim=1, out=found["mean_log_prob"])
    if "entropy" in found:
        p = _probs(z, rooms)
        torch.sum(log_p.clamp_(min=LEAST).mul_(p), dim=1, out=found["entropy"])
        found["entropy"].neg_()
        torch.sum(p.square_(), dim=1, out=found["sum_of_squares"])


def ranks(z: Tensor, labels: Tensor, temperature: float, rooms: Rooms) -> Tensor:
    """The soft rank of the true class of each row."""
    share, _ = _shares(_probs(z, rooms), labels, temperature, rooms)
    # The true class meets itself at one half, and the rank counts from one.
    return share.sum(dim=1).add_(0.5)


def write_gradient(
    target: Tensor, z: Tensor, labels: Tensor, slopes: Slopes, rank: Ranked | None, rooms: Rooms
) -> None:
    """The gradient of the logits into `target`, which may be where they are.

    - `rank`: what comes from the soft rank.
    """
    p, log_p, steep = _probs(z, rooms), None, None
    if slopes.by_log_p is not None:
        log_p = _log_probs(z, rooms).clamp_(min=LEAST)
    if rank is not None:
        steep, pull = _steepness(p, labels, rank, rooms)
        slopes = slopes._replace(common=slopes.common - pull)
    # Narrow numbers are written once, when everything is added up.
    found = target if target.dtype == p.dtype else p
    write(found, p, log_p, slopes, steep=steep)
    if found is not target:
        target.copy_(found)


def _steepness(p: Tensor, labels: Tensor, rank: Ranked, rooms: Rooms) -> tuple[Tensor, Tensor]:
    """The slope of each class that comes from the soft rank, and what is taken off all of them."""
    share, own = _shares(p, labels, rank.temperature, rooms)
    spare, truth = rooms.of("spare", p), labels[:, None]
    steep = share.mul_(torch.sub(1, share, out=spare)).scatter_(1, truth, 0)
    slopes = steep.sum(dim=1, keepdim=True)
    pull = torch.mul(steep, p, out=spare).sum(dim=1, keepdim=True) - slopes * own
    upstream = rank.temperature * rank.upstream[:, None]
    steep.scatter_(1, truth, -slopes).mul_(upstream)
    return steep, (pull * upstream).squeeze(1)


def _shares(p: Tensor, labels: Tensor, temperature: float, rooms: Rooms) -> tuple[Tensor, Tensor]:
    """How far each class is ahead of the true one, from 0 to 1, and the latter's probability."""
    own = p.gather(1, labels[:, None])
    share = torch.sub(p, own, out=rooms.of("share", p))
    return share.mul_(temperature).sigmoid_(), own


def _log_probs(z: Tensor, rooms: Rooms) -> Tensor:
    room = rooms.of("log_p", z)
    if z.shape[1] >= _NARROW:
        return torch.log_softmax(z, dim=1, out=room)
    torch.sub(z, z.amax(dim=1, keepdim=True), out=room)
    total = torch.exp(room, out=rooms.of("spare", z)).sum(dim=1, keepdim=True)
    return room.sub_(total.log_())


def _probs(z: Tensor, rooms: Rooms) -> Tensor:
    room = rooms.of("p", z)
    if z.shape[1] >= _NARROW:
        return torch.softmax(z, dim=1, out=room)
    torch.sub(z, z.amax(dim=1, keepdim=True), out=room).exp_()
    return room.div_(room.sum(dim=1, keepdim=True))
