"""What a classifier said, and what was true."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import log
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from ._checks import (
    check_labels,
    check_logits,
    check_shapes,
    check_table,
    check_targets,
    check_weights,
)
from ._tables import (
    WORTH_IT,
    blocks_of,
    by_rows,
    first_largest,
    first_largest_of,
    largest_of_rows,
    softmax_of_blocks,
    unrecorded,
)


@dataclass(frozen=True)
class RowKernels:
    """A faster way to the statistics of rows: all of them in one pass over the logits.

    - `take`: whether they are in charge of these logits.
    - `statistics`: logits and labels in, statistics by the name of their property out.
    - `soft_rank`: logits, labels and a temperature in, the soft rank out.
    - `names`: of the statistics it finds, where it does not find all.
    """

    take: Callable[[Tensor], bool]
    statistics: Callable[[Tensor, Tensor], dict[str, Tensor]]
    soft_rank: Callable[[Tensor, Tensor, float], Tensor]
    names: frozenset[str] | None = None


ROW_KERNELS: list[RowKernels] = []
"""Kernels by preference; they enter themselves here. Without any, definitions compute."""


@dataclass(frozen=True, eq=False)
class Predictions:
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

    logits: Tensor
    labels: Tensor
    weights: Tensor | None = field(default=None, kw_only=True)
    # Rows that belong to one multi-label sample, in column order; None for one label each.
    labels_per_sample: int | None = field(default=None, init=False, repr=False)
    _derived: dict[object, Tensor] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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
            kept = labels != ignore_index
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

        >>> Predictions.from_binary(torch.tensor([0.0, 3.0]), torch.tensor([0, 1])).probs
        tensor([[0.5000, 0.5000],
                [0.0474, 0.9526]])
        """
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
        check_targets(targets, scores)
        check_weights(weights, scores)
        columns = scores.shape[1]
        binary = cls.from_binary(
            scores.reshape(-1),
            targets.reshape(-1).long(),
            weights=None if weights is None else weights.repeat_interleave(columns, dim=0),
        )
        object.__setattr__(binary, "labels_per_sample", columns)
        return binary

    @classmethod
    def from_probabilities(
        cls, probabilities: Tensor, labels: Tensor, *, weights: Tensor | None = None
    ) -> "Predictions":
        """Probabilities as they are, where the logits are lost.

        - `probabilities`: `(n, classes)`, rows that sum to one; or `(n,)`, the chance of class 1.

        Confidences are the numbers given, to the last bit; a probability of zero has the
        logarithm of the smallest positive number. Of more than half a million numbers only some
        rows are added up to see whether they sum to one; `evaluate` adds up all.
        """
        if probabilities.ndim == 1:
            probabilities = torch.stack([1 - probabilities, probabilities], dim=1)
        return _OfProbabilities(probabilities, labels, weights, largest_of_rows(probabilities))

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

    def __len__(self) -> int:
        return len(self.labels)

    def _read(self, name: object, compute: Callable[[], Tensor]) -> Tensor:
        """Every statistic is read through here, so that it is computed once.

        One computed while no gradient was recorded does not serve where one is.
        """
        on_graph, off_graph = (name, True), (name, False)
        if on_graph in self._derived:
            return self._derived[on_graph]
        key = on_graph if torch.is_grad_enabled() else off_graph
        if key not in self._derived:
            self._derived[key] = compute()
        return self._derived[key]

    def _row(self, name: str, definition: Callable[[], Tensor]) -> Tensor:
        """A statistic of each row, with all the others where a kernel finds them together."""

        def compute() -> Tensor:
            kernels = self._kernels(name)
            if kernels is None:
                return definition()
            found = kernels.statistics(self.logits, self.labels)
            for each, statistic in found.items():
                self._derived.setdefault((each, torch.is_grad_enabled()), statistic)
            return found[name]

        return self._read(name, compute)

    def _kernels(self, name: str = "soft_rank") -> RowKernels | None:
        """Who is in charge of the statistics of rows, if not their definitions."""
        on_graph, off_graph = ("log_probs", True), ("log_probs", False)
        known = off_graph in self._derived and not torch.is_grad_enabled()
        if on_graph in self._derived or known:
            return None  # the whole table is there: a pass over it saves nothing
        for kernels in ROW_KERNELS:
            if (kernels.names is None or name in kernels.names) and kernels.take(self.logits):
                return kernels
        return None

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.logits.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        """The type that statistics have: that of the logits, and no narrower than float32."""
        return torch.promote_types(self.logits.dtype, torch.float32)

    @property
    def scores(self) -> Float[Tensor, "n classes"]:
        """The logits, no narrower than float32."""
        narrow = self.logits.dtype in (torch.float16, torch.bfloat16)
        return self.logits.float() if narrow else self.logits

    @property
    def log_probs(self) -> Float[Tensor, "n classes"]:
        """Logarithm of the probability of each class."""
        narrow = self.logits.dtype in (torch.float16, torch.bfloat16)
        dtype = torch.float32 if narrow else None
        return self._read("log_probs", lambda: self.logits.log_softmax(dim=1, dtype=dtype))

    @property
    def probs(self) -> Float[Tensor, "n classes"]:
        """Probability of each class."""
        return self._read("probs", lambda: self.log_probs.exp())

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

    @property
    def predicted(self) -> Int[Tensor, " n"]:
        """Index of the most probable class, the first of tied ones."""
        return self._row("predicted", lambda: self.logits.argmax(dim=1))

    @property
    def confidence(self) -> Float[Tensor, " n"]:
        """Probability of the predicted class."""
        return self._row("confidence", lambda: _column(self.log_probs, self.predicted).exp())

    @property
    def correct(self) -> Float[Tensor, " n"]:
        """1 where the predicted class is the label, else 0."""
        return self._row("correct", lambda: (self.predicted == self.labels).to(self.dtype))

    @property
    def true_log_prob(self) -> Float[Tensor, " n"]:
        """Logarithm of the probability of the true class."""
        return self._row("true_log_prob", lambda: _column(self.log_probs, self.labels))

    @property
    def mean_log_prob(self) -> Float[Tensor, " n"]:
        """Mean over the classes of the logarithm of their probability."""
        return self._row("mean_log_prob", lambda: self.log_probs.mean(dim=1))

    @property
    def true_prob(self) -> Float[Tensor, " n"]:
        """Probability of the true class."""

        def true_prob() -> Tensor:
            if self._kernels("true_log_prob") is not None:
                return self.true_log_prob.exp()
            return _column(self.probs, self.labels)

        return self._read("true_prob", true_prob)

    @property
    def sum_of_squares(self) -> Float[Tensor, " n"]:
        """Sum of the squared probabilities: the chance that two draws from them agree."""
        return self._row("sum_of_squares", self._sum_of_squares)

    def _sum_of_squares(self) -> Tensor:
        return by_rows(lambda probs: probs.square().sum(dim=1), self.probs)

    @property
    def entropy(self) -> Float[Tensor, " n"]:
        """Entropy of the predicted distribution, in nats."""
        return self._row("entropy", lambda: _entropy(self.probs, self.log_probs))

    @property
    def normalised_entropy(self) -> Float[Tensor, " n"]:
        """Entropy as a share of its maximum, the logarithm of the number of classes."""
        return self.entropy / log(self.classes)

    def soft_rank(self, temperature: float = 100.0) -> Float[Tensor, " n"]:
        """Rank of the true class by probability, 1 for the highest, made differentiable.

        Each class above the true one adds `sigmoid(temperature * difference)`; as the
        temperature grows that becomes 1, and a class below adds nothing.
        """

        def rank() -> Tensor:
            kernels = self._kernels()
            if kernels is not None:
                return kernels.soft_rank(self.logits, self.labels, temperature)
            lead = self.probs - _column(self.probs, self.labels)[:, None]
            # The true class meets itself at sigmoid(0) = 1/2, which the constant accounts for.
            return 0.5 + (temperature * lead).sigmoid().sum(dim=1)

        return self._read(("soft_rank", temperature), rank)

    @property
    def marginals(self) -> tuple[Float[Tensor, "n events"], Float[Tensor, "n events"]]:
        """For every class (or label), the chance it was given, and whether it happened."""
        if self.labels_per_sample is not None:
            shape = (-1, self.labels_per_sample)
            return self.probs[:, 1].reshape(shape), self.labels.reshape(shape).to(self.probs.dtype)
        return self.probs, one_hot(self.labels, self.classes).to(self.probs.dtype)

    @property
    def marginal_weights(self) -> Float[Tensor, " n"] | None:
        """How much each row of `marginals` counts."""
        if self.weights is None or self.labels_per_sample is None:
            return self.weights
        return self.weights.reshape(-1, self.labels_per_sample)[:, 0]

    def mean_of(self, per_sample: "Callable[[Predictions], Tensor]") -> Float[Tensor, ""]:
        """Mean of a per-sample quantity over these predictions, by weight; zero over none."""
        values = per_sample(self)
        if self.weights is None:
            return values.mean() if len(self) else values.sum()
        largest = self.weights.max() if len(self) else self.weights.sum()
        weights = (self.weights / torch.where(largest > 0, largest, 1)).to(values.dtype)
        total = torch.where(largest > 0, weights.sum(), 1)
        return (weights * torch.where(weights > 0, values, 0)).sum() / total


