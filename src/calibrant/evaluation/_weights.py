"""Resamples as weights: how often each sample was drawn, never a copy of its row."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

# Weights drawn at once: 32 MiB of them.
_AT_ONCE = 2**22


def multinomial_weights(
    weights: Float[Tensor, " n"], draws: int, seed: int, at_once: int = 0
) -> Iterator[Float[Tensor, "block n"]]:
    """Multinomial counts of n draws from n samples, times their own weights, block by block.

    - `at_once`: how many weights a block may hold, where that is more than 32 MiB of them.

    Memory is bounded whatever the number of draws. The same seed gives the same weights on
    the same kind of device.

    >>> blocks = list(multinomial_weights(torch.ones(5), 3, seed=0))
    >>> blocks[0].sum(dim=1)
    tensor([5., 5., 5.])
    """
    n = len(weights)
    generator = torch.Generator(weights.device).manual_seed(seed)
    few = max(1, _AT_ONCE // n)
    many = max(few, at_once // n)
    for done in range(0, draws, many):
        block = weights.new_empty(min(many, draws - done), n)
        for part in block.split(few):
            drawn = torch.randint(n, part.shape, generator=generator, device=weights.device)
            cell = drawn + n * torch.arange(len(part), device=weights.device)[:, None]
            counts = cell.reshape(-1).bincount(minlength=part.numel()).reshape(part.shape)
            torch.mul(counts, weights, out=part)
        yield block
