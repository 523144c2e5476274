"""Images out of focus, through glass, in motion, zoomed into. They run from 0 to 255."""

import numpy as np
import torch
from torch import Generator, Tensor

from ._filters import filtered, gaussian_blur, zoomed
from ._noise import uniform


def gaussian(images: Tensor, draws: Generator, sigma: float) -> Tensor:
    """A Gaussian of so many pixels."""
    return gaussian_blur(images, sigma, "nearest")


def defocus(images: Tensor, draws: Generator, radius: float, alias: float) -> Tensor:
    """Every point a disc, its rim softened by a small Gaussian."""
    reach = int(radius) + 1
    across = torch.arange(-reach, reach + 1, dtype=torch.float64)
    disc = (across[:, None] ** 2 + across**2 <= radius**2).double()
    rim = torch.exp(-0.5 * (torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64) / alias) ** 2)
    rim = rim[:, None] * rim
    wide = torch.zeros(2 * reach + 3, 2 * reach + 3, dtype=torch.float64)
    for down in range(3):
        for right in range(3):
            side = 2 * reach + 1
            wide[down : down + side, right : right + side] += rim[down, right] * disc
    return filtered(images, wide / wide.sum(), "mirror")


def glass(images: Tensor, draws: Generator, sigma: float, reach: int, rounds: int) -> Tensor:
    """Pixels that show their neighbour, between two small blurs.

    The original means to exchange two pixels. Both sides of its assignment are views of the same
    array, so that it only copies the second into the first, always from above or from the left
    and from the bottom right upwards; which is one gathering for all pixels at once.
    """
    seen = gaussian_blur(images, sigma, "nearest").floor()
    n, channels, side, _ = seen.shape
    place = torch.arange(side, device=seen.device)
    inside = (place > reach) & (place <= side - reach)
    moves = inside[:, None] & inside
    for _ in range(rounds):
        offset = torch.randint(-reach, reach, (2, n, side, side), generator=draws).to(seen.device)
        offset = offset * moves
        rows, columns = place[:, None] + offset[0], place + offset[1]
        flat = (rows * side + columns).reshape(n, 1, -1).expand(-1, channels, -1)
        seen = seen.flatten(2).gather(2, flat).reshape(seen.shape)
    return gaussian_blur(seen, sigma, "nearest")


def moved(images: Tensor, radius: int, sigma: float, degrees: Tensor) -> Tensor:
    """Images smeared in a direction, each in its own, with a trace that fades to one side.

    A Gaussian's right half along a line of whole pixels, the edge repeated beyond the edge: what
    ImageMagick's motion blur computes, rounded to bytes as there.
    """
    taps = 2 * radius + 1
    weights = np.exp(-0.5 * (np.arange(taps) / sigma) ** 2)
    weights /= weights.sum()
    angle = degrees.double().deg2rad()
    n, channels, height, width = images.shape
    rows = torch.arange(height, device=images.device)[None, :, None]
    columns = torch.arange(width, device=images.device)[None, None, :]
    smeared = torch.zeros_like(images)
    for tap in range(taps):
        right = (tap * angle.cos() - 0.5).ceil().long().to(images.device)[:, None, None]
        down = (tap * angle.sin() - 0.5).ceil().long().to(images.device)[:, None, None]
        place = (rows + down).clamp(0, height - 1) * width + (columns + right).clamp(0, width - 1)
        flat = place.reshape(n, 1, -1).expand(-1, channels, -1)
        smeared += float(weights[tap]) * images.flatten(2).gather(2, flat).reshape(images.shape)
    return (smeared + 0.5).floor()


def motion(images: Tensor, draws: Generator, radius: int, sigma: float) -> Tensor:
    """The camera moved, within 45 degrees of the horizontal."""
    return moved(images, radius, sigma, uniform((len(images),), -45.0, 45.0, draws))


def zoom(images: Tensor, draws: Generator, end: float) -> Tensor:
    """The camera moved forwards: the mean of the image zoomed into from 1 up to `end`."""
    factors = np.arange(1, end, 0.01)
    total = images.clone()
    for factor in factors:
        total += zoomed(images, float(factor))
    return total / (len(factors) + 1)
