"""Clouds by repeated halving of a square."""

import torch
from torch import Generator, Tensor

from ._noise import uniform


def plasma(n: int, side: int, decay: float, draws: Generator) -> Tensor:
    """Fractal height maps from 0 to 1, of shape (n, 1, side, side), `side` a power of two.

    The diamond-square algorithm on a torus: the middle of each square is the mean of its corners
    and a random number, then the middle of each edge likewise, with smaller and smaller random
    numbers and squares.

    - `decay`: by which the random numbers shrink at each halving; they are in proportion to the
      square of that, since the original multiplies twice.
    """
    heights = torch.zeros(n, side, side)
    step, wobble = side, 100.0

    def middle(total: Tensor) -> Tensor:
        return total / 4 + wobble * uniform(tuple(total.shape), -wobble, wobble, draws)

    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        pairs = corners + corners.roll(-1, 1)
        heights[:, half::step, half::step] = middle(pairs + pairs.roll(-1, 2))
        centres, corners = heights[:, half::step, half::step], heights[:, ::step, ::step]
        above = centres + centres.roll(1, 1) + corners + corners.roll(-1, 2)
        heights[:, ::step, half::step] = middle(above)
        beside = centres + centres.roll(1, 2) + corners + corners.roll(-1, 1)
        heights[:, half::step, ::step] = middle(beside)
        step, wobble = half, wobble / decay
    heights -= heights.amin(dim=(1, 2), keepdim=True)
    return (heights / heights.amax(dim=(1, 2), keepdim=True))[:, None]
