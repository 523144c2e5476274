"""Rows that are distributions."""

import torch
from torch import Tensor

from ._tensors import HALF, check_tensor, is_transformed


def check_probabilities(probabilities: Tensor) -> None:
    """Rows of numbers between 0 and 1 that sum to one."""
    check_probability_table(probabilities)
    unseen = torch.compiler.is_compiling() or is_transformed(probabilities)
    if unseen or probabilities.numel() == 0:
        return
    table = probabilities.detach()
    least, sums = table.amin(), _sums(table)
    # Together, so that a device is waited for once.
    check_sums(table, *torch.stack([least.to(sums.dtype), *sums.aminmax()]).tolist())


def check_chances(chances: Tensor) -> None:
    """One number between 0 and 1 for each sample."""
    check_tensor("probabilities", chances)
    if not chances.is_floating_point():
        raise ValueError(
            "probabilities must be floating point of shape (n, classes) or (n,); "
            f"got {chances.dtype} of shape {tuple(chances.shape)}."
        )
    if torch.compiler.is_compiling() or is_transformed(chances) or chances.numel() == 0:
        return
    # Together, so that a device is waited for once; those of NaN are within no limits.
    low, high = torch.stack(chances.detach().aminmax()).tolist()
    if not (low >= 0 and high <= 1):
        raise ValueError(
            "probabilities of class 1 must lie between 0 and 1; got values from "
            f"{low:.3g} to {high:.3g}. If these are logits use Predictions.from_binary."
        )


def check_sums(table: Tensor, least: float, low: float, high: float) -> None:
    """What the least entry of a table, and the least and largest sum of its rows, say of it."""
    tolerance = 2e-2 if table.dtype in HALF else 1e-3
    # The extremes of a table with NaN are NaN, and NaN is within no limits.
    if not (least >= 0 and low >= 1 - tolerance and high <= 1 + tolerance):
        raise ValueError(
            "probabilities must not be negative and each row must sum to one; got values from "
            f"{least:.3g} to {table.max().item():.3g}, a row off by {max(1 - low, high - 1):.3g}. "
            "If these are logits use Predictions(logits, labels)."
        )


def _sums(table: Tensor) -> Tensor:
    """The sum of each row, by a product where that is the faster way to add."""
    if table.device.type == "cpu" and table.dtype not in HALF and table.stride(1) == 1:
        return table.mv(table.new_ones(table.shape[1]))
    return table.sum(dim=1, dtype=torch.promote_types(table.dtype, torch.float32))


def check_probability_table(probabilities: Tensor) -> None:
    """Floating-point numbers, a row per sample and a column per class."""
    check_tensor("probabilities", probabilities)
    if not probabilities.is_floating_point() or probabilities.ndim != 2:
        raise ValueError(
            "probabilities must be floating point of shape (n, classes) or (n,); "
            f"got {probabilities.dtype} of shape {tuple(probabilities.shape)}."
        )
