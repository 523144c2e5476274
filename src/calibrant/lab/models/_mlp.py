"""Linear layers one after another."""

from collections.abc import Sequence

from torch import Tensor, nn


class MLP(nn.Module):
    """A perceptron with hidden layers, for rows of numbers; images are laid out as rows.

    - `features`: numbers in a row.
    - `hidden`: the width of each hidden layer.
    - `dropout`: the share of hidden units that training leaves out.
    """

    def __init__(
        self,
        classes: int,
        features: int,
        *,
        hidden: Sequence[int] = (256, 128),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        given = features
        for width in hidden:
            layers += [nn.Linear(given, width), nn.ReLU(), nn.Dropout(dropout)]
            given = width
        self.body = nn.Sequential(*layers)
        self.classifier = nn.Linear(given, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits."""
        logits: Tensor = self.classifier(self.body(inputs.flatten(1)))
        return logits
