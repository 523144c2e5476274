"""Crops of many sizes, for photographs."""

from dataclasses import dataclass
from math import log

import torch
from torch import Generator, Tensor
from torch.nn.functional import grid_sample

from ._augmentation import Augmentation


@dataclass(frozen=True)
class ResizedCrop(Augmentation):
    """A part of each image, of random place, size and shape, resized to `size`; then as its base.

    - `size`: height and width of what the network sees.
    - `smallest`: the least share of the image's area that is kept.

    Its sides are to each other as 3 to 4 at most, and are shortened where they would not fit.
    Bilinear, without smoothing first. Without draws it is the middle of the image.

    >>> images = torch.randint(256, (5, 3, 64, 64), dtype=torch.uint8)
    >>> augment = ResizedCrop(mean=(0.5,), std=(0.5,), flip=True, size=56)
    >>> augment(images, augment.draw(5, torch.Generator().manual_seed(0))).shape
    torch.Size([5, 3, 56, 56])

    Szegedy et al., "Going Deeper with Convolutions", CVPR 2015.
    """

    size: int = 224
    smallest: float = 0.08

    @property
    def is_random(self) -> bool:
        """There is always a crop to draw."""
        return True

    def draw(self, n: int, generator: Generator) -> Tensor:
        """Width and height as shares of the image, place within what is left, and reflection."""
        even = torch.rand(n, 5, generator=generator, device=generator.device)
        area = self.smallest + (1 - self.smallest) * even[:, 0]
        stretch = ((2 * even[:, 1] - 1) * log(4 / 3)).exp()
        width, height = (area * stretch).sqrt().clamp(max=1), (area / stretch).sqrt().clamp(max=1)
        reflected = (even[:, 4] < 0.5).float() * float(self.flip)
        return torch.stack([width, height, even[:, 2], even[:, 3], reflected], dim=1)

    def __call__(self, images: Tensor, draws: Tensor | None = None) -> Tensor:
        """The images as a network wants them."""
        if draws is not None:
            return self._normalised(self._moved(images.float(), draws))
        first = [(side - self.size) // 2 for side in images.shape[-2:]]
        if min(first) < 0:
            raise ValueError(
                f"images must be at least {self.size} by {self.size}; got "
                f"{tuple(images.shape[-2:])}."
            )
        down, right = (slice(start, start + self.size) for start in first)
        return self._normalised(images[..., down, right].float())

    def _moved(self, images: Tensor, draws: Tensor) -> Tensor:
        width, height, right, down, reflected = draws[:, :, None].unbind(dim=1)
        # From -1 to 1 across the image, at the middle of each pixel of the result.
        across = (torch.arange(self.size, device=images.device) + 0.5) * (2 / self.size) - 1
        columns = width * across * (1 - 2 * reflected) + (2 * right - 1) * (1 - width)
        rows = height * across + (2 * down - 1) * (1 - height)
        shape = (len(images), self.size, self.size)
        grid = torch.stack([columns[:, None].expand(shape), rows[:, :, None].expand(shape)], dim=-1)
        return grid_sample(images, grid, padding_mode="border", align_corners=False)
