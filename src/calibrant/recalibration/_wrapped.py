"""A model with its recalibrator as one model."""

from typing import Any

from torch import Tensor, nn

from ._recalibrator import Recalibrator


class CalibratedModel(nn.Module):
    """A model whose logits go through a fitted recalibrator.

    Called like the model, it gives calibrated logits; it trains, moves, saves and exports like
    any module, and `torch.export` and ONNX take both parts as one.

    - `model`: anything that gives logits.
    - `recalibrator`: fitted, for instance by `fit_model`.

    >>> import torch
    >>> from calibrant.recalibration import TemperatureScaling
    >>> _ = torch.manual_seed(0)
    >>> model, inputs = torch.nn.Linear(4, 3), torch.randn(50, 4)
    >>> labels = torch.multinomial((model(inputs) / 2).softmax(dim=1), 1)[:, 0]
    >>> scaling = TemperatureScaling().fit_model(model, [(inputs, labels)])
    >>> calibrated = CalibratedModel(model, scaling)
    >>> bool((calibrated(inputs) == scaling.transform(model(inputs))).all())
    True
    """

    def __init__(self, model: nn.Module, recalibrator: Recalibrator) -> None:
        super().__init__()
        self.model = model
        self.recalibrator = recalibrator

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        """Calibrated logits."""
        calibrated: Tensor = self.recalibrator(self.model(*inputs, **named))
        return calibrated

    def predict_proba(self, *inputs: Any, **named: Any) -> Tensor:
        """Calibrated probabilities."""
        logits: Tensor = self.model(*inputs, **named)
        return self.recalibrator.predict_proba(logits)
