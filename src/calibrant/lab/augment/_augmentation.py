"""From stored bytes to what a network is given, for a whole batch at once."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn.functional import interpolate, pad


@dataclass(frozen=True)
class Augmentation:
    r"""Random crops and reflections of a batch of images, on the device they are on.

    Each image is surrounded by `padding` black pixels, a window of its own size is cut out
    somewhere, and reflected or not; then $x \mapsto (x / 255 - \mu) / \sigma$ channel by channel.

    - `mean`, `std`: $\mu$ and $\sigma$, one for each channel or one for all.
    - `padding`: on every side, 4 for CIFAR in all three papers.
    - `flip`: whether half of the images are reflected, left to right.
    - `side`: images are first resized to this height and width, bilinearly.

    What is random is drawn beforehand, by `draw`, and given with the images, so that the rest is
    a function of its arguments: the same on every device, and nothing for a compiler to trip
    over. Without it the images are only resized and normalised, which is how a model is judged.

    >>> images = torch.randint(256, (5, 3, 32, 32), dtype=torch.uint8)
    >>> augment = Augmentation(mean=(0.5,), std=(0.5,), padding=4, flip=True)
    >>> draws = augment.draw(5, torch.Generator().manual_seed(0))
    >>> augment(images, draws).shape, augment(images).min() >= -1
    (torch.Size([5, 3, 32, 32]), tensor(True))
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    padding: int = 0
    flip: bool = False
    side: int | None = None

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not all(each > 0 for each in self.std):
            raise ValueError(
                "mean and std must hold one number for each channel, the latter above 0; got "
                f"{self.mean} and {self.std}."
            )
        if self.padding < 0:
            raise ValueError(f"padding must not be negative; got {self.padding}.")

    @property
    def is_random(self) -> bool:
        """Whether there is anything to draw."""
        return self.padding > 0 or self.flip

    def draw(self, n: int, generator: Generator) -> Tensor:
        """Where each of `n` images is cut, down and across, and whether it is reflected."""
        device = generator.device
        corner = torch.randint(2 * self.padding + 1, (n, 2), generator=generator, device=device)
        reflected = torch.randint(2, (n, 1), generator=generator, device=device) * int(self.flip)
        return torch.cat([corner, reflected], dim=1)

    def __call__(self, images: Tensor, draws: Tensor | None = None) -> Tensor:
        """The images as a network wants them: floats, moved about by `draws` if there are any."""
        if images.dtype != torch.uint8 or images.ndim != 4:
            raise ValueError(
                "images must be bytes of shape (n, channels, height, width); got "
                f"{images.dtype} of shape {tuple(images.shape)}."
            )
        if draws is not None and self.side is None:  # bytes are moved, not floats: a quarter
            return self._normalised(self._moved(images, draws).float())
        floats = images.float()
        if self.side is not None:
            floats = interpolate(floats, size=(self.side, self.side), mode="bilinear")
        return self._normalised(floats if draws is None else self._moved(floats, draws))

    def _moved(self, images: Tensor, draws: Tensor) -> Tensor:
        n, channels, height, width = images.shape
        down, across, reflected = draws[:, :, None].unbind(dim=1)
        rows = torch.arange(height, device=images.device)
        columns = torch.arange(width, device=images.device)
        columns = torch.where(reflected == 1, width - 1 - columns, columns) + across
        framed = pad(images, (self.padding,) * 4)
        sample = torch.arange(n, device=images.device)[:, None, None, None]
        channel = torch.arange(channels, device=images.device)[:, None, None]
        return framed[sample, channel, (rows + down)[:, None, :, None], columns[:, None, None, :]]

    def _normalised(self, floats: Tensor) -> Tensor:
        mean = torch.tensor(self.mean, device=floats.device)[:, None, None]
        std = torch.tensor(self.std, device=floats.device)[:, None, None]
        return (floats / 255 - mean) / std
