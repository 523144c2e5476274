"""Two files that must hold the same samples."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..logs import Batch, PredictionLog
from ._progress import reading

# What is left of a weight that was written in single precision.
_ROUNDED = 1e-6


@dataclass(frozen=True, eq=False)
class Pair:
    """All rows of two files, and what sentences call these: with folders where names are alike."""

    names: tuple[str, str]
    batches: tuple[Batch, Batch]

    def __len__(self) -> int:
        return len(self.batches[0])


def pair_of(one: PredictionLog, other: PredictionLog) -> Pair:
    """Both files, read whole; refused unless they can be of the same samples."""
    names = (one.path.name, other.path.name)
    if names[0] == names[1]:
        names = (str(one.path), str(other.path))
    pair = Pair(names, (_read(one), _read(other)))
    _check_same_samples(pair)
    return pair


def check_same_form(one: PredictionLog, other: PredictionLog) -> None:
    """Tables with labels, or events; a row of one does not mean what a row of the other does."""
    if (one.classes is None) != (other.classes is None):
        table, events = (one, other) if other.classes is None else (other, one)
        raise ValueError(
            f"both files must have {table.columns.kind} and labels, or both a confidence and an "
            f"outcome; {events.path.name} has a confidence and an outcome, {table.path.name} "
            f"has {table.columns.kind}. Name columns of one kind that both have, or evaluate each "
            "file on its own."
        )


def _read(log: PredictionLog) -> Batch:
    with reading(log.path.name) as progress:
        return log.read(progress=progress)


def _check_same_samples(pair: Pair) -> None:
    """As many rows and classes; the same labels, of tables, and weights, where they are told."""
    one, other = pair.batches
    if one.forecast.shape != other.forecast.shape:
        classes = " and classes" if one.forecast.ndim > 1 else ""
        raise ValueError(
            f"{' and '.join(pair.names)} must hold the same samples{classes}; got "
            f"{_shape(one)} and {_shape(other)}. Leave out what only one of them has, or evaluate "
            "each file on its own."
        )
    if one.kind != "confidence":
        _check_alike("labels", pair, one.truth, other.truth, one.truth != other.truth)
    if one.weights is not None and other.weights is not None:
        unlike = ~torch.isclose(one.weights, other.weights, rtol=_ROUNDED, atol=0)
        instead = ", or leave --weights out"
        _check_alike("weights", pair, one.weights, other.weights, unlike, instead)


def _shape(told: Batch) -> str:
    shape = told.forecast.shape
    return f"{shape[0]:,} by {shape[1]}" if len(shape) > 1 else f"{shape[0]:,} rows"


def _check_alike(
    what: str, pair: Pair, one: Tensor, other: Tensor, unlike: Tensor, otherwise: str = ""
) -> None:
    differ = unlike.nonzero()[:, 0]
    if len(differ):
        row = int(differ[0])
        raise ValueError(
            f"{' and '.join(pair.names)} must have the same {what} in the same order; got "
            f"{one[row].item():.9g} and {other[row].item():.9g} in row {row} (counted from 0), the "
            f"first of {len(differ):,} that differ. Sort both files alike{otherwise}."
        )
