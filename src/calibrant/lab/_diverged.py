"""Runs that came to nothing: told apart from results, however their rows say so."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor


def check_finite(logits: Tensor, split: str) -> None:
    """Raise `FloatingPointError` where the last step of training blew the model up."""
    if not logits.isfinite().all():
        raise FloatingPointError(
            f"the logits of the {split} split must be finite; some were not after the last step. "
            "Lower the rate."
        )


def error_of(row: Mapping[str, Any]) -> str | None:
    """Why a row has no figures; `None` where it has.

    >>> error_of({"validation": {"none": {"accuracy": 0.1, "nll": None}}})
    'the figures of the validation split must be finite; some are not.'
    """
    if "error" in row:
        return str(row["error"])
    for split in ("validation", "test"):
        # Every measure of finite logits is finite, so a null stands for a model that blew up.
        if None in row.get(split, {}).get("none", {}).values():
            return f"the figures of the {split} split must be finite; some are not."
    return None
