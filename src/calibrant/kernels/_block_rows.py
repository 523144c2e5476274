"""The passes over a block of logits in torch operators, where no kernel can run.

Statistics are of whole rows; a gradient is of some columns of them, once the table of the rows is
known. The formulas are in docs/derivations/rows.md.
"""

import torch
from torch import Tensor

from .._tables import first_largest
from ._finish import AS_IT_IS, Finish
from ._table import DIFFERENTIABLE, TABLE, Ranked
from ._tiles import ALL, Part

# What is ruled out by minus infinity adds 0 * -1000, where 0 * -inf would be NaN.
_LEAST = -1000


def statistics(product: Tensor, labels: Tensor, finish: Finish = AS_IT_IS) -> tuple[Tensor, Tensor]:
    """The table of `TABLE`, one column per row of logits, and the predicted classes."""
    z = finish.applied(product)
    predicted = first_largest(z)
    largest = _entry(z, predicted)
    base = _base(largest)
    shifted = z - base[:, None]
    lead, level = _entry(shifted, labels), shifted.mean(dim=1)
    weight = shifted.clamp_(min=_LEAST).exp()
    total = weight.sum(dim=1)
    log_sum = total.log()
    found = {
        "true_log_prob": lead - log_sum,
        "confidence": (largest - base - log_sum).exp(),
        "entropy": log_sum - shifted.mul_(weight).sum(dim=1) / total,
        "sum_of_squares": weight.square_().sum(dim=1) / total.square(),
        "mean_log_prob": level - log_sum,
        "correct": (predicted == labels).to(z.dtype),
        "largest": base,
        "log_sum": log_sum,
    }
    return torch.stack([found[name] for name in TABLE]), predicted


def write_gradient(
    target: Tensor,
    product: Tensor,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: tuple[Tensor | None, ...],
    *,
    rank: Ranked | None = None,
    part: Part = ALL,
    finish: Finish = AS_IT_IS,
) -> None:
    """The gradient of the product from those of `DIFFERENTIABLE`, in that order, into `target`.

    - `target`: the product itself, or memory of its shape.
    - `rank`: what comes from the soft rank.
    - `part`: which classes these are, if not all.
    """
    z = finish.applied(product)
    known = dict(zip(TABLE, table[:, :, None].unbind(0), strict=True))
    given = {
        name: each[:, None]
        for name, each in zip(DIFFERENTIABLE, upstream, strict=True)
        if each is not None
    }
    log_p = (z - known["largest"]).sub_(known["log_sum"]).clamp_(min=_LEAST)
    p = log_p.exp()
    # The slope of a class: what all classes of a row have in common, and what each has beside it.
    common = torch.zeros_like(known["log_sum"])
    slope: Tensor | None = None
    own: list[tuple[Tensor, Tensor]] = []
    if (g := given.get("true_log_prob")) is not None:
        common -= g
        own.append((labels, g))
    if (g := given.get("confidence")) is not None:
        g = g * known["confidence"]
        common -= g
        own.append((predicted, g))
    if (g := given.get("entropy")) is not None:
        common -= g * known["entropy"]
        slope = log_p.mul_(-g)
    if (g := given.get("sum_of_squares")) is not None:
        common -= 2 * g * known["sum_of_squares"]
        slope = p * (2 * g) if slope is None else slope.addcmul_(p, 2 * g)
    if (level := given.get("mean_log_prob")) is not None:
        common -= level
    if rank is not None:
        steep = _steepness(p, labels, rank, part)
        slope = steep if slope is None else slope.add_(steep)
    slope = common if slope is None else slope.add_(common)
    # Narrow numbers are written once, when everything is added up.
    found = target if target.dtype == p.dtype else p
    torch.mul(p, slope, out=found)
    for column, added in own:
        _add_at(found, column, added, part)
    if level is not None:
        found += level / (part.classes or p.shape[1])
    finish.pulled_back_(found, z)
    if found is not target:
        target.copy_(found)


def ranks(
    product: Tensor,
    labels: Tensor,
    temperature: float,
    finish: Finish = AS_IT_IS,
    known: Tensor | None = None,
) -> Tensor:
    """A table whose first row holds the soft ranks, the others what their gradient needs.

    - `known`: the table of `statistics`, where it is there.
    """
    z = finish.applied(product)
    if known is None:
        base = _base(z.amax(dim=1))
        p = (z - base[:, None]).exp_()
        total = p.sum(dim=1)
        log_sum = total.log()
        p /= total[:, None]
    else:
        base, log_sum = known[-2], known[-1]
        p = (z - base[:, None]).sub_(log_sum[:, None]).exp_()
    own = _entry(p, labels)
    share = (p - own[:, None]).mul_(temperature).sigmoid_()
    rank = 0.5 + share.sum(dim=1)
    slope = share.mul_(1 - share).mul_(temperature).scatter_(1, labels[:, None], 0)
    slopes = slope.sum(dim=1)
    pull = slope.mul_(p).sum(dim=1) - slopes * own
    return torch.stack([rank, base, log_sum, own, slopes, pull])


def write_rank_gradient(
    target: Tensor,
    product: Tensor,
    labels: Tensor,
    rank: Ranked,
    *,
    part: Part = ALL,
    finish: Finish = AS_IT_IS,
) -> None:
    """The gradient of the product from that of the ranks alone; settings as above."""
    z = finish.applied(product)
    base, log_sum = rank.table[1, :, None], rank.table[2, :, None]
    p = (z - base).sub_(log_sum).exp_()
    found = finish.pulled_back_(_steepness(p, labels, rank, part).mul_(p), z)
    target.copy_(found)


def _steepness(p: Tensor, labels: Tensor, rank: Ranked, part: Part) -> Tensor:
    """The slope of each class that comes from the soft rank of the true one."""
    _, _, _, own, slopes, pull = rank.table[:, :, None].unbind(0)
    share = (p - own).mul_(rank.temperature).sigmoid_()
    steep = share.mul_(1 - share).mul_(rank.temperature)
    place, inside = _place(labels, part, p.shape[1])
    others = -slopes if inside is None else torch.where(inside, -slopes, steep.gather(1, place))
    return steep.scatter_(1, place, others).sub_(pull).mul_(rank.upstream[:, None])


def _base(largest: Tensor) -> Tensor:
    """The largest logit; any will do where all are ruled out by minus infinity."""
    return torch.where(largest == float("-inf"), 0, largest)


def _entry(table: Tensor, column: Tensor) -> Tensor:
    return table.gather(1, column[:, None]).squeeze(1)


def _add_at(table: Tensor, column: Tensor, added: Tensor, part: Part) -> None:
    """Add to one entry of each row, where it lies among these columns."""
    place, inside = _place(column, part, table.shape[1])
    table.scatter_add_(1, place, added if inside is None else torch.where(inside, added, 0))


def _place(column: Tensor, part: Part, width: int) -> tuple[Tensor, Tensor | None]:
    """Where a class stands in each row, and whether it does, if that can be asked."""
    if part.classes is None:
        return column[:, None], None
    place = column[:, None] - part.first
    inside = (place >= 0) & (place < width)
    return torch.where(inside, place, 0), inside
