"""Predictions: how they are made, taken apart and averaged."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from .._checks import (
    check_labels,
    check_logits,
    check_not_chances,
    check_shapes,
    check_targets,
    check_weights,
    is_readable,
    widest,
)
from .._tables import WORTH_IT, Events, blocks_of, softmax_of_blocks, unrecorded
from ._rows import column_of, count_of
from ._statistics import Statistics


@dataclass(frozen=True, eq=False)
class Predictions(Statistics):
    """Logits for a batch, with the labels they are judged against.

    Whatever a criterion may ask for is derived here, at most once, and stays on the
    autograd graph of `logits`. No criterion applies a softmax of its own.

    - `logits`: one row per sample and one column per class. Half-precision logits are
      computed with in float32.
    - `labels`: the index of the true class of each sample.
    - `weights`: how much each sample counts, not negative. A sample of weight zero might
      as well be absent.

    The constructor takes what most classifiers give. For everything else say what you have:
    `flatten` (pixels, tokens, ignored positions), `from_binary`, `from_multilabel`,
    `from_probabilities`. Nothing is guessed from the numbers.

    Correctness follows `argmax`: of tied maxima the first is the prediction. Shapes, dtypes
    and devices are checked always; values on the CPU only, since elsewhere a look at them
    would make the device wait.

    >>> predictions = Predictions(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    >>> predictions.confidence
    tensor([0.8808, 0.7311])
    >>> predictions.correct
    tensor([1., 0.])
    """

    _parts: ClassVar[tuple[str, ...]] = (
        "logits",
        "labels",
        "weights",
        "labels_per_sample",
        "_derived",
    )

    def __post_init__(self) -> None:
        check_logits(self.logits)
        check_labels(self.labels, self.logits)
        check_weights(self.weights, self.logits)
        if self.labels.dtype != torch.int64:
            object.__setattr__(self, "labels", self.labels.long())

    @classmethod
    def flatten(
        cls,
        logits: Tensor,
        labels: Tensor,
        *,
        class_dim: int = 1,
        ignore_index: int | None = -100,
        weights: Tensor | None = None,
    ) -> "Predictions":
        """Pixels, voxels or tokens as one long batch, without the ignored ones.

        - `logits`: `(n, classes, d1, ...)`, or `(batch, length, classes)` with `class_dim=-1`.
        - `labels`: the shape of `logits` without its class dimension.
        - `ignore_index`: rows with this label are left out; `None` keeps every row. In a
          compiled graph, whose shapes are fixed, they stay with weight zero.
        - `weights`: the shape of `labels`.

        When every row is ignored nothing remains, and every criterion of it is zero.

        >>> tokens, labels = torch.zeros(2, 3, 5), torch.tensor([[1, 2, -100], [4, -100, -100]])
        >>> len(Predictions.flatten(tokens, labels, class_dim=-1))
        3
        """
        check_shapes(logits, labels, weights, class_dim)
        rows = logits.movedim(class_dim, -1).reshape(-1, logits.shape[class_dim])
        labels = labels.reshape(-1)
        weights = None if weights is None else weights.reshape(-1)
        if ignore_index is not None and len(rows):
            kept = labels.long() != ignore_index  # of narrow integers -100 is another number
            if torch.compiler.is_compiling():
                counted = kept.to(torch.float32)
                weights = counted if weights is None else weights * counted
                return cls(rows, torch.where(kept, labels, 0), weights=weights)
            rows, labels = rows[kept], labels[kept]
            weights = None if weights is None else weights[kept]
            # An empty batch is a mistake; one whose every row is ignored is not.
            if len(rows) == 0:
                return cls._unchecked(rows, labels, weights)
        return cls(rows, labels, weights=weights)

    @classmethod
    def from_binary(
        cls, scores: Tensor, labels: Tensor, *, weights: Tensor | None = None
    ) -> "Predictions":
        """One logit per sample, as a sigmoid takes it: the log-odds of class 1.

        Twenty or more that fill most of the range from 0 to 1 are refused as probabilities,
        unless they are on an autograd graph: a network may begin with such log-odds.

        >>> Predictions.from_binary(torch.tensor([0.0, 3.0]), torch.tensor([0, 1])).probs
        tensor([[0.5000, 0.5000],
                [0.0474, 0.9526]])
        """
        binary = cls._of_odds(scores, labels, weights)
        remedy = "Use Predictions.from_probabilities(scores, labels), or pass scores.logit()."
        _check_not_chances(scores, remedy)
        return binary

    @classmethod
    def _of_odds(cls, scores: Tensor, labels: Tensor, weights: Tensor | None) -> "Predictions":
        """The same of log-odds that are known to be such."""
        if scores.ndim != 1:
            raise ValueError(
                f"scores must have shape (n,); got {tuple(scores.shape)}. "
                "For a column of scores pass scores.squeeze(1); for several labels per sample "
                "use Predictions.from_multilabel."
            )
        return cls(torch.stack([torch.zeros_like(scores), scores], dim=1), labels, weights=weights)

    @classmethod
    def from_multilabel(
        cls, scores: Tensor, targets: Tensor, *, weights: Tensor | None = None
    ) -> "Predictions":
        """Several yes-or-no labels per sample, every one a binary event of its own.

        - `scores`: `(n, labels)` logits, as a sigmoid takes them.
        - `targets`: `(n, labels)`, 0 or 1.
        - `weights`: `(n,)`, one per sample.

        Row statistics then run over all n × labels events; `class_wise` judges each label
        by the chance given to its 1.

        >>> both = Predictions.from_multilabel(torch.zeros(3, 2), torch.ones(3, 2))
        >>> len(both), both.marginals[0].shape
        (6, torch.Size([3, 2]))
        """
        binary = cls._of_several(scores, targets, weights)
        _check_not_chances(scores, "Pass scores.logit().")
        return binary

    @classmethod
    def _of_several(cls, scores: Tensor, targets: Tensor, weights: Tensor | None) -> "Predictions":
        """The same of log-odds that are known to be such."""
        check_targets(targets, scores)
        check_weights(weights, scores)
        columns = scores.shape[1]
        binary = cls._of_odds(
            scores.reshape(-1),
            targets.reshape(-1).long(),
            None if weights is None else weights.repeat_interleave(columns, dim=0),
        )
        object.__setattr__(binary, "labels_per_sample", columns)
        return binary

    @classmethod
    def from_probabilities(
        cls, probabilities: Tensor, labels: Tensor, *, weights: Tensor | None = None
    ) -> "Predictions":
        """Probabilities as they are, where the logits are lost.

        - `probabilities`: `(n, classes)`, rows that sum to one; or `(n,)`, the chance of class 1.

        A sum may be off by 0.01 in any type, as rounding for print leaves it; rows are not
        divided by their sums. Confidences are the numbers given, to the last bit; one below
        the smallest normal number of its type, zero among them, has the logarithm of that. Of more
        than half a million numbers only some rows are added up to see whether they sum to one;
        `evaluate` adds up all.
        """
        # Imported here, since they are predictions themselves.
        if isinstance(probabilities, Tensor) and probabilities.ndim == 1:
            from ._of_chances import OfChances

            return OfChances(probabilities, labels, weights)
        from ._of_probabilities import OfProbabilities

        return OfProbabilities(probabilities, labels, weights)

    @classmethod
    def _unchecked(cls, logits: Tensor, labels: Tensor, weights: Tensor | None) -> "Predictions":
        """The same noun without the look at its parts, for parts that were looked at before."""
        bare = object.__new__(Predictions)
        parts: dict[str, Any] = {"logits": logits, "labels": labels, "weights": weights}
        for name, part in (parts | {"labels_per_sample": None, "_derived": {}}).items():
            object.__setattr__(bare, name, part)
        return bare

    def reweighted(self, weights: Float[Tensor, " n"]) -> "Predictions":
        """The same predictions, counting as much as `weights` says on top of their own."""
        both = weights if self.weights is None else self.weights * weights
        same = object.__new__(type(self))
        for name in self._parts:
            object.__setattr__(same, name, both if name == "weights" else getattr(self, name))
        return same

    def _some(self, own: Tensor | slice, weights: Tensor | None) -> "Predictions":
        """Some of the samples, with what is known of them already and other weights."""
        some = object.__new__(type(self))
        for name in self._parts:
            part = getattr(self, name)
            object.__setattr__(some, name, part[own] if isinstance(part, Tensor) else part)
        derived = {name: statistic[own] for name, statistic in self._derived.items()}
        for name, part in (("weights", weights), ("_derived", derived)):
            object.__setattr__(some, name, part)
        return some

    def of_all_ranks(self, rows: Tensor) -> Tensor:
        """One entry per sample of this process, as one per sample of these predictions."""
        return rows

    @property
    def events(self) -> Events | None:
        """Confidence and correctness, where they need not be whole to be read, some after others.

        Nothing where `confidence` and `correct` are as well: most predictions are rows, beside
        which a column is short.
        """
        return None

    def probs_in_blocks(self) -> Iterator[tuple[slice, Tensor]] | None:
        """Rows of `probs`, some at a time, where only values are asked and it is worth it.

        What a block holds is overwritten when the next is asked for.
        """
        known = self._derived.get(("probs", True))
        if known is None and not torch.is_grad_enabled():
            known = self._derived.get(("probs", False))
        table = self.logits if known is None else known
        if table.numel() < WORTH_IT or self.labels_per_sample is not None or not unrecorded(table):
            return None
        return softmax_of_blocks(table) if known is None else blocks_of(table)

    def soft_rank(self, temperature: float = 100.0) -> Float[Tensor, " n"]:
        """Rank of the true class by probability, 1 for the highest, made differentiable.

        Each class above the true one adds `sigmoid(temperature * difference)`; as the
        temperature grows that becomes 1, and a class below adds nothing.
        """

        def rank() -> Tensor:
            kernels = self._kernels()
            if kernels is not None:
                return kernels.soft_rank(self.logits, self.labels, temperature, self._found)
            lead = self.probs - column_of(self.probs, self.labels)[:, None]
            # The true class meets itself at sigmoid(0) = 1/2, which the constant accounts for.
            return 0.5 + (temperature * lead).sigmoid().sum(dim=1)

        return self._read(("soft_rank", temperature), rank)

    def mean_of(
        self,
        per_sample: "Callable[[Predictions], Tensor]",
        *,
        row_by_row: bool = False,
        share: bool = False,
    ) -> Float[Tensor, ""]:
        """Mean of a per-sample quantity over these predictions, by weight; zero over none.

        - `row_by_row`: whether it may be asked of some samples after others.
        - `share`: whether it is 0 or 1, so that the mean is a share, given in the widest type.
        """
        values = per_sample(self)
        if self.weights is None:
            if share:
                return count_of(values) / max(len(self), 1)
            return values.mean() if len(self) else values.sum()
        largest = self.weights.max() if len(self) else self.weights.sum()
        dtype = widest(values.device) if share else values.dtype
        given = self.weights.to(torch.promote_types(self.weights.dtype, dtype))
        weights = (given / torch.where(largest > 0, largest, 1)).to(dtype)
        total = torch.where(largest > 0, weights.sum(), 1)
        return (weights * torch.where(weights > 0, values, 0)).sum() / total


def _check_not_chances(scores: Tensor, remedy: str) -> None:
    """Values are looked at on the CPU, and not while they are trained: see `from_binary`."""
    if is_readable(scores) and not scores.requires_grad:
        check_not_chances("scores", scores, remedy)
