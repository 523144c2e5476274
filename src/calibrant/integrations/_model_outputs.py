"""What transformers' models give, and what Trainer expects of it."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ..predictions import Predictions


def logits_of(outputs: Any) -> Any:
    """The logits among what a model gives, by name or by place, or all there is."""
    if isinstance(outputs, dict):
        return outputs["logits"]
    return outputs[0] if isinstance(outputs, tuple | list) else outputs


def outputs_and_labels(model: nn.Module, inputs: Mapping[str, Any]) -> tuple[Any, Tensor]:
    """Of one batch; without labels a model leaves out a loss of its own that nobody would read."""
    if "labels" not in inputs:
        raise ValueError(
            f"batches must hold labels; got {', '.join(inputs)}. Name the column of the data set "
            "labels, or say remove_unused_columns=False where the model does not ask for it."
        )
    return model(**{name: x for name, x in inputs.items() if name != "labels"}), inputs["labels"]


def after_loss(loss: Tensor, outputs: Any) -> Any:
    """Outputs as Trainer reads them: in a tuple it takes the first for the loss."""
    if isinstance(outputs, dict):
        return outputs
    return (loss, *outputs) if isinstance(outputs, tuple | list) else (loss, outputs)


def predictions_of(logits: Tensor, labels: Tensor) -> Predictions:
    """Of a batch whose every label is ignored there are none, which is no mistake."""
    if len(labels) == 0:
        return Predictions._unchecked(logits, labels, None)
    return Predictions(logits, labels)
