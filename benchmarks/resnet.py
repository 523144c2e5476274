"""ResNet-18 for images of 32 × 32: a 3 × 3 stem, no pooling before the first stage.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016, in the form usual on CIFAR.
"""

from itertools import pairwise

from torch import Tensor, nn


class Block(nn.Module):
    """Two 3 × 3 convolutions and a shortcut around them."""

    def __init__(self, narrow: int, wide: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(narrow, wide, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU(inplace=True),
            nn.Conv2d(wide, wide, 3, padding=1, bias=False),
            nn.BatchNorm2d(wide),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or narrow != wide:
            self.shortcut = nn.Sequential(
                nn.Conv2d(narrow, wide, 1, stride, bias=False), nn.BatchNorm2d(wide)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Add what the body makes of `x` to `x`."""
        added: Tensor = self.body(x) + self.shortcut(x)
        return added.relu_()


def resnet18(classes: int = 10) -> nn.Sequential:
    """Four stages of two blocks; 11,173,962 parameters for ten classes."""
    widths = (64, 64, 128, 256, 512)
    stages = [
        nn.Sequential(Block(narrow, wide, stride=1 if stage == 0 else 2), Block(wide, wide, 1))
        for stage, (narrow, wide) in enumerate(pairwise(widths))
    ]
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        *stages,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(widths[-1], classes),
    )