class _OfProbabilities(Predictions):
    """Predictions whose probabilities were given; logits are derived when something asks."""

    _parts = ("labels", "weights", "labels_per_sample", "_derived", "_given")
    _given: Tensor

    def __init__(
        self, given: Tensor, labels: Tensor, weights: Tensor | None, largest: Tensor
    ) -> None:
        check_table("probabilities", given)
        check_labels(labels, given)
        check_weights(weights, given)
        probs = given.to(torch.promote_types(given.dtype, torch.float32))
        known = {"probs": probs}
        if unrecorded(probs) and not probs.requires_grad:
            known["confidence"] = largest.to(probs.dtype)
        parts: dict[str, Any] = {
            "_given": probs,
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
        return self._given.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self._given.dtype

    @property
    def log_probs(self) -> Tensor:
        return self._read("log_probs", lambda: _log(self._given))

    @property
    def predicted(self) -> Tensor:
        return self._read("predicted", lambda: first_largest(self._given))

    @property
    def confidence(self) -> Tensor:
        return self._read("confidence", lambda: _column(self._given, self.predicted))

    @property
    def correct(self) -> Tensor:
        known = any(("predicted", on_graph) in self._derived for on_graph in (True, False))
        if known or ("confidence", True) not in self._derived:
            return super().correct
        return self._read("correct", self._correct)

    def _correct(self) -> Tensor:
        """Whether the label is the maximum: which came first matters only where two may be tied.

        Two tied maxima are both at most one half, up to what a row may be off by.
        """
        confidence = self._derived["confidence", True]
        right = _column(self._given, self.labels) == confidence
        unsure = (right & (confidence < 0.51)).nonzero()[:, 0]
        right[unsure] = first_largest_of(self._given, unsure) == self.labels[unsure]
        return right.to(self.dtype)

    @property
    def true_log_prob(self) -> Tensor:
        return self._read("true_log_prob", lambda: _log(self.true_prob))

    @property
    def mean_log_prob(self) -> Tensor:
        return self._read(
            "mean_log_prob", lambda: by_rows(lambda probs: _log(probs).mean(dim=1), self._given)
        )

    @property
    def entropy(self) -> Tensor:
        return self._read(
            "entropy",
            lambda: by_rows(lambda probs: _entropy(probs, _log(probs)), self._given),
        )

    def _kernels(self, name: str = "") -> RowKernels | None:
        """Nobody: what kernels derive from logits is given."""
        return None


def _entropy(probs: Tensor, log_probs: Tensor) -> Tensor:
    # A class ruled out by a logit of minus infinity has no share in the entropy.
    return (probs * torch.where(probs > 0, -log_probs, 0)).sum(dim=1)


def _log(probabilities: Tensor) -> Tensor:
    """Logarithms, a zero's being that of the smallest positive number."""
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()


def _column(table: Tensor, index: Tensor) -> Tensor:
    """The entry of each row in the column that `index` names for it."""
    # Squeezed, not indexed: the gradient of an index is a table of zeros to be filled.
    return table.gather(1, index[:, None]).squeeze(1)
