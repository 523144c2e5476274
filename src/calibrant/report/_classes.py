"""Which predicted classes claim too much: the class-wise heat map and its table."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..measures._binned import assign_bins
from ._bins import clopper_pearson, effective
from ._models import Told, named

# Columns of the heat map, and the most rows of it that can be read.
COLUMNS, MOST_CLASSES = 10, 20


@dataclass(frozen=True)
class Cell:
    """Answers of one class at similar confidence: how many, and confidence less accuracy."""

    column: int
    count: int
    gap: float


@dataclass(frozen=True)
class ClassRow:
    """The answers that named one class.

    - `count`: how many. `confidence`: their mean; `accuracy`: the share that was right, with
      Clopper and Pearson's interval.
    """

    name: str
    count: int
    confidence: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    cells: list[Cell]

    @property
    def gap(self) -> float:
        """Above zero where the class claims too much."""
        return self.confidence - self.accuracy


def class_rows(told: Told, names: Sequence[str], level: float) -> list[ClassRow]:
    """The classes that add most to the gaps, worst first; empty for events.

    What a class adds is the number of answers that named it times their gap.
    """
    if told.predicted is None or told.classes is None:
        return []
    of, classes = told.predicted, told.classes
    sure, right, mass = told.confidence.double(), told.outcome.double(), told.mass
    column = assign_bins(told.confidence, bins=COLUMNS, binning="width")

    def totals(x: Tensor) -> Tensor:
        table = torch.zeros(classes * COLUMNS, dtype=torch.float64)
        return table.index_add(0, of * COLUMNS + column, x).reshape(classes, COLUMNS)

    counts, weight = totals(torch.ones_like(sure)), totals(mass)
    claimed, hits = totals(mass * sure), totals(mass * right)
    of_class = [table.sum(dim=1) for table in (counts, weight, claimed, hits)]
    n, own, said, held = of_class
    squares = totals(mass.square()).sum(dim=1)
    low, high = clopper_pearson(*effective(held, own, squares), level)
    order = (said - held).abs().argsort(descending=True, stable=True)
    found = []
    for k in [k for k in order.tolist() if own[k] > 0][:MOST_CLASSES]:
        cells = [
            Cell(j, int(counts[k, j]), ((claimed - hits)[k, j] / weight[k, j]).item())
            for j in range(COLUMNS)
            if weight[k, j] > 0
        ]
        shares = ((said[k] / own[k]).item(), (held[k] / own[k]).item())
        found.append(ClassRow(names[k], int(n[k]), *shares, low[k].item(), high[k].item(), cells))
    return found


def names_of_classes(given: Sequence[object] | None, classes: int | None) -> list[str]:
    """The names given, or the numbers of the classes."""
    if classes is None:
        return []
    if given is None:
        return [str(k) for k in range(classes)]
    if isinstance(given, str) or len(given) != classes:
        count = 1 if isinstance(given, str) else len(given)
        raise ValueError(
            f"class_names must hold one name per class, {classes} in all; got {count}."
        )
    return [named(name) for name in given]
