"""Noise of the sensor and of the wire. Images run from 0 to 255."""

import torch
from torch import Generator, Tensor


def normal(like: Tensor, draws: Generator) -> Tensor:
    """Standard normal numbers, drawn on the CPU so that every device sees the same."""
    return torch.randn(like.shape, generator=draws).to(like.device)


def uniform(shape: tuple[int, ...], low: float, high: float, draws: Generator) -> Tensor:
    """Numbers between two bounds, on the CPU."""
    return low + (high - low) * torch.rand(shape, generator=draws)


def gaussian_noise(images: Tensor, draws: Generator, scale: float) -> Tensor:
    """Noise of the same strength everywhere."""
    return images + 255 * scale * normal(images, draws)


def shot_noise(images: Tensor, draws: Generator, photons: float) -> Tensor:
    """Counts of few photons: `photons` for a white pixel."""
    expected = (images / 255 * photons).cpu()
    return torch.poisson(expected, generator=draws).to(images.device) * (255 / photons)


def impulse_noise(images: Tensor, draws: Generator, share: float) -> Tensor:
    """A share of all values lost: half of them to black, half to white."""
    lost = torch.rand(images.shape, generator=draws).to(images.device)
    black = torch.where(lost < share, 0.0, images)
    return torch.where(lost < share / 2, 255.0, black)


def speckle_noise(images: Tensor, draws: Generator, scale: float) -> Tensor:
    """Noise in proportion to the light."""
    return images + images * scale * normal(images, draws)
