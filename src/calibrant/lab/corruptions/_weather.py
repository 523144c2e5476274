"""Snow, frost and fog. Images run from 0 to 255."""

from functools import cache

import torch
from torch import Generator, Tensor

from ._blur import moved
from ._colour import grey
from ._filters import zoomed
from ._noise import uniform
from ._plasma import plasma

FROST_SEED, FROST_SHEETS, FROST_SIDE = 20190326, 5, 128


def snow(
    images: Tensor,
    draws: Generator,
    mean: float,
    spread: float,
    size: float,
    threshold: float,
    radius: int,
    sigma: float,
    kept: float,
) -> Tensor:
    """Flakes that fall, from two directions, before a paler image."""
    shape = (len(images), 1, *images.shape[2:])
    flakes = mean + spread * torch.randn(shape, generator=draws).to(images.device)
    flakes = zoomed(flakes, size)
    flakes = torch.where(flakes < threshold, 0.0, flakes)
    bytes_ = (flakes.clamp(0, 1) * 255).floor()
    falling = moved(bytes_, radius, sigma, uniform((len(images),), -135.0, -45.0, draws))
    paler = torch.maximum(images, grey(images) * 1.5 + 127.5)
    return kept * images + (1 - kept) * paler + falling + falling.flip(2, 3)


def fog(images: Tensor, draws: Generator, thickness: float, decay: float) -> Tensor:
    """A cloud in front of each image, which keeps its brightest value."""
    cloud = plasma(len(images), images.shape[-1], decay, draws).to(images.device)
    brightest = images.amax(dim=(1, 2, 3), keepdim=True)
    return (images + 255 * thickness * cloud) * brightest / (brightest + 255 * thickness)


def frost(images: Tensor, draws: Generator, kept: float, share: float) -> Tensor:
    """A window with ice on it.

    The original lays crops of photographs of frost over the images. They are not ours to give
    away, so these are crops of drawn sheets of ice, always the same: the mixing is that of
    CIFAR-C, the pattern is not.
    """
    n, side = len(images), images.shape[-1]
    sheets = _sheets()
    which = torch.randint(len(sheets), (n,), generator=draws)
    corner = torch.randint(FROST_SIDE - side, (2, n), generator=draws)
    place = torch.arange(side)
    rows, columns = corner[0][:, None] + place, corner[1][:, None] + place
    ice = sheets[which[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return kept * images + share * ice.permute(0, 3, 1, 2).to(images.device)


@cache
def _sheets() -> Tensor:
    """Pale blue ridges at several sizes: where a random cloud crosses its middle, ice grew."""
    draws = torch.Generator().manual_seed(FROST_SEED)
    ice = torch.zeros(FROST_SHEETS, 1, FROST_SIDE, FROST_SIDE)
    for decay, sharpness in ((1.15, 6.0), (1.25, 8.0), (1.4, 10.0)):
        cloud = plasma(FROST_SHEETS, FROST_SIDE, decay, draws)
        ice += (1 - sharpness * (cloud - cloud.mean(dim=(2, 3), keepdim=True)).abs()).clamp(0, 1)
    ice = (ice / ice.amax(dim=(2, 3), keepdim=True)) ** 0.5
    tint = torch.tensor([0.82, 0.92, 1.0])[:, None, None]
    return 255 * tint * (0.25 + 0.75 * ice)
