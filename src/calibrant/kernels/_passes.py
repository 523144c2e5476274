"""The passes over all logits that stand behind a node of the autograd graph."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Passes(NamedTuple):
    """Forward and backward, as one kind of device has them.

    - `finds`: the statistics in the first rows of the table, the last of which, whether a
      prediction is right, has no gradient.
    - `statistics`: logits and labels in; the table and the predicted classes out.
    - `gradient`: these four and the gradients of what it finds in, that of the logits out.
    - `ranks`: logits, labels and a temperature in, a table with the soft ranks out.
    - `rank_gradient`: all of that and the gradient of the ranks in, that of the logits out.
    """

    finds: tuple[str, ...]
    statistics: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    gradient: Callable[..., Tensor]
    ranks: Callable[..., Tensor]
    rank_gradient: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor]
