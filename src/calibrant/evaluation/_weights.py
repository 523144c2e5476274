"""Resamples as weights: how often each sample was drawn, never a copy of its row."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
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
    for rows in _blocks(draws, n):
        drawn = torch.randint(n, (rows, n), generator=generator, device=weights.device)
        cell = drawn + n * torch.arange(rows, device=weights.device)[:, None]
        yield cell.reshape(-1).bincount(minlength=rows * n).reshape(rows, n) * weights


@dataclass(frozen=True, eq=False)
class Population:
    """Crowds of samples that are drawn together.

    - `weights`: what the samples of each crowd come to. `count`: to how many alike they amount.
    - `crowd`: that of each sample that counts, where it is known.
    """

    weights: Float[Tensor, " crowds"]
    count: Float[Tensor, " crowds"]
    crowd: Int[Tensor, " counted"] | None = None

    def blocks(self, draws: int, seed: int) -> Iterator[Float[Tensor, "block crowds"]]:
        """What is drawn of each crowd, block by block: a Poisson number of its samples.

        Three hundred samples of weight two, four times: an even number each time.

        >>> crowd = Population(torch.tensor([600.0]), torch.tensor([300.0]))
        >>> (block,) = crowd.blocks(4, seed=0)
        >>> block.shape, bool((block % 2 == 0).all())
        (torch.Size([4, 1]), True)
        """
        generator = torch.Generator(self.weights.device).manual_seed(seed)
        each = self.weights / self.count
        for rows in _blocks(draws, len(self.count)):
            expected = self.count.expand(rows, -1).contiguous()
            yield torch.poisson(expected, generator=generator) * each


def _blocks(draws: int, n: int) -> Iterator[int]:
    """How many draws at a time."""
    at_once = max(1, _AT_ONCE // max(n, 1))
    for done in range(0, draws, at_once):
        yield min(at_once, draws - done)


def alike(
    slot: Int[Tensor, " n"],
    slots: int,
    weights: Float[Tensor, " n"],
    squares: Float[Tensor, " n"],
) -> Float[Tensor, " slots"]:
    """To how many samples of one weight those of each slot amount; one at least.

    >>> weights = torch.tensor([2.0, 2.0, 3.0, 1.0])
    >>> alike(torch.tensor([0, 0, 1, 1]), 3, weights, weights.square())
    tensor([2.0000, 1.6000, 1.0000])
    """
    mass, squared = (
        torch.zeros(slots, dtype=x.dtype, device=x.device).index_add(0, slot, x)
        for x in (weights, squares)
    )
    return (mass.square() / torch.where(squared > 0, squared, 1)).clamp(min=1)


def in_shares(weights: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """How much of the whole each sample is."""
    total = weights.sum()
    return weights / torch.where(total > 0, total, 1)
