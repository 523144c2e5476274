"""What is done to the product of hidden states and classifier before it is called logits."""

from typing import NamedTuple

import torch
from torch import Tensor


class Finish(NamedTuple):
    r"""$z = s x$, and with a soft cap $z = c \tanh(s x / c)$, of products $x$."""

    scale: float = 1.0
    softcap: float | None = None

    def applied(self, product: Tensor) -> Tensor:
        """The logits, no narrower than float32; the product itself where nothing is done to it."""
        z = product.to(torch.promote_types(product.dtype, torch.float32))
        if self.scale != 1:
            z = z * self.scale
        if self.softcap is not None:
            z = (z / self.softcap).tanh() * self.softcap
        return z

    def pulled_back_(self, gradient: Tensor, logits: Tensor) -> Tensor:
        """The gradient of the product from that of the logits, written over it."""
        if self.softcap is not None:
            gradient.mul_(1 - (logits / self.softcap).square())
        return gradient.mul_(self.scale) if self.scale != 1 else gradient


AS_IT_IS = Finish()
"""Logits are the product itself."""
