"""A criterion to descend: fit the labels, and pay for miscalibration."""

from torch import Tensor, nn

from ._checks import check_callable
from .criteria import Criterion, name_of
from .predictions import Predictions


class Penalised(nn.Module):
    """A training objective: `fit(predictions) + weight * calibration(predictions)`.

    Called like any torch loss, `objective(logits, labels)`.

    - `fit`: what makes predictions right, such as `nll` or `partial(focal, gamma=2)`.
    - `calibration`: what makes their confidence true, such as `top_label(esd)`.
    - `weight`: the price of miscalibration.
    - `class_dim`: for pixels and tokens, the dimension of logits that holds the classes.
    - `ignore_index`: the label of positions to leave out, such as -100; none by default.

    Calibration belongs to a whole batch: use the largest that fits, and `across_ranks` when it
    is spread over processes.

    >>> import torch
    >>> from calibrant import esd, nll, top_label
    >>> objective = Penalised(nll, top_label(esd), weight=0.5)
    >>> objective(torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 0, 0]))
    tensor(0.4817)
    """

    def __init__(
        self,
        fit: Criterion,
        calibration: Criterion,
        weight: float,
        *,
        class_dim: int | None = None,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__()
        self.fit = check_callable("fit", fit)
        self.calibration = check_callable("calibration", calibration)
        self.weight = weight
        self.class_dim, self.ignore_index = class_dim, ignore_index

    def forward(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
        """The objective of one batch, in which samples may have weights."""
        if self.class_dim is None and self.ignore_index is None:
            predictions = Predictions(logits, labels, weights=weights)
        else:
            predictions = Predictions.flatten(
                logits,
                labels,
                class_dim=1 if self.class_dim is None else self.class_dim,
                ignore_index=self.ignore_index,
                weights=weights,
            )
        return self.fit(predictions) + self.weight * self.calibration(predictions)

    def extra_repr(self) -> str:
        """Name the parts where the module is printed."""
        parts = {
            "fit": name_of(self.fit),
            "calibration": name_of(self.calibration),
            "weight": self.weight,
            "class_dim": self.class_dim,
            "ignore_index": self.ignore_index,
        }
        return ", ".join(f"{name}={part}" for name, part in parts.items() if part is not None)
