"""Counts of cells along a ray of truths, each place from the one before."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor


def thinned(
    hits: Float[Tensor, "draws cells"],
    count: Float[Tensor, " cells"],
    chance: Float[Tensor, " cells"],
    truth: Float[Tensor, " cells"],
    scales: Float[Tensor, " scales"],
    rng: torch.Generator,
) -> Iterator[Float[Tensor, "draws cells"]]:
    """How often it happens in each cell, had the truth been each multiple of some gaps.

    - `hits`: of `count` samples, drawn with `chance`. `truth`: the gaps.

    A chance that falls thins the hits, one that rises thins the misses, from place to place of a
    ray: each has its own law, and neighbours differ by little.
    """
    rises = truth > 0
    kept = torch.where(rises, count - hits, hits)
    before = torch.where(rises, 1 - chance, chance)
    for scale in scales:
        moved = (chance + scale * truth).clamp(0, 1)
        now = torch.where(rises, 1 - moved, moved)
        stay = torch.where(before > 0, now / torch.where(before > 0, before, 1), 0)
        kept = torch.binomial(kept, stay.clamp(0, 1).expand_as(kept), rng)
        before = now
        yield torch.where(rises, count - kept, kept) / count
