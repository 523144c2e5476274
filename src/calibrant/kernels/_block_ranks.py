"""The soft rank of a block of logits in torch operators, and the gradient from it."""

import torch
from torch import Tensor

from ._block_rows import base_of
from ._finish import Finish
from ._places import entry, place
from ._table import Ranked
from ._tiles import Part


def ranks(product: Tensor, labels: Tensor, temperature: float, finish: Finish) -> Tensor:
    """A table whose first row holds the soft ranks, the others what their gradient needs."""
    z = finish.applied(product)
    base = base_of(z.amax(dim=1))
    p = (z - base[:, None]).exp_()
    total = p.sum(dim=1)
    p /= total[:, None]
    own = entry(p, labels)
    share = (p - own[:, None]).mul_(temperature).sigmoid_()
    rank = 0.5 + share.sum(dim=1)
    slope = share.mul_(1 - share).mul_(temperature).scatter_(1, labels[:, None], 0)
    slopes = slope.sum(dim=1)
    pull = slope.mul_(p).sum(dim=1) - slopes * own
    return torch.stack([rank, base, total.log(), own, slopes, pull])


def rank_gradient_(
    product: Tensor, labels: Tensor, rank: Ranked, part: Part, finish: Finish
) -> None:
    """The gradient of the product from that of the ranks, written over it."""
    z = finish.applied(product)
    _, base, log_sum, own, slopes, pull = rank.table[:, :, None].unbind(0)
    p = (z - base).sub_(log_sum).exp_()
    share = (p - own).mul_(rank.temperature).sigmoid_()
    steep = share.mul_(1 - share).mul_(rank.temperature)
    where, inside = place(labels, part, p.shape[1])
    others = -slopes if inside is None else torch.where(inside, -slopes, steep.gather(1, where))
    steep.scatter_(1, where, others).sub_(pull).mul_(rank.upstream[:, None])
    product.copy_(finish.pulled_back_(steep.mul_(p), z))
