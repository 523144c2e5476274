"""A loss that can be descended: it has a gradient, and it is a number."""

from collections.abc import Mapping
from math import isfinite

import torch
from torch import Tensor

from ._parallel import all_agree, gathered


def check_on_graph(loss: Tensor) -> None:
    """Refuse a loss that no parameter has a part in."""
    if not loss.requires_grad:
        raise ValueError(
            "a loss must depend on the parameters of the model through something differentiable; "
            "got one without a gradient. Accuracy and hard counts cannot be trained on; for a "
            "calibration loss take top_label(esd) or soft_binned_ece."
        )


def check_finite(
    numbers: Mapping[str, float], at: str, *, together: bool, device: torch.device
) -> None:
    """Refuse a loss, or the norm of the `gradient`, that is no number.

    - `at`: when it happened.

    Processes that train `together` stop together: one alone would leave the others waiting.
    """
    found = [(name, value) for name, value in numbers.items() if not isfinite(value)]
    if all_agree(not found, together, device):
        return
    everyone = [each for told in gathered(found, together) for each in told]
    name, value = min(everyone, key=lambda each: each[0] == "gradient")  # a loss first
    what = "the gradient" if name == "gradient" else f"the {name} loss"
    raise FloatingPointError(
        f"{what} must be finite; got {value} at {at}. The model and its optimiser are as they were "
        "before this step. Check the batch for missing values, or lower the learning rate."
    )
