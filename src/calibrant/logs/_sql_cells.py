"""Which bin and which cell a chance falls into, as expressions that a database evaluates.

Both are the same as `torch.bucketize` finds, to the last bit: arithmetic guesses, and comparisons
with the edges themselves decide.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

# How far, as a share of a step, two computations of the same log-odds may differ.
_SLACK = 1e-6


def bin_of(ibis: Any, chance: Any, bins: int, *, narrow: bool) -> Any:
    """The bin of equal width, counted from 0: how many of the inner edges lie below the chance.

    - `chance`: a column expression in double precision, not NaN.
    - `narrow`: whether it holds float32 numbers, which are compared with float32 edges.
    """

    def edge(k: Any) -> Any:
        exact = k / bins
        return exact.cast("float32").cast("float64") if narrow else exact

    guess = ibis.least(ibis.greatest((chance * bins).ceil().cast("int64"), 1), bins)
    # The product is rounded, so the guess may be one off on either side.
    too_far = (guess > 1) & (edge(guess - 1) >= chance)
    too_near = (guess < bins) & (edge(guess) < chance)
    return guess - 1 + ibis.cases((too_far, -1), (too_near, 1), else_=0)


class Steps:
    """A table for looking up cells: the few edges near a chance, by a key computed from it.

    Keys are steps of equal width in log-odds. Each row says how many edges lie below its step,
    and lists those within it with how many edges fall on the same number.

    - `edges`: in the precision of the chances, ascending.
    - `keys`: how many steps there are; the more, the fewer edges to a step.
    """

    def __init__(self, edges: Float[Tensor, " edges"], *, keys: int) -> None:
        values, times = edges.double().unique(return_counts=True)
        inner = values[values < 1]  # in float32 the last edges are one, whose log-odds are infinite
        self.lowest, self.highest = inner[0].item(), inner[-1].item()
        self.low = torch.logit(inner[0]).item()
        width = torch.logit(inner[-1]).item() - self.low
        self.scale = (keys - 1) / width if width > 0 else 1.0
        place = (torch.logit(values.clamp(max=self.highest)) - self.low) * self.scale + 0.5
        # An edge that rounding may put into either of two steps is listed in both.
        first, last = ((place + slack).floor().clamp(0, keys - 1) for slack in (-_SLACK, _SLACK))
        step = torch.arange(keys, dtype=torch.float64)
        start, stop = torch.searchsorted(last, step), torch.searchsorted(first, step, right=True)
        below = torch.cat([times.new_zeros(1), times.cumsum(0)])
        self.columns: dict[str, Tensor] = {"step": step.long(), "below": below[start]}
        self.most = int((stop - start).max())
        for m in range(self.most):
            listed, at = start + m < stop, (start + m).clamp(max=len(values) - 1)
            # No chance is as high as 2, which fills up the steps that hold fewer edges.
            self.columns[f"edge_{m}"] = torch.where(listed, values[at], 2.0)
            self.columns[f"times_{m}"] = torch.where(listed, times[at], 0)

    def key(self, ibis: Any, chance: Any) -> Any:
        """The step of a chance, which may be null or NaN."""
        inside = ibis.least(ibis.greatest(chance, self.lowest), self.highest)
        place = ((inside / (1.0 - inside)).ln() - self.low) * self.scale + 0.5
        return place.floor().cast("int64")

    def cell(self, joined: Any, chance: Any) -> Any:
        """The cell of a chance, in a table that is joined with the row of its step."""
        cell = joined["below"]
        for m in range(self.most):
            cell = cell + (joined[f"edge_{m}"] < chance).ifelse(joined[f"times_{m}"], 0)
        return cell
