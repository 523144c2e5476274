"""Residual networks, for small images and for large ones."""

from collections.abc import Sequence

from torch import Tensor, nn

from ._blocks import BasicBlock, Bottleneck, convolution


class ResNet(nn.Module):
    """A stem, stages of residual blocks, an average over the image, a linear layer.

    - `block`, `depths`: what each stage is made of, and how many. All but the first begin by
      halving the size of the image.
    - `widths`: channels in each stage, before a bottleneck multiplies them by four.
    - `large`: for images of 224 by 224 a stem of 7 by 7 that divides their size by four; for
      those of 32 by 32 one of 3 by 3 that keeps it.
    - `projected`: whether the way round a block that changes the shape is a convolution; the
      paper's networks for CIFAR have none.

    He et al., "Deep Residual Learning for Image Recognition", CVPR 2016.
    """

    def __init__(
        self,
        classes: int,
        channels: int,
        block: type[BasicBlock] | type[Bottleneck],
        depths: Sequence[int],
        widths: Sequence[int] = (64, 128, 256, 512),
        *,
        large: bool = False,
        projected: bool = True,
    ) -> None:
        super().__init__()
        given = widths[0]
        if large:
            self.stem = nn.Sequential(
                convolution(channels, given, 7, 2),
                nn.BatchNorm2d(given),
                nn.ReLU(),
                nn.MaxPool2d(3, 2, padding=1),
            )
        else:
            self.stem = nn.Sequential(
                convolution(channels, given, 3), nn.BatchNorm2d(given), nn.ReLU()
            )
        stages = []
        for number, (depth, width) in enumerate(zip(depths, widths, strict=True)):
            blocks: list[nn.Module] = []
            for place in range(depth):
                stride = 2 if number > 0 and place == 0 else 1
                blocks.append(block(given, width, stride, projected=projected))
                given = block.expansion * width
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.classifier = nn.Linear(given, classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.classifier(self.stages(self.stem(images)).mean(dim=(2, 3)))
        return logits
