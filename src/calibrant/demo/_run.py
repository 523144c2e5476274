"""Train every way on every fold, and judge on images that were not seen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from calibrant import Estimate, Predictions, TemperatureScaling
from calibrant.evaluation._estimates import estimates
from calibrant.evaluation._rows import rows_of_predictions

from ._digits import Fold, folds
from ._ways import WAYS, train

SHOWN = ("accuracy", "nll", "ece")
_DRAWS = 1000


@dataclass(frozen=True)
class Judged:
    """One way to train: what its networks said of every image, and what that is worth.

    - `logits`, `repaired`: as they are, and after a temperature fitted to other images.
    - `rows`, `repaired_rows`: accuracy, NLL and ECE of either, with 95% intervals.
    """

    logits: Tensor
    repaired: Tensor
    labels: Tensor
    rows: dict[str, Estimate]
    repaired_rows: dict[str, Estimate]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            state: {name: vars(row) for name, row in rows.items()}
            for state, rows in (("trained", self.rows), ("temperature", self.repaired_rows))
        }


def run(
    advance: Callable[[], None] = lambda: None,
    *,
    ways: Sequence[str] = tuple(WAYS),
    most_folds: int | None = None,
) -> dict[str, Judged]:
    """Every way by its name.

    - `advance`: told after each network. `ways`: some of them. `most_folds`: stop after so many.
    """
    torch.set_num_threads(1)  # the network is too small to share out
    said: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in ways}
    labels = []
    for k, fold in list(enumerate(folds()))[:most_folds]:
        for name in ways:
            said[name].append(_of_fold(name, fold, seed=k))
            advance()
        labels.append(fold.test.tensors[1])
    truth = torch.cat(labels)
    return {name: _judged(parts, truth) for name, parts in said.items()}


@torch.no_grad()
def _of_fold(name: str, fold: Fold, seed: int) -> tuple[Tensor, Tensor]:
    """Logits of the test images, as they are and repaired."""
    with torch.enable_grad():
        model = train(WAYS[name], fold, seed, lambda: None)
    images, labels = fold.validation.tensors
    scaling = TemperatureScaling().fit(model(images), labels, folds=0)
    logits = model(fold.test.tensors[0])
    return logits, scaling.transform(logits)


def _judged(parts: list[tuple[Tensor, Tensor]], labels: Tensor) -> Judged:
    logits, repaired = (torch.cat(each) for each in zip(*parts, strict=True))
    return Judged(logits, repaired, labels, _rows(logits, labels), _rows(repaired, labels))


def _rows(logits: Tensor, labels: Tensor) -> dict[str, Estimate]:
    ones = torch.ones(len(labels), dtype=torch.float64)
    known = rows_of_predictions(Predictions(logits, labels), ones, bins=15)
    shown = {name: known[name] for name in SHOWN}
    return estimates(shown, ones, draws=_DRAWS, level=0.95, seed=0)
