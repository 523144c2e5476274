"""Water and mud on the lens. Images run from 0 to 255."""

import torch
from torch import Generator, Tensor

from ._filters import Edge, filtered, gaussian_blur

WATER, MUD = (175.0, 238.0, 238.0), (63.0, 42.0, 20.0)
MIRROR: Edge = "mirror"


def spatter(
    images: Tensor,
    draws: Generator,
    mean: float,
    spread: float,
    sigma: float,
    threshold: float,
    strength: float,
    mud: bool,
) -> Tensor:
    """Drops where a blurred random field is high: clear ones that gleam at the rim, or mud."""
    shape = (len(images), 1, *images.shape[2:])
    field = mean + spread * torch.randn(shape, generator=draws).to(images.device)
    drops = gaussian_blur(field, sigma, "nearest")
    drops = torch.where(drops < threshold, 0.0, drops)
    colour = torch.tensor(MUD if mud else WATER, device=images.device)[:, None, None]
    if mud:
        cover = gaussian_blur((drops > threshold).float(), strength, "nearest")
        cover = torch.where(cover < 0.8, 0.0, cover)
        return images * (1 - cover) + colour * cover
    liquid = (drops * 255).floor().clamp(0, 255)
    gleam = liquid * _relief(liquid)
    brightest = gleam.amax(dim=(2, 3), keepdim=True)
    gleam = strength * gleam / torch.where(brightest > 0, brightest, 1.0)
    return images + gleam * colour


def _relief(liquid: Tensor) -> Tensor:
    """How the light falls on the drops: their distance from the rim, equalised and embossed."""
    depth = _distance(edges(liquid, 50, 150)).clamp(max=20)
    box = torch.full((3, 3), 1 / 9)
    level = _equalised(filtered(depth, box, MIRROR).floor())
    emboss = torch.tensor([[-2.0, -1.0, 0.0], [-1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    embossed = filtered(level, emboss, MIRROR).clamp(0, 255)
    return filtered(embossed, box, MIRROR).round()


def edges(images: Tensor, low: float, high: float) -> Tensor:
    """Where one channel changes abruptly: Canny's edges, by Sobel's slopes in absolute value.

    A pixel is an edge if its slope is the greatest along it and either above `high`, or above
    `low` and joined to such a pixel by others.
    """
    sobel = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
    across, down = filtered(images, sobel, "nearest"), filtered(images, sobel.T, "nearest")
    slope = across.abs() + down.abs()
    steep = torch.nn.functional.pad(slope, (1, 1, 1, 1))
    side = slope.shape[-1]

    def beside(rows: int, columns: int) -> Tensor:
        return steep[..., 1 + rows : 1 + rows + side, 1 + columns : 1 + columns + side]

    level, upright = 0.41421356 * across.abs() > down.abs(), 2.41421356 * across.abs() < down.abs()
    falling = across * down >= 0
    before = torch.where(falling, beside(-1, -1), beside(-1, 1))
    after = torch.where(falling, beside(1, 1), beside(1, -1))
    before = torch.where(level, beside(0, -1), torch.where(upright, beside(-1, 0), before))
    after = torch.where(level, beside(0, 1), torch.where(upright, beside(1, 0), after))
    # The first of two equal slopes counts along an axis, neither on a diagonal.
    kept = (slope > before) & torch.where(level | upright, slope >= after, slope > after)
    possible, edge = kept & (slope > low), kept & (slope > high)
    while True:
        grown = torch.nn.functional.max_pool2d(edge.float(), 3, 1, 1).bool() & possible
        if torch.equal(grown, edge):
            return edge
        edge = grown


def _distance(edge: Tensor) -> Tensor:
    """From each pixel to the nearest edge; far away where there is none."""
    side = edge.shape[-1]
    place = torch.arange(side, device=edge.device)
    squares = ((place[:, None] - place) ** 2).float()
    away = torch.where(edge, 0.0, 1e6)
    away = (away[..., None, :] + squares).amin(dim=-1)
    away = (away.mT[..., None, :] + squares).amin(dim=-1).mT
    return away.sqrt()


def _equalised(levels: Tensor) -> Tensor:
    """Whole numbers up to 20 spread over 0 to 255 by how many pixels are at or below each."""
    steps = torch.arange(21, device=levels.device)[:, None, None]
    at_or_below = (levels[:, :, None] <= steps).sum(dim=(3, 4), keepdim=True).float()
    pixels = levels.shape[-1] * levels.shape[-2]
    lowest = levels.amin(dim=(2, 3), keepdim=True).long()
    first = at_or_below.gather(2, lowest[:, :, None])
    table = ((at_or_below - first) * (255 / (pixels - first).clamp(min=1))).round()
    flat = levels.long().flatten(2)
    spread = table.flatten(2).gather(2, flat).reshape(levels.shape)
    return torch.where(first[:, :, 0] == pixels, levels, spread)
