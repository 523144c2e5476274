"""Residual blocks: what a block adds to what it was given."""

from torch import Tensor, nn
from torch.nn.functional import pad, relu


def convolution(given: int, made: int, side: int, stride: int = 1) -> nn.Conv2d:
    """A convolution that keeps the size, or divides it by the stride."""
    return nn.Conv2d(given, made, side, stride, padding=side // 2, bias=False)


class Subsampled(nn.Module):
    """Every other pixel, and channels of zeros: a way round a block without parameters."""

    def __init__(self, given: int, made: int, stride: int) -> None:
        super().__init__()
        self.extra, self.stride = made - given, stride

    def forward(self, maps: Tensor) -> Tensor:
        """The maps at every `stride`-th pixel, half of the new channels before them."""
        before = self.extra // 2
        chosen = maps[:, :, :: self.stride, :: self.stride]
        return pad(chosen, (0, 0, 0, 0, before, self.extra - before))


def way_round(given: int, made: int, stride: int, *, projected: bool) -> nn.Module:
    """What the block is added to: its input, brought to the shape of its output."""
    if given == made and stride == 1:
        return nn.Identity()
    if not projected:
        return Subsampled(given, made, stride)
    return nn.Sequential(convolution(given, made, 1, stride), nn.BatchNorm2d(made))


class BasicBlock(nn.Module):
    """Two convolutions of 3 by 3."""

    expansion = 1

    def __init__(self, given: int, width: int, stride: int, *, projected: bool = True) -> None:
        super().__init__()
        self.first = convolution(given, width, 3, stride)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = convolution(width, width, 3)
        self.second_norm = nn.BatchNorm2d(width)
        self.shortcut = way_round(given, width, stride, projected=projected)

    def forward(self, maps: Tensor) -> Tensor:
        """The maps and what was learnt to add to them."""
        inner = relu(self.first_norm(self.first(maps)))
        return relu(self.second_norm(self.second(inner)) + self.shortcut(maps))


class Bottleneck(nn.Module):
    """A convolution of 3 by 3 between two of 1 by 1, in a quarter of the channels."""

    expansion = 4

    def __init__(self, given: int, width: int, stride: int, *, projected: bool = True) -> None:
        super().__init__()
        made = self.expansion * width
        self.first = convolution(given, width, 1)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = convolution(width, width, 3, stride)
        self.second_norm = nn.BatchNorm2d(width)
        self.third = convolution(width, made, 1)
        self.third_norm = nn.BatchNorm2d(made)
        self.shortcut = way_round(given, made, stride, projected=projected)

    def forward(self, maps: Tensor) -> Tensor:
        """The maps and what was learnt to add to them."""
        inner = relu(self.first_norm(self.first(maps)))
        inner = relu(self.second_norm(self.second(inner)))
        return relu(self.third_norm(self.third(inner)) + self.shortcut(maps))
