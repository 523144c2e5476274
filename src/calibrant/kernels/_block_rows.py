"""The passes over a block of logits in torch operators, where no kernel can run.

Statistics are of whole rows; a gradient is of some columns of them, once the table of the rows is
known. The formulas are in docs/derivations/rows.md.
"""

import torch
from torch import Tensor

from ._finish import Finish
from ._table import DIFFERENTIABLE, TABLE
from ._tiles import Part


def statistics(product: Tensor, labels: Tensor, finish: Finish) -> tuple[Tensor, Tensor]:
    """The table of `TABLE`, one column per row of logits, and the predicted classes."""
    z = finish.applied(product)
    predicted = z.argmax(dim=1)
    base = _base(z)
    z.sub_(base[:, None])
    lead, level = _entry(z, labels), z.mean(dim=1)
    # What is ruled out adds 0 * -1000, where 0 * -inf would be NaN.
    weight = z.clamp_(min=-1000).exp()
    total = weight.sum(dim=1)
    log_sum = total.log()
    found = {
        "true_log_prob": lead - log_sum,
        "confidence": (_entry(z, predicted) - log_sum).exp(),
        "entropy": log_sum - (z * weight).sum(dim=1) / total,
        "sum_of_squares": weight.square().sum(dim=1) / total.square(),
        "mean_log_prob": level - log_sum,
        "correct": (predicted == labels).to(z.dtype),
        "largest": base,
        "log_sum": log_sum,
    }
    return torch.stack([found[name] for name in TABLE]), predicted


def gradient_(
    product: Tensor,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: tuple[Tensor | None, ...],
    part: Part,
    finish: Finish,
) -> Tensor:
    """The gradient of the product from those of `DIFFERENTIABLE`, written over it."""
    z = finish.applied(product)
    known = dict(zip(TABLE, table[:, :, None].unbind(0), strict=True))
    given = {
        name: each[:, None]
        for name, each in zip(DIFFERENTIABLE, upstream, strict=True)
        if each is not None
    }
    log_p = z - known["largest"] - known["log_sum"]
    p = log_p.exp()
    slope = torch.zeros_like(p)
    own = torch.zeros_like(p)
    if (g := given.get("true_log_prob")) is not None:
        slope -= g
        _add_at(own, labels - part.first, g)
    if (g := given.get("confidence")) is not None:
        g = g * known["confidence"]
        slope -= g
        _add_at(own, predicted - part.first, g)
    if (g := given.get("entropy")) is not None:
        # A class ruled out has no share in the entropy.
        slope -= g * (torch.where(p > 0, log_p, 0) + known["entropy"])
    if (g := given.get("sum_of_squares")) is not None:
        slope += 2 * g * (p - known["sum_of_squares"])
    if (g := given.get("mean_log_prob")) is not None:
        slope -= g
        own += g / (part.classes or p.shape[1])
    return product.copy_(finish.pulled_back_(p.mul_(slope).add_(own), z))


def ranks(product: Tensor, labels: Tensor, temperature: float, finish: Finish) -> Tensor:
    """A table whose first row holds the soft ranks, the others what `rank_gradient_` needs."""
    z = finish.applied(product)
    base = _base(z)
    p = z.sub_(base[:, None]).exp_()
    total = p.sum(dim=1)
    p /= total[:, None]
    own = _entry(p, labels)
    share = (temperature * (p - own[:, None])).sigmoid()
    slope = (temperature * share * (1 - share)).scatter_(1, labels[:, None], 0)
    slopes = slope.sum(dim=1)
    pull = (slope * p).sum(dim=1) - slopes * own
    return torch.stack([0.5 + share.sum(dim=1), base, total.log(), own, slopes, pull])


def rank_gradient_(
    product: Tensor,
    labels: Tensor,
    table: Tensor,
    upstream: Tensor,
    temperature: float,
    part: Part,
    finish: Finish,
) -> Tensor:
    """The gradient of the product from that of the ranks, written over it."""
    z = finish.applied(product)
    _, base, log_sum, own, slopes, pull = table[:, :, None].unbind(0)
    p = (z - base - log_sum).exp()
    share = (temperature * (p - own)).sigmoid()
    slope = temperature * share * (1 - share)
    column = torch.arange(part.first, part.first + p.shape[1], device=p.device)
    slope = torch.where(column == labels[:, None], -slopes, slope)
    return product.copy_(finish.pulled_back_(upstream[:, None] * p * (slope - pull), z))


def _base(z: Tensor) -> Tensor:
    """The largest logit; any will do where all are ruled out by minus infinity."""
    largest = z.amax(dim=1)
    return torch.where(largest == float("-inf"), 0, largest)


def _entry(table: Tensor, column: Tensor) -> Tensor:
    return table.gather(1, column[:, None]).squeeze(1)


def _add_at(table: Tensor, column: Tensor, added: Tensor) -> None:
    """Add to one entry of each row, where it lies among these columns."""
    inside = (column >= 0) & (column < table.shape[1])
    place = torch.where(inside, column, 0)[:, None]
    table.scatter_add_(1, place, torch.where(inside[:, None], added, 0))
