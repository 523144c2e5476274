"""Resamples as weights: how often each sample was drawn, never a copy of its row."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

# Weights held at once: 32 MiB of them.
_AT_ONCE = 2**22


def multinomial_weights(
    weights: Float[Tensor, " n"], draws: int, seed: int
) -> Iterator[Float[Tensor, "block n"]]:
    """Multinomial counts of n draws from n samples, times their own weights, block by block.

    Memory is bounded whatever the number of draws. The same seed gives the same weights on
    the same kind of device.

    >>> blocks = list(multinomial_weights(torch.ones(5), 3, seed=0))
    >>> blocks[0].sum(dim=1)
    tensor([5., 5., 5.])
    """
    n = len(weights)
    generator = torch.Generator(weights.device).manual_seed(seed)
    at_once = max(1, _AT_ONCE // n)
    for done in range(0, draws, at_once):
        rows = min(at_once, draws - done)
        drawn = torch.randint(n, (rows, n), generator=generator, device=weights.device)
        cell = drawn + n * torch.arange(rows, device=weights.device)[:, None]
        yield cell.reshape(-1).bincount(minlength=rows * n).reshape(rows, n) * weights


def in_shares(weights: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """How much of the whole each sample is."""
    total = weights.sum()
    return weights / torch.where(total > 0, total, 1)
