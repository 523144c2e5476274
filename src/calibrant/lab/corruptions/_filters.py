"""Filters of many images at once, each with the edge that its original has.

Whatever acts on rows and columns alike is a matrix, applied from both sides: one product for all
images, with the edge in the matrix.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Edge = Literal["nearest", "mirror", "reflect"]
"""What is beyond the last pixel: that pixel; the image mirrored on it; or mirrored behind it."""


def both_ways(images: Tensor, matrix: Tensor) -> Tensor:
    """The matrix applied to every column, then to every row."""
    own = matrix.to(images)
    return own @ images @ own.T


def folded(place: npt.NDArray[np.int64], side: int, edge: Edge) -> npt.NDArray[np.int64]:
    """For places beyond an image of so many pixels, the pixel seen there."""
    if edge == "nearest":
        return place.clip(0, side - 1)
    period = 2 * side if edge == "reflect" else 2 * side - 2
    place = place % period
    return np.where(place < side, place, (period - 1 if edge == "reflect" else period) - place)


def filtered(images: Tensor, kernel: Tensor, edge: Edge) -> Tensor:
    """Every channel correlated with a square kernel of odd size."""
    reach, side = len(kernel) // 2, images.shape[-1]
    places = torch.from_numpy(folded(np.arange(-reach, side + reach), side, edge))
    wide = images[..., places[:, None].to(images.device), places.to(images.device)]
    total = torch.zeros_like(images)
    for down, row in enumerate(kernel.tolist()):
        for right, weight in enumerate(row):
            if abs(weight) > 1e-12:
                total += weight * wide[..., down : down + side, right : right + side]
    return total


def gaussian_blur(images: Tensor, sigma: float, edge: Edge, truncate: float = 4.0) -> Tensor:
    """A Gaussian of standard deviation `sigma`, cut off at `truncate` of them."""
    radius, side = int(truncate * sigma + 0.5), images.shape[-1]
    if radius == 0:
        return images
    offsets = np.arange(-radius, radius + 1)
    weights = np.exp(-0.5 * (offsets / sigma) ** 2)
    matrix = np.zeros((side, side))
    for offset, weight in zip(offsets, weights / weights.sum(), strict=True):
        np.add.at(matrix, (np.arange(side), folded(np.arange(side) + offset, side, edge)), weight)
    return both_ways(images, torch.from_numpy(matrix))


def zoomed(images: Tensor, factor: float) -> Tensor:
    """The middle of the images, so many times larger, at the size they had.

    Bilinear, and the corner pixels of the middle stay corner pixels, as in SciPy.
    """
    side = images.shape[-1]
    cut = int(np.ceil(side / factor))
    larger = round(cut * factor)
    seen = np.arange(side) + (larger - side) // 2
    place = seen * (cut - 1) / (larger - 1) + (side - cut) // 2
    before = np.floor(place).astype(np.int64)
    matrix = np.zeros((side, side))
    rows = np.arange(side)
    matrix[rows, before] = 1 - (place - before)
    matrix[rows, (before + 1).clip(max=side - 1)] += place - before
    return both_ways(images, torch.from_numpy(matrix))
