"""What follows from logits and labels, each statistic derived at most once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .._tables import same_class, squares_of_rows
from ._row_kernels import ROW_KERNELS, RowKernels
from ._rows import column_of, entropy_of, is_class


@dataclass(frozen=True, eq=False)
class Statistics:
    """Logits and labels, and whatever a criterion may ask for without a setting."""

    logits: Tensor
    labels: Tensor
    weights: Tensor | None = field(default=None, kw_only=True)
    # Rows that belong to one multi-label sample, in column order; None for one label each.
    labels_per_sample: int | None = field(default=None, init=False, repr=False)
    _derived: dict[object, Tensor] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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
            if name in kernels.on_request:
                return kernels.on_request[name](self.logits, self.labels, self._found)
            found = kernels.statistics(self.logits, self.labels)
            for each, statistic in found.items():
                self._derived.setdefault((each, torch.is_grad_enabled()), statistic)
            return found[name]

        return self._read(name, compute)

    def _found(self, name: str) -> Tensor:
        """What only kernels find, and only where they are in charge."""
        return self._row(name, self._nowhere)

    def _nowhere(self) -> Tensor:
        raise AssertionError("no kernels are in charge here")

    def _kernels(self, name: str = "soft_rank") -> RowKernels | None:
        """Who is in charge of the statistics of rows, if not their definitions."""
        on_graph, off_graph = ("log_probs", True), ("log_probs", False)
        known = off_graph in self._derived and not torch.is_grad_enabled()
        if on_graph in self._derived or known:
            return None  # the whole table is there: a pass over it saves nothing
        for kernels in ROW_KERNELS:
            if name in kernels.on_request and (kernels.mark, True) in self._derived:
                return kernels
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

    @property
    def predicted(self) -> Int[Tensor, " n"]:
        """Index of the most probable class, the first of tied ones."""
        return self._row("predicted", lambda: self.logits.argmax(dim=1))

    @property
    def confidence(self) -> Float[Tensor, " n"]:
        """Probability of the predicted class."""
        return self._row("confidence", lambda: column_of(self.log_probs, self.predicted).exp())

    @property
    def correct(self) -> Float[Tensor, " n"]:
        """1 where the predicted class is the label, else 0."""
        return self._row("correct", lambda: same_class(self.predicted, self.labels, self.dtype))

    @property
    def true_log_prob(self) -> Float[Tensor, " n"]:
        """Logarithm of the probability of the true class."""
        return self._row("true_log_prob", lambda: column_of(self.log_probs, self.labels))

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
            return column_of(self.probs, self.labels)

        return self._read("true_prob", true_prob)

    @property
    def sum_of_squares(self) -> Float[Tensor, " n"]:
        """Sum of the squared probabilities: the chance that two draws from them agree."""
        return self._row("sum_of_squares", self._sum_of_squares)

    def _sum_of_squares(self) -> Tensor:
        return squares_of_rows(self.probs)

    @property
    def squared_error(self) -> Float[Tensor, " n"]:
        """Sum of the squared differences between the probabilities and what happened."""
        return self.sum_of_squares - 2 * self.true_prob + 1

    @property
    def entropy(self) -> Float[Tensor, " n"]:
        """Entropy of the predicted distribution, in nats."""
        return self._row("entropy", lambda: entropy_of(self.probs, self.log_probs))

    @property
    def normalised_entropy(self) -> Float[Tensor, " n"]:
        """Entropy as a share of its maximum, the logarithm of the number of classes."""
        return self.entropy / log(self.classes)

    @property
    def marginals(self) -> tuple[Float[Tensor, "n events"], Float[Tensor, "n events"]]:
        """For every class (or label), the chance it was given, and whether it happened."""
        if self.labels_per_sample is not None:
            shape = (-1, self.labels_per_sample)
            return self.probs[:, 1].reshape(shape), self.labels.reshape(shape).to(self.probs.dtype)
        return self.probs, is_class(self.labels, self.classes, self.probs.dtype)

    @property
    def marginal_weights(self) -> Float[Tensor, " n"] | None:
        """How much each row of `marginals` counts."""
        if self.weights is None or self.labels_per_sample is None:
            return self.weights
        return self.weights.reshape(-1, self.labels_per_sample)[:, 0]
