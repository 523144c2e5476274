"""What files and screens do to images, which run from 0 to 255."""

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor
from torch.nn.functional import grid_sample

from ._filters import gaussian_blur
from ._noise import uniform


def pixelate(images: Tensor, draws: Generator, share: float) -> Tensor:
    """Fewer pixels, shown at the old size: each the mean of the whole pixels that it covers."""
    side = images.shape[-1]
    fewer = int(side * share)
    for given, made in ((side, fewer), (fewer, side)):
        weights = _box(given, made).to(images)
        images = (images @ weights.T).add(0.5).floor()
        images = (weights @ images).add(0.5).floor()
    return images


def _box(given: int, made: int) -> Tensor:
    """Which pixels each new one is the mean of, as Pillow counts them."""
    scale = given / made
    reach = max(scale, 1.0) / 2
    weights = torch.zeros(made, given, dtype=torch.float64)
    for place in range(made):
        centre = (place + 0.5) * scale
        first, last = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), given)
        weights[place, first:last] = 1.0
    return weights / weights.sum(dim=1, keepdim=True)


def jpeg_compression(images: Tensor, draws: Generator, quality: int) -> Tensor:
    """Written as JPEG and read again, by Pillow, one by one."""
    try:
        pillow: Any = import_module("PIL.Image")
    except ImportError as missing:
        raise ImportError("JPEG needs Pillow: pip install 'calibrant[images]'") from missing
    stored = images.byte().permute(0, 2, 3, 1).cpu().numpy()

    def compressed(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        file = BytesIO()
        pillow.fromarray(image).save(file, "JPEG", quality=quality)
        return np.asarray(pillow.open(file))

    with ThreadPoolExecutor() as pool:  # Pillow lets other threads run while it compresses
        read = np.stack(list(pool.map(compressed, stored)))
    return torch.from_numpy(read).permute(0, 3, 1, 2).to(images)


def elastic_transform(
    images: Tensor, draws: Generator, strength: float, sigma: float, shear: float
) -> Tensor:
    """Images pulled about: three points moved at random, then a smooth random displacement."""
    n, _, side, _ = images.shape
    reach = side // 3
    centre = side // 2
    points = torch.tensor(
        [
            [centre + reach, centre + reach],
            [centre + reach, centre - reach],
            [centre - reach, centre - reach],
        ],
        dtype=torch.float32,
    )
    to = points + uniform((n, 3, 2), -shear, shear, draws)
    ones = torch.ones(n, 3, 1)
    # Of a pixel in the result, where it came from: the affine map that takes each moved point back.
    back = torch.linalg.solve(torch.cat([to, ones], dim=2), points.expand(n, 3, 2))
    place = torch.arange(side, dtype=torch.float32)
    down, right = torch.meshgrid(place, place, indexing="ij")
    grid = torch.stack([right, down, torch.ones_like(right)], dim=-1)
    sheared = _taken(
        images, (grid.reshape(1, -1, 3) @ back).reshape(n, side, side, 2), corners=True
    )
    pull = uniform((n, 2, side, side), -1.0, 1.0, draws)
    if sigma > 0:
        pull = gaussian_blur(pull, sigma, "reflect", truncate=3.0)
    moved = torch.stack([right, down], dim=-1) + strength * pull.permute(0, 2, 3, 1)
    return _taken(sheared, moved, corners=False)


def _taken(images: Tensor, places: Tensor, *, corners: bool) -> Tensor:
    """The images at places between pixels, given as (right, down), bilinearly.

    - `corners`: whether the image beyond its edge is mirrored on the last pixel, or behind it.
    """
    side = images.shape[-1]
    where = places.to(images.device)
    where = 2 * where / (side - 1) - 1 if corners else (2 * where + 1) / side - 1
    return grid_sample(images, where, padding_mode="reflection", align_corners=corners)
