"""One block of rows on the CPU: its statistics, its soft ranks, and the gradient of its logits.

Everything is found from the logits and their probabilities, with one softmax and no exponential or
logarithm of a table besides. The formulas are in docs/derivations/rows.md.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from .._tables import first_largest
from ._places import entry
from ._slopes import LEAST, Slopes, write

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


Found = Mapping[str, Tensor]
Write = Callable[[Found, Tensor, Tensor, Tensor, Rooms], None]


def write_probs(room: Tensor, z: Tensor) -> Tensor:
    """The probabilities of these logits, into `room`."""
    if z.shape[1] >= _NARROW:
        return torch.softmax(z, dim=1, out=room)
    torch.sub(z, z.amax(dim=1, keepdim=True), out=room).exp_()
    return room.div_(room.sum(dim=1, keepdim=True))


def _true_prob(found: Found, z: Tensor, p: Tensor, labels: Tensor, rooms: Rooms) -> None:
    torch.gather(p, 1, labels[:, None], out=found["true_prob"][:, None])


def _prediction(found: Found, z: Tensor, p: Tensor, labels: Tensor, rooms: Rooms) -> None:
    # Equal probabilities may have unequal logits, which tell who is first.
    found["predicted"].copy_(first_largest(z))
    torch.gather(p, 1, found["predicted"][:, None], out=found["confidence"][:, None])


def _mean_log_prob(found: Found, z: Tensor, p: Tensor, labels: Tensor, rooms: Rooms) -> None:
    lags, shared = _lags(found, z, p, rooms)
    torch.mean(lags, dim=1, out=found["mean_log_prob"])
    found["mean_log_prob"].add_(shared)


def _entropy(found: Found, z: Tensor, p: Tensor, labels: Tensor, rooms: Rooms) -> None:
    lags, shared = _lags(found, z, p, rooms)
    torch.sum(lags.clamp_(min=LEAST).mul_(p), dim=1, out=found["entropy"])
    found["entropy"].add_(shared).neg_()


def _sum_of_squares(found: Found, z: Tensor, p: Tensor, labels: Tensor, rooms: Rooms) -> None:
    squares = torch.square(p, out=rooms.of("spare", p))
    torch.sum(squares, dim=1, out=found["sum_of_squares"])


WRITE: dict[str, Write] = {
    "true_prob": _true_prob,
    "confidence": _prediction,
    "mean_log_prob": _mean_log_prob,
    "entropy": _entropy,
    "sum_of_squares": _sum_of_squares,
}
"""What writes a statistic of a block, with the confidence the predicted class."""


def ranks(p: Tensor, labels: Tensor, temperature: float, rooms: Rooms) -> Tensor:
    """The soft rank of the true class of each row."""
    share, _ = _shares(p, labels, temperature, rooms)
    # The true class meets itself at one half, and the rank counts from one.
    return share.sum(dim=1).add_(0.5)


def write_gradient(
    target: Tensor,
    z: Tensor,
    p: Tensor,
    labels: Tensor,
    found: Found,
    slopes: Slopes,
    rank: tuple[Tensor, float] | None,
    rooms: Rooms,
) -> None:
    """The gradient of the logits into `target`, which may be where they or their chances are.

    - `rank`: the gradient of the soft rank, and its temperature.
    """
    lags, steep = None, None
    if slopes.by_log_p is not None:
        lags, shared = _lags(found, z, p, rooms)
        lags.clamp_(min=LEAST)
        slopes = slopes._replace(common=slopes.common + slopes.by_log_p * shared)
    if rank is not None:
        steep, pull = _steepness(p, labels, *rank, rooms)
        slopes = slopes._replace(common=slopes.common - pull)
    # Narrow numbers are written once, when everything is added up.
    full = target if target.dtype == p.dtype else p
    write(full, p, lags, slopes, steep=steep)
    if full is not target:
        target.copy_(full)


def _lags(found: Found, z: Tensor, p: Tensor, rooms: Rooms) -> tuple[Tensor, Tensor]:
    """Logarithms of probabilities in two parts, which keep the digits of both.

    How far each logit is from the largest of its row, and the logarithm of the latter's chance.
    """
    if "predicted" in found:
        largest, most = entry(z, found["predicted"]), found["confidence"]
    else:
        largest, most = z.amax(dim=1), p.amax(dim=1)
    return torch.sub(z, largest[:, None], out=rooms.of("lags", z)), most.log()


def _steepness(
    p: Tensor, labels: Tensor, by_rank: Tensor, temperature: float, rooms: Rooms
) -> tuple[Tensor, Tensor]:
    """The slope of each class that comes from the soft rank, and what is taken off all of them."""
    share, own = _shares(p, labels, temperature, rooms)
    spare, truth = rooms.of("spare", p), labels[:, None]
    steep = share.mul_(torch.sub(1, share, out=spare)).scatter_(1, truth, 0)
    slopes = steep.sum(dim=1, keepdim=True)
    pull = torch.mul(steep, p, out=spare).sum(dim=1, keepdim=True) - slopes * own
    upstream = temperature * by_rank[:, None]
    steep.scatter_(1, truth, -slopes).mul_(upstream)
    return steep, (pull * upstream).squeeze(1)


def _shares(p: Tensor, labels: Tensor, temperature: float, rooms: Rooms) -> tuple[Tensor, Tensor]:
    """How far each class is ahead of the true one, from 0 to 1, and the latter's probability."""
    own = p.gather(1, labels[:, None])
    share = torch.sub(p, own, out=rooms.of("share", p))
    return share.mul_(temperature).sigmoid_(), own
