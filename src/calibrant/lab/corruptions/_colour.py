"""Light and colour changed. Images run from 0 to 255, their channels red, green and blue."""

import torch
from torch import Generator, Tensor


def contrast(images: Tensor, draws: Generator, share: float) -> Tensor:
    """Every channel nearer to its own mean."""
    means = images.mean(dim=(2, 3), keepdim=True)
    return (images - means) * share + means


def brightness(images: Tensor, draws: Generator, more: float) -> Tensor:
    """Value raised, hue and saturation kept."""
    hue, saturation, value = hue_saturation_value(images / 255)
    return 255 * red_green_blue(hue, saturation, (value + more).clamp(0, 1))


def saturate(images: Tensor, draws: Generator, factor: float, more: float) -> Tensor:
    """Saturation changed, hue and value kept."""
    hue, saturation, value = hue_saturation_value(images / 255)
    return 255 * red_green_blue(hue, (saturation * factor + more).clamp(0, 1), value)


def hue_saturation_value(images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of images from 0 to 1; the hue in sixths of the circle, 0 for grey."""
    red, green, blue = images.unbind(dim=1)
    value, which = images.max(dim=1)
    spread = value - images.amin(dim=1)
    safe = torch.where(spread > 0, spread, 1.0)
    sixth = torch.stack([green - blue, blue - red, red - green], dim=1)
    hue = sixth.gather(1, which[:, None])[:, 0] / safe + 2 * which
    saturation = spread / torch.where(value > 0, value, 1.0)
    return torch.where(spread > 0, hue % 6, 0.0), saturation, value


def red_green_blue(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """Back again: each channel falls from the value by the chroma, as far as its hue is away."""
    chroma = saturation * value
    channels = []
    for shift in (5, 3, 1):
        around = (shift + hue) % 6
        channels.append(value - chroma * torch.minimum(around, 4 - around).clamp(0, 1))
    return torch.stack(channels, dim=1)


def grey(images: Tensor) -> Tensor:
    """How light each pixel is to the eye, as one channel."""
    weights = torch.tensor([0.299, 0.587, 0.114], device=images.device)
    return (images * weights[:, None, None]).sum(dim=1, keepdim=True)
