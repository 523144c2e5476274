"""The gradient of some logits from those of the statistics of their rows, in torch operators.

It is each probability times a slope, and something of its own for a class or two. The formulas are
in docs/derivations/rows.md.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from ._places import add_at
from ._tiles import ALL, Part

# What is ruled out by minus infinity adds 0 * -1000, where 0 * -inf would be NaN.
LEAST = -1000


class Slopes(NamedTuple):
    """What the gradients of rows are made of: one number per row each, or none where it is zero.

    - `common`: what the slopes of all classes of a row have in common.
    - `by_log_p`, `by_p`: what multiplies the logarithm of a probability in its slope, and itself.
    - `level`: what is added to every gradient.
    - `own`: classes, and what is added to the gradients of these.
    """

    common: Tensor
    by_log_p: Tensor | None = None
    by_p: Tensor | None = None
    level: Tensor | None = None
    own: tuple[tuple[Tensor, Tensor], ...] = ()

    def of(self, rows: slice) -> "Slopes":
        """Those of some rows."""
        by_log_p, by_p, level = (None if each is None else each[rows] for each in self[1:4])
        own = tuple((which[rows], added[rows]) for which, added in self.own)
        return Slopes(self.common[rows], by_log_p, by_p, level, own)


def slopes_of(
    known: Mapping[str, Tensor],
    given: Mapping[str, Tensor],
    labels: Tensor,
    classes: int,
) -> Slopes:
    """What follows from the gradients of some statistics of rows, and from these themselves."""
    common = torch.zeros_like(next(iter(given.values())))
    by_log_p = by_p = level = None
    own = []
    if (g := given.get("true_log_prob")) is not None:
        common -= g
        own.append((labels, g))
    if (g := given.get("confidence")) is not None:
        g = g * known["confidence"]
        common -= g
        own.append((known["predicted"], g))
    if (g := given.get("entropy")) is not None:
        common -= g * known["entropy"]
        by_log_p = -g
    if (g := given.get("sum_of_squares")) is not None:
        by_p = 2 * g
        common -= by_p * known["sum_of_squares"]
    if (g := given.get("mean_log_prob")) is not None:
        common -= g
        level = g / classes
    return Slopes(common, by_log_p, by_p, level, tuple(own))


def write(
    out: Tensor,
    p: Tensor,
    log_p: Tensor | None,
    slopes: Slopes,
    *,
    steep: Tensor | None = None,
    part: Part = ALL,
) -> None:
    """The gradient of the logits into `out`.

    - `p`: their probabilities. `out` may be the same memory.
    - `log_p`: logarithms of these, no less than `LEAST`, where the slopes ask for them.
    - `steep`: what else is in the slope of each class. Both are overwritten.
    - `part`: which classes these are, if not all.
    """
    slope = steep
    if slopes.by_log_p is not None:
        assert log_p is not None
        by_log_p = slopes.by_log_p[:, None]
        slope = log_p.mul_(by_log_p) if slope is None else slope.addcmul_(log_p, by_log_p)
    if slopes.by_p is not None:
        by_p = slopes.by_p[:, None]
        if slope is None:
            slope = torch.mul(p, by_p, out=None if out is p else out)
        else:
            slope.addcmul_(p, by_p)
    common = slopes.common[:, None]
    torch.mul(p, common if slope is None else slope.add_(common), out=out)
    for column, added in slopes.own:
        add_at(out, column, added[:, None], part)
    if slopes.level is not None:
        out += slopes.level[:, None]
