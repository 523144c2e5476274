"""The passes over a block of logits in torch operators, where no kernel can run.

Statistics are of whole rows; a gradient is of some columns of them, once the table of the rows is
known. The formulas are in docs/derivations/rows.md.
"""

import torch
from torch import Tensor

from .._tables import first_largest
from ._finish import Finish
from ._places import entry
from ._slopes import LEAST, slopes_of, write
from ._table import DIFFERENTIABLE, TABLE
from ._tiles import Part


def statistics(product: Tensor, labels: Tensor, finish: Finish) -> tuple[Tensor, Tensor]:
    """The table of `TABLE`, one column per row of logits, and the predicted classes."""
    z = finish.applied(product)
    predicted = first_largest(z)
    largest = entry(z, predicted)
    base = base_of(largest)
    shifted = z - base[:, None]
    lead, level = entry(shifted, labels), shifted.mean(dim=1)
    weight = shifted.clamp_(min=LEAST).exp()
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


def gradient_(
    product: Tensor,
    labels: Tensor,
    table: Tensor,
    predicted: Tensor,
    upstream: tuple[Tensor | None, ...],
    part: Part,
    finish: Finish,
) -> None:
    """The gradient of the product from those of `DIFFERENTIABLE`, written over it."""
    z = finish.applied(product)
    known = dict(zip(TABLE, table.unbind(0), strict=True)) | {"predicted": predicted}
    named = zip(DIFFERENTIABLE, upstream, strict=True)
    given = {name: each for name, each in named if each is not None}
    slopes = slopes_of(known, given, labels, part.classes or z.shape[1])
    log_p = (z - known["largest"][:, None]).sub_(known["log_sum"][:, None])
    p = log_p.clamp_(min=LEAST).exp()
    # Narrow numbers are written once, when everything is added up.
    found = product if product.dtype == p.dtype else p
    write(found, p, log_p, slopes, part=part)
    finish.pulled_back_(found, z)
    if found is not product:
        product.copy_(found)


def base_of(largest: Tensor) -> Tensor:
    """The largest logit; any will do where all are ruled out by minus infinity."""
    return torch.where(largest == float("-inf"), 0, largest)
