"""The gaps of every class in every bin, from one pass over the probabilities."""

from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from .._checks import check_bins, check_norm
from ..criteria import BY_CLASS
from ..predictions import Predictions
from ._binned import Binning, ece, gap_norm, width_edges
from ._precision import in_proportion

# Numbers above the first bin that are gathered before they are put into theirs.
_GATHERED = 2**15
# Rows that are added up in the precision they have, before sums go on in double precision.
_IN_A_SUM = 256


def class_wise_ece(
    predictions: Predictions, *, bins: int = 15, norm: float = 1, binning: Binning = "width"
) -> Float[Tensor, " classes"] | None:
    """`ece` of each class against the rest, or nothing where the definition must be asked.

    The numbers of a row sum to one, so few of them lie above the first bin. Those are put into
    their bins one by one; in the first bin a class has all it has, less what is in the others.
    """
    blocks = predictions.probs_in_blocks() if binning == "width" else None
    if blocks is None:
        return None
    check_norm(norm)
    check_bins(bins)
    classes, labels, given = predictions.classes, predictions.labels.numpy(), predictions.weights
    weights = np.ones(len(labels)) if given is None else in_proportion(given.double()).numpy()
    cells = _Cells(classes, width_edges(bins, predictions.dtype, predictions.labels.device).numpy())
    column = np.zeros(classes)
    for rows, block in blocks:
        probs, truth = block.numpy(), labels[rows]
        for part in (slice(at, at + _IN_A_SUM) for at in range(0, len(probs), _IN_A_SUM)):
            column += weights[rows][part].astype(probs.dtype) @ probs[part]
        sample, label = np.divmod(np.flatnonzero(probs > cells.first_edge), classes)
        cells.hold(label, probs[sample, label], weights[rows][sample], happened=False)
        cells.hold(truth, probs[np.arange(len(truth)), truth], weights[rows], happened=True)
    mass, gap = cells.totals(weights.sum(), column)
    return torch.vmap(partial(gap_norm, norm=norm))(mass, gap).to(predictions.dtype)


class _Cells:
    """How much every class has in every bin, except what it was given in the first."""

    def __init__(self, classes: int, edges: NDArray[Any]) -> None:
        self.shape, self.edges = (classes, len(edges) + 1), edges
        self.first_edge = edges[0] if len(edges) else np.inf
        self.mass, self.chance, self.outcome = (np.zeros(self.shape) for _ in range(3))
        self.held: dict[bool, list[tuple[NDArray[Any], ...]]] = {False: [], True: []}

    def hold(self, *found: NDArray[Any], happened: bool) -> None:
        """Keep classes, probabilities and weights until there are enough to be put into bins."""
        self.held[happened].append(found)
        if sum(len(label) for label, _, _ in self.held[happened]) > _GATHERED:
            self._release(happened)

    def _release(self, happened: bool) -> None:
        label, prob, weight = map(np.concatenate, zip(*self.held[happened], strict=True))
        self.held[happened] = []
        cell = label * self.shape[1] + np.searchsorted(self.edges, prob)

        def add(totals: NDArray[Any], x: NDArray[Any]) -> None:
            totals += np.bincount(cell, x, minlength=totals.size).reshape(self.shape)

        if happened:
            add(self.outcome, weight)
        else:
            add(self.mass, weight)
            add(self.chance, weight * prob)

    def totals(self, everyone: float, column: NDArray[Any]) -> tuple[Tensor, Tensor]:
        """Mass and gap of each cell, from what all samples and each class come to."""
        for happened in self.held:
            if self.held[happened]:
                self._release(happened)
        self.mass[:, 0] = everyone - self.mass[:, 1:].sum(axis=1)
        self.chance[:, 0] = column - self.chance[:, 1:].sum(axis=1)
        return torch.from_numpy(self.mass), torch.from_numpy(self.outcome - self.chance)


BY_CLASS[ece] = class_wise_ece
