"""Residual networks that are wide instead of deep."""

from torch import Tensor, nn
from torch.nn.functional import relu

from ._blocks import convolution


class WideBlock(nn.Module):
    """Two convolutions of 3 by 3, each normalised and rectified before, not after."""

    def __init__(self, given: int, made: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.first_norm = nn.BatchNorm2d(given)
        self.first = convolution(given, made, 3, stride)
        self.second_norm = nn.BatchNorm2d(made)
        self.dropout = nn.Dropout(dropout)
        self.second = convolution(made, made, 3)
        self.shortcut = None if given == made else convolution(given, made, 1, stride)

    def forward(self, maps: Tensor) -> Tensor:
        """The maps and what was learnt to add to them."""
        ready = relu(self.first_norm(maps))
        inner = self.dropout(relu(self.second_norm(self.first(ready))))
        # Where the shape changes, the way round begins after the normalisation.
        around: Tensor = maps if self.shortcut is None else self.shortcut(ready)
        return around + self.second(inner)  # type: ignore[no-any-return]


class WideResNet(nn.Module):
    """Three stages of wide blocks: WRN-`depth`-`factor`.

    - `depth`: 6n + 4 for n blocks in a stage; 28 has four.
    - `factor`: how many times wider than 16, 32 and 64 channels.

    Zagoruyko and Komodakis, "Wide Residual Networks", BMVC 2016.
    """

    def __init__(
        self,
        classes: int,
        channels: int = 3,
        *,
        depth: int = 28,
        factor: int = 10,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth must be 6n + 4 for n blocks in a stage; got {depth}.")
        self.stem = convolution(channels, 16, 3)
        blocks: list[nn.Module] = []
        given = 16
        for stage, width in enumerate((16, 32, 64)):
            for place in range((depth - 4) // 6):
                stride = 2 if stage > 0 and place == 0 else 1
                blocks.append(WideBlock(given, factor * width, stride, dropout))
                given = factor * width
        self.stages = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(given)
        self.classifier = nn.Linear(given, classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        maps = relu(self.norm(self.stages(self.stem(images))))
        logits: Tensor = self.classifier(maps.mean(dim=(2, 3)))
        return logits
