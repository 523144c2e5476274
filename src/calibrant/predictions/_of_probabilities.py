"""Predictions of which the probabilities are known, and the logits are lost."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from .._checks import all_up_to, check_labels, check_weights
from .._tables import (
    Events,
    Part,
    by_rows,
    first_largest,
    is_first_largest,
    maxima_of,
    same_class,
    unrecorded,
    vector_of,
)
from ._predictions import Predictions
from ._row_kernels import RowKernels
from ._rows import column_of, entropy_of, log_of


class OfProbabilities(Predictions):
    """Predictions whose probabilities were given; logits are derived when something asks."""

    _parts: ClassVar[tuple[str, ...]] = ("labels", "weights", "labels_per_sample", "_derived")

    def __init__(self, given: Tensor, labels: Tensor, weights: Tensor | None) -> None:
        found = maxima_of(given)
        check_labels(labels, given)
        check_weights(weights, given)
        probs = given.to(torch.promote_types(given.dtype, torch.float32))
        known = {"probs": probs}
        if unrecorded(probs) and not probs.requires_grad:
            known["confidence"] = found.largest.to(probs.dtype)
            if found.place is not None:
                known["predicted"] = found.place
            if found.of_windows is not None:
                known["of_windows"] = found.of_windows
        parts: dict[str, Any] = {
            "labels": labels.long(),
            "weights": weights,
            "labels_per_sample": None,
            "_derived": {(name, True): statistic for name, statistic in known.items()},
        }
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @property
    def logits(self) -> Tensor:
        return self.log_probs

    @property
    def classes(self) -> int:
        return self.probs.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.probs.dtype

    @property
    def log_probs(self) -> Tensor:
        return self._read("log_probs", lambda: log_of(self.probs))

    @property
    def predicted(self) -> Tensor:
        return self._read("predicted", lambda: first_largest(self.probs))

    @property
    def confidence(self) -> Tensor:
        return self._read("confidence", lambda: column_of(self.probs, self.predicted))

    @property
    def correct(self) -> Tensor:
        known = any(("predicted", on_graph) in self._derived for on_graph in (True, False))
        if known or ("confidence", True) not in self._derived:
            # (What `super()` would say, which no compiler follows into a property.)
            return self._row("correct", lambda: same_class(self.predicted, self.labels, self.dtype))
        return self._read("correct", lambda: self._right.to(self.dtype))

    @property
    def _right(self) -> Tensor:
        """Whether each answer is right, told by its confidence, which must be known."""
        largest = self._derived["confidence", True]
        of_windows = self._derived.get(("of_windows", True))
        return self._read(
            "right", lambda: is_first_largest(self.probs, self.labels, largest, of_windows)
        )

    @property
    def events(self) -> Events | None:
        """Where only values are asked, and confidences were found when the table was looked at.

        Where places were found too, answers are compared with labels as they are read, and no
        column of them is made.
        """
        known = self._derived.get(("confidence", True))
        sure = None if known is None else vector_of(known)
        labels = vector_of(self.labels)
        if self.weights is not None or sure is None or labels is None:
            return None
        if not (len(sure) and all_up_to(1, sure)):
            return None  # the measure will say whether that is too far
        found = self._derived.get(("predicted", True))
        place = vector_of(self._right if found is None else found)
        if place is None:
            return None

        def read(part: slice) -> Part:
            right = place[part] if found is None else place[part] == labels[part]
            return Part(sure[part], right, None, inside=True)

        return Events(read, len(self), dtype=self.dtype, weighted=False)

    @property
    def true_log_prob(self) -> Tensor:
        return self._read("true_log_prob", lambda: log_of(self.true_prob))

    @property
    def mean_log_prob(self) -> Tensor:
        return self._read(
            "mean_log_prob", lambda: by_rows(lambda probs: log_of(probs).mean(dim=1), self.probs)
        )

    @property
    def entropy(self) -> Tensor:
        return self._read(
            "entropy",
            lambda: by_rows(lambda probs: entropy_of(probs, log_of(probs)), self.probs),
        )

    def _kernels(self, name: str = "") -> RowKernels | None:
        """Nobody: what kernels derive from logits is given."""
        return None
