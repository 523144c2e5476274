"""Rows that are distributions."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._events import EXCESS, first_outside
from ._tensors import HALF, are_up_to, check_tensor, extremes, is_transformed, numbers_of, widest

# By how much a row of probabilities may miss one, whatever the type of its numbers. Ten rounded to
# three digits for print are off by as much as 0.005, and so is a softmax all in half precision.
ROUNDED = 1e-2
# Rows of rounded numbers that are no accident, and by how much each may be off.
_MANY, _ROUGHLY = 8, 5e-2
# Scores that all lie between 0 and 1 are an accident for fewer samples than this.
_BY_ACCIDENT = 20
# Numbers that one thread has added up before others are awake.
_FEW = 2**19
_PREDICTIONS = "use Predictions(logits, labels)"


def are_probabilities(table: Tensor) -> bool:
    """Whether what is said to be logits is not: none is negative, and each row sums to one.

    Rows that differ and hold more than zeros and ones are no accident.
    """
    rows = table.detach()
    off = _ROUGHLY if len(rows) >= _MANY else ROUNDED
    # Most tables are logits, as their first rows tell.
    if len(rows) < 2 or not (_sum_to_one(rows[:2], off) and _sum_to_one(rows, off)):
        return False
    return bool((rows != rows[:1]).any() and ((rows != 0) & (rows != 1)).any())


def check_not_probabilities(name: str, table: Tensor, remedy: str) -> None:
    """Rows that are probabilities would be taken for logits."""
    if are_probabilities(table):
        raise ValueError(
            f"{name} must be unnormalised scores; got rows that are probabilities: none negative, "
            f"each sums to one. {remedy}"
        )


def check_not_chances(name: str, scores: Tensor, remedy: str, *, spread: float = 0.75) -> None:
    """Chances of class 1 would be taken for its log-odds.

    - `spread`: by how much they differ at least. Networks that were not trained yet give log-odds
      of this kind too, but close to each other.
    """
    if scores.numel() < _BY_ACCIDENT or not scores.is_floating_point():
        return
    low, high = extremes(scores)
    if low >= 0 and high <= 1 and low < high and high - low >= spread:
        two = " Log-odds that happen to lie there may be given two columns, "
        two += "torch.stack([-z / 2, z / 2], 1)."
        raise ValueError(
            f"{name} must be log-odds, as a sigmoid takes them; got {scores.numel()} numbers all "
            f"between 0 and 1, which look like probabilities. {remedy}{two * (scores.ndim == 1)}"
        )


def _sum_to_one(rows: Tensor, off: float) -> bool:
    sums = rows.sum(dim=1, dtype=torch.promote_types(rows.dtype, torch.float32))
    return bool((rows >= 0).all() and ((sums - 1).abs() < off).all())


def check_probabilities(
    probabilities: Tensor, if_logits: str = _PREDICTIONS, *, every: int = 1
) -> None:
    """Rows of numbers between 0 and 1 that sum to one.

    - `if_logits`: what to do where they are logits. `every`: look at one row in so many.
    """
    check_probability_table(probabilities)
    unseen = torch.compiler.is_compiling() or is_transformed(probabilities)
    if unseen or probabilities.numel() == 0:
        return
    table = probabilities.detach()
    some = table[::every]
    numbers = numbers_of(some) if some.numel() <= _FEW else None
    if numbers is not None:
        check_numbers(numbers, table, if_logits)
        return
    least, sums = some.amin(), _sums(some)
    # Together, so that a device is waited for once.
    extent = torch.stack([least.to(sums.dtype), *sums.aminmax()]).tolist()
    check_sums(table, *extent, if_logits=if_logits)


def check_numbers(rows: NDArray[Any], table: Tensor, if_logits: str = _PREDICTIONS) -> None:
    """The same of some rows of a table, as NumPy sees them."""
    with np.errstate(invalid="ignore", over="ignore"):  # the sums tell
        added = np.add.reduce(rows, 1)
    least, low, high = np.minimum.reduce(rows, None), np.minimum.reduce(added), added.max()
    check_sums(table, least.item(), low.item(), high.item(), if_logits=if_logits)


def check_chances(chances: Tensor) -> Tensor:
    """One number between 0 and 1 for each sample, without what rounding has left beyond."""
    check_tensor("probabilities", chances)
    if not chances.is_floating_point():
        raise ValueError(
            "probabilities must be floating point of shape (n, classes) or (n,); "
            f"got {chances.dtype} of shape {tuple(chances.shape)}."
        )
    if torch.compiler.is_compiling() or is_transformed(chances) or chances.numel() == 0:
        return chances
    if are_up_to(1, chances):
        return chances
    low, high = extremes(chances)
    if low >= 0 and high <= 1:
        return chances
    # NaN is within no limits.
    if not (low >= -EXCESS and high <= 1 + EXCESS):
        raise ValueError(
            f"probabilities of class 1 must lie between 0 and 1; got {first_outside(chances)}. "
            "If these are logits use Predictions.from_binary."
        )
    return chances.clamp(0, 1)


def check_sums(
    table: Tensor, least: float, low: float, high: float, *, if_logits: str = _PREDICTIONS
) -> None:
    """What the least entry of a table, and the least and largest sum of its rows, say of it."""
    # The extremes of a table with NaN are NaN, and NaN is within no limits.
    if not (least >= 0 and low >= 1 - ROUNDED and high <= 1 + ROUNDED):
        raise ValueError(
            "probabilities must not be negative and each row must sum to one; got values from "
            f"{least:.3g} to {table.max().item():.3g}, and {_first_off(table)}. "
            f"If these are logits, {if_logits}; if they were rounded, divide each row by its sum."
        )


def _first_off(table: Tensor) -> str:
    """The first row that is not of probabilities, asked for where there is one."""
    rows = table.detach()
    lowest, sums = rows.amin(dim=1), rows.sum(dim=1, dtype=widest(rows.device))
    off = (sums - 1).abs()
    bad = ~((lowest >= 0) & (off <= ROUNDED))
    # The very last digit of a sum depends on the order in which it is added.
    row = int(bad.nonzero()[0, 0]) if bool(bad.any()) else int(off.argmax())
    if lowest[row] < 0:
        return f"{lowest[row].item():.3g} in row {row} (counted from 0)"
    return f"{sums[row].item():.6g} as the sum of row {row} (counted from 0)"


def _sums(table: Tensor) -> Tensor:
    """The sum of each row, by a product where that is the faster way to add."""
    if table.device.type == "cpu" and table.dtype not in HALF and table.stride(1) == 1:
        return table.mv(table.new_ones(table.shape[1]))
    return table.sum(dim=1, dtype=torch.promote_types(table.dtype, torch.float32))


def check_probability_table(probabilities: Tensor) -> None:
    """Floating-point numbers, a row per sample and a column per class."""
    check_tensor("probabilities", probabilities)
    if not probabilities.is_floating_point() or probabilities.ndim != 2:
        remedy = "" if probabilities.is_floating_point() else " Pass probabilities.float()."
        raise ValueError(
            "probabilities must be floating point of shape (n, classes) or (n,); "
            f"got {probabilities.dtype} of shape {tuple(probabilities.shape)}.{remedy}"
        )
