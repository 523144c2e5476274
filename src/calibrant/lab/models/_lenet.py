"""The network that read cheques."""

from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu


class LeNet5(nn.Module):
    """Two convolutions and three linear layers, for images of 32 by 32.

    As it is built today: rectifiers, greatest values instead of learnt averages, every
    convolution connected to every channel, a linear layer at the end. 61,706 parameters for
    one channel and ten classes.

    LeCun et al., "Gradient-Based Learning Applied to Document Recognition", 1998.
    """

    def __init__(self, classes: int, channels: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, 6, 5)
        self.second = nn.Conv2d(6, 16, 5)
        self.third = nn.Linear(16 * 5 * 5, 120)
        self.fourth = nn.Linear(120, 84)
        self.classifier = nn.Linear(84, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        maps = max_pool2d(relu(self.first(images)), 2)
        maps = max_pool2d(relu(self.second(maps)), 2)
        features = relu(self.fourth(relu(self.third(maps.flatten(1)))))
        logits: Tensor = self.classifier(features)
        return logits
